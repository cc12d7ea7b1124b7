"""How import jobs hang together: the form a job was read with, which job corrects which, and what undid it.

```
submit ── job 1 (march.xlsx, 4 failed) ◄── corrects ── job 2 (march_faults.xlsx) ◄── corrects ── job 3
              ▲
              └── undo ── job 4: takes job 1's rows back
```

A job of kind `import` with a parent is a correction: the parent's failed rows, sent again. A job of kind `undo` takes
back what its parent did. The parent of a job never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer.db import Connection, statements
from importer.errors import JobNotFoundError, JobStateError

_ST = statements("import_chain")


@dataclass(frozen=True, kw_only=True)
class StoredForm:
    """A form as the database has it."""

    name: str
    version: int
    digest: str
    #: As `Form.to_dict()` gives it.
    definition: Mapping[str, Any]


def form_of(conn: Connection, job_id: int) -> StoredForm:
    """Read the form that a job was submitted with.

    Raises:
        JobNotFoundError: there is no such job.
    """
    row = conn.execute(_ST["form_of"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    return StoredForm(**row)


def version_of(conn: Connection, *, name: str, digest: str) -> int | None:
    """The version under which the database has this very form; none when it has not."""
    row = conn.execute(_ST["version_of"], {"name": name, "digest": digest}).fetchone()
    return None if row is None else int(row["version"])


def submit_undo(
    conn: Connection, job_id: int, *, max_attempts: int, priority: int = 2, run_ref: str | None = None
) -> tuple[int, bool]:
    """Make a waiting job that takes back what another did; return its id, and whether it is new.

    In the caller's transaction, which locks the job.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it is open, is an undo itself, or its rows were replaced or taken back before.
    """
    row = conn.execute(_ST["lock_job"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    there = conn.execute(_ST["open_undo"], {"id": job_id}).fetchone()
    if there is not None:
        return int(there["id"]), False
    why = _why_not(row)
    if why is not None:
        raise JobStateError(job_id, row["status"], why)
    if row["forgot"]:
        raise JobStateError(job_id, row["status"], "what the rows held that it updated is not kept any more")
    params = {"id": job_id, "max_attempts": max_attempts, "priority": priority, "run_ref": run_ref}
    made = conn.execute(_ST["submit_undo"], params).fetchone()
    assert made is not None  # an insert that returns
    conn.execute(_ST["wake"])
    return int(made["id"]), True


def _why_not(row: Mapping[str, Any]) -> str | None:
    if row["kind"] == "undo":
        return "it is an undo; to have the rows again, send the file again"
    if row["status"] in ("pending", "running"):
        return "cancel it first, then its rows can be taken back"
    if row["replaced_by"] is not None:
        return f"its rows were replaced by import job {row['replaced_by']}"
    if row["undone_by"] is not None:
        return f"its rows were taken back before, by job {row['undone_by']}"
    return None


def mark_undone(conn: Connection, job_id: int, *, by: int) -> None:
    """Say that the rows of a job were taken back, in the transaction that ends the undo."""
    conn.execute(_ST["mark_undone"], {"id": job_id, "by": by})


def history(conn: Connection, job_id: int) -> list[dict[str, Any]]:
    """Read a job with all that it hangs on, oldest first, each as it may be seen."""
    return conn.execute(_ST["history"], {"id": job_id}).fetchall()


def imports_of_chain(conn: Connection, job_id: int) -> list[int]:
    """The other imports that a job hangs on and whose rows count: not undone, not replaced."""
    return [int(row["id"]) for row in conn.execute(_ST["imports_of_chain"], {"id": job_id}).fetchall()]


def corrected_by_stamp(conn: Connection, job_id: int, *, form_name: str, content_hash: str) -> int | None:
    """The import whose faults a stamped workbook shows; none when it is not of this database, or counts no more."""
    params = {"id": job_id, "form_name": form_name, "content_hash": content_hash}
    row = conn.execute(_ST["corrected_by_stamp"], params).fetchone()
    return None if row is None else int(row["id"])


def require_correctable(conn: Connection, job_id: int, *, form_name: str) -> None:
    """Return when rows of this import may be sent again.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it is open, an undo, of another form, or its rows were replaced or taken back.
    """
    row = conn.execute(_ST["lock_job"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    why = _why_not(row)
    if why is None and form_of(conn, job_id).name != form_name:
        why = f"it is an import into the form {form_of(conn, job_id).name}, not {form_name}"
    if why is not None:
        raise JobStateError(job_id, row["status"], why)


def failed_rows(conn: Connection, job_id: int) -> frozenset[int]:
    """The sheet rows of a job that have faults."""
    return frozenset(int(row["source_row"]) for row in conn.execute(_ST["failed_rows"], {"id": job_id}).fetchall())


def corrected_rows(conn: Connection, job_id: int, *, by: int) -> frozenset[int]:
    """The failed rows of a job that other jobs than `by` have corrected."""
    rows = conn.execute(_ST["corrected_rows"], {"id": job_id, "by": by}).fetchall()
    return frozenset(int(row["in_row"]) for row in rows)


def forget_matches(conn: Connection, job_id: int) -> None:
    """Let go what a job found out about its rows, in the transaction that takes them back or looks anew."""
    conn.execute(_ST["forget_matches"], {"id": job_id})


def forget_left(conn: Connection, job_id: int) -> None:
    """Let go which rows of a sheet were left, once all are dealt with; which failed rows it corrected stays known."""
    conn.execute(_ST["forget_left"], {"id": job_id})


def matches(conn: Connection, job_id: int, *, first: int, last: int) -> dict[int, str]:
    """What is known of rows of a job's sheet: left, changed."""
    rows = conn.execute(_ST["matches"], {"id": job_id, "first": first, "last": last}).fetchall()
    return {int(row["source_row"]): row["kind"] for row in rows}


def has_moved(conn: Connection, job_id: int, *, parent: int) -> bool:
    """Whether rows stand elsewhere in the sheet than in that of the parent."""
    row = conn.execute(_ST["has_moved"], {"id": job_id, "parent": parent}).fetchone()
    return bool(row and row["moved"])


def add_correction(conn: Connection, job_id: int, *, source_row: int, parent: int, in_row: int) -> bool:
    """Say that a row corrects a failed one; false when another row did."""
    params = {"id": job_id, "source_row": source_row, "parent": parent, "in_row": in_row}
    return conn.execute(_ST["add_correction"], params).fetchone() is not None
