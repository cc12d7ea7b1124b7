"""Reading jobs, their faults and their attempts; nothing here writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, LiteralString

from importer.db import Connection, statements
from importer.errors import JobNotFoundError
from importer.import_job.record import Job, Jobs, from_row

_ST = statements("import_job")

#: Statement by which a worker hears of new jobs.
LISTEN = _ST["listen"]


def job(conn: Connection, job_id: int) -> Job:
    """Read one job.

    Raises:
        JobNotFoundError: there is no such job.
    """
    row = conn.execute(_ST["job"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    return from_row(row)


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
    return Jobs(from_row(row) for row in conn.execute(_ST["jobs"], params).fetchall())


def faults(conn: Connection, job_id: int, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Give the faults of a job in sheet order: source_row, column, rule, value, message."""
    return conn.execute(_ST["faults"], {"id": job_id, "limit": limit}).fetchall()


def faults_by_rule(conn: Connection, job_id: int) -> dict[str, int]:
    """Count the bad cells of a job by rule, the commonest first."""
    return {row["rule"]: int(row["faults"]) for row in conn.execute(_ST["faults_by_rule"], {"id": job_id}).fetchall()}


def attempts(conn: Connection, job_id: int) -> list[dict[str, Any]]:
    """Give the attempts of a job, oldest first: fence, run_ref, began, ended, how."""
    return conn.execute(_ST["attempts"], {"id": job_id}).fetchall()


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
    return None if row is None else from_row(row)


def announcement(conn: Connection, job_id: int) -> dict[str, Any]:
    """Give what is announced of a job: job_id, fence, form, form_version, file_name, status, counts, reason, error."""
    row = conn.execute(_ST["announcement"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    return row
