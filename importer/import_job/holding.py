"""What only the holder of a job does; each write names its fence, and whatever ends the job announces its end."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, cast

from importer import lease as leases
from importer import outbox_message
from importer.db import Connection, Jsonb, statements
from importer.errors import LeaseLostError
from importer.import_job.listing import announcement
from importer.import_job.record import ENDED, How, Status, Work
from importer.lease import Lease, Leased

_ST = statements("import_job")

#: Topic of the outbox message that every end of a job writes in its transaction; its payload is the announcement.
TOPIC = "import_ended"


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
            announce(conn, job_id)
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
        announce(conn, lease.id)
        return cast(Status, row["status"])


def fail(conn: Connection, lease: Lease, *, error: str) -> None:
    """Fail the job with a sentence; rows and cursor stay."""
    with conn.transaction():
        leases.end(conn, lease, status="failed", error=error)
        conn.execute(_ST["end_attempt"], {"id": lease.id, "how": "failed"})
        announce(conn, lease.id)


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
            announce(conn, lease.id)


def announce(conn: Connection, job_id: int) -> None:
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


def copy_faults(conn: Connection, csv: bytes) -> None:
    """Store many faults in the caller's transaction.

    CSV of job_id, source_row, column, rule, value, message and the position of the column in the form.
    """
    with conn.cursor() as cur, cur.copy(_ST["copy_faults_csv"]) as copy:
        copy.write(csv)


def delete_faults(conn: Connection, job_id: int) -> None:
    """Remove the faults of a job (its workbook was refused as a whole)."""
    conn.execute(_ST["delete_faults"], {"id": job_id})


def _lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(Leased.IMPORT_JOBS.table, lease.id, lease.fence)
