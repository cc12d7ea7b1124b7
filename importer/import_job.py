"""Import jobs: one workbook into one form, submitted, claimed, counted and ended in PostgreSQL.

```
submit ──► pending ──claim──► running ──finish──► success | partial_success | failed
              ▲                  │ ├──refuse──► failed      (no row stays, counts zero)
              │                  │ ├──fail────► failed      (rows and cursor stay)
              ├──hand back, retry┘ └──cancel──► cancelled   (rows and cursor stay)
              └──take up── failed, cancelled                (from the cursor, attempts back to 0)
```

A job names its content (a hash in the store), its form and the version of the form, so that any worker on any machine
runs what a notebook submitted. Its *cursor* is `success_rows + failed_rows + skipped_rows`: how many data rows of the
sheet were dealt with. It moves only in the transaction that wrote those rows (`importer.batch`), which also renews the
lease, so cursor, rows and lease never disagree.

**Identity.** The same content in the same form version and sheet is one job. `submit` finds it under an advisory lock
of form and content, and a unique index stands behind that. `create_table`, `batch_rows`, `priority` and `run_ref` are
no part of identity: they do not change which rows are read.

**What is not guaranteed.** That the file name is the same: the first sender's name is kept. That a cancelled job
leaves no rows: it leaves the batches that were committed, and its counts say how many.

This room knows no frames: a form crosses as the plain dict that `Form.to_dict()` gives and its digest.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, LiteralString, cast

from importer import lease as leases
from importer import outbox_message
from importer.db import Connection, Jsonb, statements
from importer.display import table
from importer.errors import FormDisabledError, JobConflictError, JobNotFoundError, JobStateError, LeaseLostError
from importer.lease import Lease, Leased

Status = Literal["pending", "running", "success", "partial_success", "failed", "cancelled"]
Kind = Literal["import", "undo"]
How = Literal["finished", "refused", "failed", "handed_back", "retry", "cancelled", "interrupted"]

#: The statuses of a job that has come to its end.
ENDED: frozenset[str] = frozenset({"success", "partial_success", "failed", "cancelled"})

#: Topic of the outbox message that every end of a job writes in its transaction; its payload is the announcement.
TOPIC = "import_ended"

_ST = statements("import_job")

#: Statement by which a worker hears of new jobs.
LISTEN = _ST["listen"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One import job as it stood when it was read; moments are aware and in UTC."""

    #: Number of the job.
    id: int
    #: Name of its form.
    form: str
    #: Version of the form it was submitted with.
    form_version: int
    #: Name of the file as the first sender called it, without folders.
    file_name: str
    #: SHA-256 of the content, hexadecimal.
    content_hash: str
    #: The sheet asked for at submission, null for the form's own choice.
    sheet: str | None
    #: pending running success partial_success failed cancelled.
    status: Status
    #: Data rows of the sheet, null until it was read to its end.
    total_rows: int | None
    #: Rows in the table.
    success_rows: int
    #: Rows with at least one fault.
    failed_rows: int
    #: Rows whose key was there already (`on_clash: skip`).
    skipped_rows: int
    #: Attempts that crashed, failed or are running now.
    attempt_count: int
    #: Who runs it outside, for example a Dagster run id.
    run_ref: str | None
    #: The job that took the place of this one's rows.
    replaced_by: int | None
    #: Why the workbook was refused, one of the reasons of `WorkbookError`.
    reason: str | None
    #: The last error, in words.
    last_error: str | None
    #: What of the workbook was not read and why (after the end).
    left_out: Mapping[str, Any] | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    #: When a waiting job becomes due.
    due_at: dt.datetime | None
    #: `import`, or `undo`: takes back what its parent did.
    kind: Kind
    #: The job whose failed rows this one sends again, or that it undoes.
    parent_id: int | None
    #: Of the rows in the table: those that were there and changed (`on_clash: update`).
    updated_rows: int
    #: When its rows were taken back, and by which job.
    undone_at: dt.datetime | None
    undone_by: int | None
    #: The earlier job, when the call that returned this one made none.
    submitted_before: Job | None = None
    #: All jobs that it hangs together with, oldest first: what it corrects, corrections, undos (`im.job` reads it).
    history: tuple[Job, ...] = dataclasses.field(default=(), compare=False, repr=False)

    @property
    def cursor(self) -> int:
        """How many data rows were dealt with."""
        return self.success_rows + self.failed_rows + self.skipped_rows

    @property
    def ended(self) -> bool:
        """Whether the job has come to its end."""
        return self.status in ENDED

    @property
    def duration(self) -> dt.timedelta | None:
        """From the first start to the end; null before the end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at

    def _repr_html_(self) -> str:
        return jobs_html([self])


class Jobs(tuple[Job, ...]):
    """Jobs, newest first; a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return jobs_html(self)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the holder of a job needs to run it."""

    form_name: str
    form_version: int
    file_name: str
    content_hash: str
    size_bytes: int
    sheet: str | None
    create_table: bool
    batch_rows: int | None
    replaces: tuple[int, ...]
    success_rows: int
    failed_rows: int
    skipped_rows: int
    definition: Mapping[str, Any]
    digest: str
    kind: Kind
    parent_id: int | None
    only_changes: bool

    @property
    def cursor(self) -> int:
        """How many data rows earlier attempts dealt with."""
        return self.success_rows + self.failed_rows + self.skipped_rows


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of `submit`: a content in the store, a form as data, and options."""

    #: The form as `Form.to_dict()` gives it, with its name and digest.
    definition: Mapping[str, Any]
    form_name: str
    digest: str
    file_name: str
    content_hash: str
    size_bytes: int
    sheet: str | None = None
    key: str | None = None
    force: bool = False
    replace: bool = False
    create_table: bool = False
    batch_rows: int | None = None
    priority: int = 2
    max_attempts: int = 5
    run_ref: str | None = None
    #: The import whose failed rows come again, corrected.
    parent_id: int | None = None
    #: Leave rows that are in the table as they are, import the others.
    only_changes: bool = False


def store_form(conn: Connection, definition: Mapping[str, Any], *, name: str, digest: str) -> int:
    """Store a form unless this very form is stored; return its version. Written in the caller's transaction.

    Raises:
        FormDisabledError: the form is disabled.
    """
    params = {"name": name, "digest": digest, "definition": Jsonb(dict(definition))}
    row = conn.execute(_ST["form_by_digest"], params).fetchone()
    if row is None:
        conn.execute(_ST["lock_form"], params)
        row = (
            conn.execute(_ST["form_by_digest"], params).fetchone() or conn.execute(_ST["store_form"], params).fetchone()
        )
    assert row is not None  # an insert that returns
    if not row["enabled"]:
        raise FormDisabledError(
            f"the form {name} is disabled and takes no imports; enable it with: rowlease forms enable {name}"
        )
    return int(row["version"])


def forms(conn: Connection) -> list[dict[str, Any]]:
    """Give the newest version of every stored form: name, version, digest, definition, enabled, created_at."""
    return conn.execute(_ST["forms"]).fetchall()


def enable_form(conn: Connection, name: str, *, enabled: bool) -> bool:
    """Let a form take imports, or not; false when there is no such form. Jobs submitted before go on."""
    return bool(conn.execute(_ST["enable_form"], {"name": name, "enabled": enabled}).fetchall())


def submit(conn: Connection, request: Request) -> Job:
    """Make a waiting job, or find the one that this content already has, in one transaction or the caller's.

    Returns the new job, or the earlier one with `submitted_before` set. A failed or cancelled job that did not read
    its sheet to the end is taken up: it waits again from its cursor.

    Raises:
        FormDisabledError: the form is disabled. JobConflictError: the key came before with other input; or the same
        content is open or has rows under another version of the form.
    """
    with conn.transaction():
        version = store_form(conn, request.definition, name=request.form_name, digest=request.digest)
        earlier = _submissions(conn, request.form_name, request.content_hash)
        others = _in_the_way(earlier, version, request.sheet)
        if request.key is not None:
            conn.execute(_ST["lock_key"], {"submit_key": request.key})
            keyed = conn.execute(_ST["by_submit_key"], {"submit_key": request.key}).fetchone()
            if keyed is not None:
                return _same_key(conn, request, version, keyed, others)
        same = [row for row in earlier if row["form_version"] == version and row["sheet"] == request.sheet]
        if same and not request.force:
            return _known(conn, request, same[0], others)
        replaces = _replaced(conn, request, version, others)
        row = conn.execute(
            _ST["submit"],
            {
                **_fields(request),
                "form_version": version,
                "forced": bool(same),
                "submit_key": request.key,
                "replaces": replaces,
            },
        ).fetchone()
        assert row is not None  # an insert that returns
        conn.execute(_ST["wake"])
        return job(conn, row["id"])


def _submissions(conn: Connection, form_name: str, content_hash: str) -> list[dict[str, Any]]:
    """Earlier jobs of a content in a form; nobody else submits it until the transaction ends."""
    params = {"form_name": form_name, "content_hash": content_hash}
    conn.execute(_ST["lock_content"], params)
    return conn.execute(_ST["same_content"], params).fetchall()


def _in_the_way(rows: Sequence[Mapping[str, Any]], version: int, sheet: str | None) -> list[Mapping[str, Any]]:
    """Those under another version of the form that are open or have rows."""
    others = [row for row in rows if row["form_version"] != version and row["sheet"] == sheet]
    return [row for row in others if row["open"] or row["success_rows"]]


def _fields(request: Request) -> dict[str, Any]:
    fields = {f.name: getattr(request, f.name) for f in dataclasses.fields(request)}
    return {name: value for name, value in fields.items() if name != "definition"}


def _same_key(
    conn: Connection, request: Request, version: int, row: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> Job:
    """The key was used: the same input is the same job, other input is an error that shows the difference."""
    pairs = {
        "form": (row["form_name"], request.form_name),
        "form version": (row["form_version"], version),
        "content": (row["content_hash"][:12], request.content_hash[:12]),
        "sheet": (row["sheet"], request.sheet),
    }
    differs = [f"{name} was {was}, is now {now}" for name, (was, now) in pairs.items() if was != now]
    if differs:
        raise JobConflictError(
            row["id"],
            f"the key {request.key!r} belongs to import job {row['id']}, which has other input: {'; '.join(differs)}",
            differs,
        )
    return _known(conn, request, row, others)


def _known(conn: Connection, request: Request, row: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Job:
    before = _job(row)
    if before.status in ("failed", "cancelled") and before.total_rows is None:
        replaces = _replaced(conn, request, before.form_version, [r for r in others if r["id"] not in row["replaces"]])
        before = take_up(
            conn,
            before.id,
            create_table=request.create_table,
            batch_rows=request.batch_rows,
            run_ref=request.run_ref,
            replaces=replaces,
        )
    return dataclasses.replace(before, submitted_before=_job(row))


def _replaced(conn: Connection, request: Request, version: int, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    if not rows or request.force:
        return []
    if not request.replace:
        row = rows[0]
        raise JobConflictError(
            row["id"],
            f"this content came before as import job {row['id']} ({row['status']}, {row['success_rows']} rows) under "
            f"version {row['form_version']} of the form {request.form_name}, now {version}; to let the new import take "
            "the place of those rows, submit it with replace=True",
            [f"form version was {row['form_version']}, is now {version}"],
        )
    for row in rows:
        if row["open"]:
            with suppress(JobStateError):  # it ended since it was looked at
                cancel(conn, row["id"], error="replaced by a newer submission of the same content")
    return [row["id"] for row in rows]


def take_up(
    conn: Connection,
    job_id: int,
    *,
    create_table: bool = False,
    batch_rows: int | None = None,
    run_ref: str | None = None,
    replaces: Sequence[int] = (),
) -> Job:
    """Let a failed or cancelled job wait again from its cursor, with all its attempts.

    `replaces`: jobs whose rows go when it starts, besides those it was to replace anyway.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it is open, ended well, was replaced, or read its sheet to the end; or its content is open or has
        rows under another version of the form.
    """
    with conn.transaction():
        _refuse_twice(conn, job(conn, job_id), replaces)
        params = {
            "id": job_id,
            "create_table": create_table,
            "batch_rows": batch_rows,
            "run_ref": run_ref,
            "replaces": list(replaces),
        }
        row = conn.execute(_ST["take_up"], params).fetchone()
        if row is None:
            found = job(conn, job_id)
            if found.replaced_by is not None:
                why = f"its rows were replaced by import job {found.replaced_by}"
            elif found.status in ("failed", "cancelled"):
                why = (
                    "it read its sheet to the end, so running it again changes nothing; send the corrected file, "
                    "or submit it with force=True"
                )
            else:
                why = "only a failed or cancelled job can be taken up again"
            raise JobStateError(job_id, found.status, why)
        conn.execute(_ST["wake"])
        return job(conn, job_id)


def _refuse_twice(conn: Connection, found: Job, replaces: Sequence[int]) -> None:
    """The same content under two versions of a form would be the same rows twice."""
    rows = _submissions(conn, found.form, found.content_hash)
    going = {old for row in rows if row["id"] == found.id for old in (*row["replaces"], *replaces)}
    others = [row for row in _in_the_way(rows, found.form_version, found.sheet) if row["id"] not in going]
    if found.kind == "import" and others:
        other = others[0]
        raise JobStateError(
            found.id,
            found.status,
            f"its content came again as import job {other['id']} ({other['status']}, {other['success_rows']} rows) "
            f"under version {other['form_version']} of the form; to let this one take the place of those rows, submit "
            "the file with its form and replace=True",
        )


def cancel(conn: Connection, job_id: int, *, error: str | None = None) -> Job:
    """End an open job; whoever runs it loses the lease and stops at its next batch. Committed rows stay.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it has ended.
    """
    with conn.transaction():
        row = conn.execute(_ST["cancel"], {"id": job_id, "error": error}).fetchone()
        found = job(conn, job_id)
        if row is None:
            raise JobStateError(job_id, found.status, "it has ended and cannot be cancelled")
        conn.execute(_ST["end_attempt"], {"id": job_id, "how": "cancelled"})
        _announce(conn, job_id)
        return found


def claim(
    conn: Connection,
    *,
    holder: str,
    ttl: dt.timedelta,
    id: int | None = None,  # noqa: A002 - the column's name
    run_ref: str | None = None,
) -> Lease | None:
    """Claim the next due job (or this one), or nothing; commits before the work starts.

    Jobs whose last lease ran out at max attempts become failed first.
    """
    with conn.transaction():
        fail_exhausted(conn)
        held = leases.claim(conn, Leased.IMPORT_JOBS, holder=holder, ttl=ttl, limit=1, id=id)
        if not held:
            return None
        params = {"id": held[0].id, "fence": held[0].fence, "run_ref": run_ref}
        if run_ref is not None:
            conn.execute(_ST["run_by"], params)
        conn.execute(_ST["begin_attempt"], params)
        return held[0]


def fail_exhausted(conn: Connection) -> list[int]:
    """Fail the jobs whose last lease ran out and that have no attempt left; return their ids."""
    with conn.transaction():
        ids = [int(row["id"]) for row in leases.fail_exhausted(conn, Leased.IMPORT_JOBS)]
        for job_id in ids:
            conn.execute(_ST["end_attempt"], {"id": job_id, "how": "interrupted"})
            _announce(conn, job_id)
        return ids


def work(conn: Connection, lease: Lease) -> Work:
    """Give the holder what it needs to run the job.

    Raises:
        LeaseLostError: somebody else holds it now, or it was cancelled.
    """
    row = conn.execute(_ST["definition"], {"id": lease.id, "fence": lease.fence}).fetchone()
    if row is None:
        raise _lost(lease)
    return Work(**{**row, "replaces": tuple(row["replaces"])})


def move_cursor(
    conn: Connection, lease: Lease, *, cursor: int, success: int, failed: int, skipped: int, updated: int = 0
) -> None:
    """Count a batch in the transaction that wrote it; `cursor` is where the batch began.

    Raises:
        LeaseLostError: the row is not ours any more, or its cursor is not where this batch begins. The transaction
        must roll back.
    """
    params = {
        "id": lease.id,
        "fence": lease.fence,
        "cursor": cursor,
        "success": success,
        "failed": failed,
        "skipped": skipped,
        "updated": updated,
    }
    if conn.execute(_ST["move_cursor"], params).fetchone() is None:
        raise _lost(lease)


def finish(conn: Connection, lease: Lease, *, left_out: Mapping[str, Any]) -> Status:
    """End the job as its counts say, in the caller's fenced transaction; return its status."""
    return _end(conn, lease, "finish", "finished", {"left_out": Jsonb(dict(left_out))})


def refuse(
    conn: Connection,
    lease: Lease,
    *,
    reason: str | None,
    error: str,
    total_rows: int | None = None,
    left_out: Mapping[str, Any] | None = None,
) -> Status:
    """Fail the job as a whole with zero counts, in the transaction that removed its rows.

    `total_rows` when the sheet was read to its end.
    """
    params = {
        "reason": reason,
        "error": leases.storable(error),
        "total_rows": total_rows,
        "left_out": None if left_out is None else Jsonb(dict(left_out)),
    }
    return _end(conn, lease, "refuse", "refused", params)


def _end(conn: Connection, lease: Lease, statement: str, how: How, params: Mapping[str, Any]) -> Status:
    with conn.transaction():
        row = conn.execute(_ST[statement], {"id": lease.id, "fence": lease.fence, **params}).fetchone()
        if row is None:
            raise _lost(lease)
        conn.execute(_ST["end_attempt"], {"id": lease.id, "how": how})
        _announce(conn, lease.id)
        return cast(Status, row["status"])


def fail(conn: Connection, lease: Lease, *, error: str) -> None:
    """Fail the job with a sentence; rows and cursor stay."""
    with conn.transaction():
        leases.end(conn, lease, status="failed", error=error)
        conn.execute(_ST["end_attempt"], {"id": lease.id, "how": "failed"})
        _announce(conn, lease.id)


def hand_back(conn: Connection, lease: Lease) -> None:
    """Give the job back after a graceful stop: waiting again, its attempt not counted, with what was committed."""
    with conn.transaction():
        leases.hand_back(conn, lease)
        conn.execute(_ST["end_attempt"], {"id": lease.id, "how": "handed_back"})
        conn.execute(_ST["wake"])


def retry_later(conn: Connection, lease: Lease, *, delay: dt.timedelta, error: str) -> None:
    """Let the job wait again after a failure of the world or of the code; failed when its attempts are used up."""
    with conn.transaction():
        status = leases.retry_later(conn, lease, delay=delay, error=error)
        conn.execute(_ST["end_attempt"], {"id": lease.id, "how": "retry"})
        if status in ENDED:
            _announce(conn, lease.id)


def announcement(conn: Connection, job_id: int) -> dict[str, Any]:
    """Give what is announced of a job: job_id, fence, form, form_version, file_name, status, counts, reason, error."""
    row = conn.execute(_ST["announcement"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    return row


def _announce(conn: Connection, job_id: int) -> None:
    """Write the outbox message about the end of a job in the transaction that ends it."""
    outbox_message.put(conn, topic=TOPIC, key=f"import_job:{job_id}", payload=announcement(conn, job_id))


def to_replace(conn: Connection, ids: Sequence[int]) -> list[tuple[int, Mapping[str, Any]]]:
    """Lock the jobs that are to be replaced and not yet are; give each with its form."""
    return [(row["id"], row["definition"]) for row in conn.execute(_ST["to_replace"], {"ids": list(ids)}).fetchall()]


def mark_replaced(conn: Connection, old: int, *, by: int) -> None:
    """Say that the rows of `old` were replaced by the job `by`, in the transaction that removed them."""
    conn.execute(_ST["mark_replaced"], {"old": old, "id": by})


def add_faults(conn: Connection, job_id: int, faults: Sequence[tuple[int, str, str, str | None, str, int]]) -> None:
    """Store faults (source row, column, rule, value, message, position of the column) in the caller's transaction."""
    if len(faults) < 20:
        names = ("source_row", "column", "rule", "value", "message", "position")
        for fault in faults:
            conn.execute(_ST["add_fault"], {"job_id": job_id, **dict(zip(names, fault, strict=True))})
        return
    with conn.cursor() as cur, cur.copy(_ST["copy_faults"]) as copy:
        for fault in faults:
            copy.write_row((job_id, *fault))


def delete_faults(conn: Connection, job_id: int) -> None:
    """Remove the faults of a job (its workbook was refused as a whole)."""
    conn.execute(_ST["delete_faults"], {"id": job_id})


def faults(conn: Connection, job_id: int, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Give the faults of a job in sheet order: source_row, column, rule, value, message."""
    return conn.execute(_ST["faults"], {"id": job_id, "limit": limit}).fetchall()


def faults_by_rule(conn: Connection, job_id: int) -> dict[str, int]:
    """Count the bad cells of a job by rule, the commonest first."""
    return {row["rule"]: int(row["faults"]) for row in conn.execute(_ST["faults_by_rule"], {"id": job_id}).fetchall()}


def attempts(conn: Connection, job_id: int) -> list[dict[str, Any]]:
    """Give the attempts of a job, oldest first: fence, run_ref, began, ended, how."""
    return conn.execute(_ST["attempts"], {"id": job_id}).fetchall()


def job(conn: Connection, job_id: int) -> Job:
    """Read one job.

    Raises:
        JobNotFoundError: there is no such job.
    """
    row = conn.execute(_ST["job"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    return _job(row)


def jobs(
    conn: Connection,
    *,
    form: str | None = None,
    status: str | None = None,
    since: dt.datetime | None = None,
    limit: int | None = None,
) -> Jobs:
    """Read the newest jobs, newest first; `limit` null reads all."""
    params = {"form_name": form, "status": status, "since": since, "limit": limit}
    return Jobs(_job(row) for row in conn.execute(_ST["jobs"], params).fetchall())


def open_among(conn: Connection, ids: Sequence[int]) -> frozenset[int]:
    """Tell which of these jobs are still open (their rows may yet go)."""
    return frozenset(int(row["id"]) for row in conn.execute(_ST["statuses"], {"ids": list(ids)}).fetchall())


def due(conn: Connection) -> int:
    """Count the jobs that could be claimed now."""
    return _number(conn, "due", "due")


def next_moment_s(conn: Connection) -> float | None:
    """Seconds until the earliest job becomes due or a lease runs out (negative: already); null when there is none."""
    row = conn.execute(_ST["next_moment"]).fetchone()
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def _number(conn: Connection, statement: LiteralString, column: str) -> int:
    row = conn.execute(_ST[statement]).fetchone()
    return 0 if row is None else int(row[column])


def sent_before(conn: Connection, *, form_name: str, content_hash: str) -> Job | None:
    """Read the job that this content has in a form, the one that counts first; none when it was never sent."""
    row = conn.execute(_ST["same_content"], {"form_name": form_name, "content_hash": content_hash}).fetchone()
    return None if row is None else _job(row)


def from_row(row: Mapping[str, Any]) -> Job:
    """Make a job of a row as it may be seen."""
    return _job(row)


def _job(row: Mapping[str, Any]) -> Job:
    names = {f.name for f in dataclasses.fields(Job)} - {"form", "submitted_before", "history"}
    return Job(form=row["form_name"], **{name: row[name] for name in names})


def _lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(Leased.IMPORT_JOBS.table, lease.id, lease.fence)


def jobs_html(jobs: Sequence[Job]) -> str:
    """Jobs as an escaped HTML table."""
    headers = ("job", "form", "file", "status", "rows", "in", "failed", "skipped", "took", "error")
    rows = [
        (
            j.id,
            f"{j.form} v{j.form_version}",
            j.file_name,
            j.status,
            "" if j.total_rows is None else j.total_rows,
            j.success_rows,
            j.failed_rows,
            j.skipped_rows,
            "" if j.duration is None else f"{j.duration.total_seconds():.1f} s",
            j.last_error or "",
        )
        for j in jobs
    ]
    return table(headers, rows)
