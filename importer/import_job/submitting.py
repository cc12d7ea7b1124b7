"""What anybody may do with a job: submit it, take it up again, cancel it.

Submissions of one content into one form take turns by an advisory lock, so two at once make one job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from importer.db import Connection, statements
from importer.errors import JobConflictError, JobStateError
from importer.import_job.holding import announce
from importer.import_job.listing import job
from importer.import_job.record import Job, Request, from_row
from importer.import_job.stored_forms import store_form

_ST = statements("import_job")


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
            conn.execute(_ST["lock_key"], {"key": request.key})
            keyed = conn.execute(_ST["by_key"], {"key": request.key}).fetchone()
            if keyed is not None:
                return _same_key(conn, request, version, keyed, others)
        same = [row for row in earlier if row["form_version"] == version and row["sheet"] == request.sheet]
        if same and not request.force:
            found = _known(conn, request, same[0], others)
        else:
            found = _made(conn, request, version, beside=bool(same), replaces=_replaced(conn, request, version, others))
        if request.key is not None:
            conn.execute(_ST["keep_key"], {"key": request.key, "id": found.id})
        return found


def _made(conn: Connection, request: Request, version: int, *, beside: bool, replaces: Sequence[int]) -> Job:
    """Make a new waiting job; `beside` says that this content has one."""
    params = {**_fields(request), "form_version": version, "forced": beside, "replaces": list(replaces)}
    row = conn.execute(_ST["submit"], params).fetchone()
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
    before = from_row(row)
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
    return dataclasses.replace(before, submitted_before=from_row(row))


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
        announce(conn, job_id)
        return found
