"""Running one job in the caller's own process, with a bar, or waiting while somebody else runs it."""

from __future__ import annotations

import datetime as dt
import math
import time
from contextlib import suppress

from importer import import_job
from importer.batch.attempt import run
from importer.batch.importing import Progress
from importer.batch.progress import bar
from importer.batch.writer import PATIENCE_S, At
from importer.db import Connection, Database
from importer.errors import DatabaseUnavailableError, ImporterError, LeaseLostError
from importer.import_job import Job
from importer.lease import Lease
from importer.store import Store

#: Pause between two looks at a job that another holder runs, in seconds.
_LOOK_S = 0.5


def run_here(
    db: Database,
    job: Job,
    lease: Lease | None,
    *,
    holder: str,
    run_ref: str | None,
    wait: bool | dt.timedelta,
    progress: bool,
    watch: Progress | None,
    at: At,
) -> Job:
    """Run a job that was claimed, or wait for it; return it as it ended, or as it is when there is no waiting."""
    try:
        with bar(job.file_name, shown=progress and not job.ended) as move:
            watched = _both(move, watch)
            return _until_ended(db, job, lease, holder=holder, run_ref=run_ref, wait=wait, watch=watched, at=at)
    except BaseException:
        if lease is not None:  # stopped before it ran; a run that began has settled its lease
            with suppress(ImporterError), db.connection() as conn:
                import_job.hand_back(conn, lease)
        raise


def _both(one: Progress, other: Progress | None) -> Progress:
    def move(rows: int, failed: int) -> None:
        one(rows, failed)
        if other is not None:
            other(rows, failed)

    return move


def claim_here(conn: Connection, db: Database, job_id: int, holder: str, run_ref: str | None) -> Lease | None:
    """Claim a job by its number for this process; none when it waits for its time, or somebody else has it."""
    return import_job.claim(conn, holder=holder, ttl=db.settings.imports.lease, id=job_id, run_ref=run_ref)


def _until_ended(
    db: Database,
    job: Job,
    lease: Lease | None,
    *,
    holder: str,
    run_ref: str | None,
    wait: bool | dt.timedelta,
    watch: Progress,
    at: At,
) -> Job:
    """Run the job here when it can be claimed, wait for it while somebody else runs it.

    A database that is away for less than `PATIENCE_S` is waited for as well.
    """
    store = Store(db.settings.store)
    patience_s = wait.total_seconds() if isinstance(wait, dt.timedelta) else math.inf if wait else 0.0
    began = seen = time.monotonic()
    while not job.ended:
        if lease is not None:
            ran = run(db, lease, store=store, progress=watch, at=at)
            if ran.error is not None and not isinstance(ran.error, LeaseLostError):
                raise ran.error
            job, lease, seen = ran.job, None, time.monotonic()
            continue
        if time.monotonic() - began >= patience_s:
            return job
        time.sleep(_LOOK_S)
        try:
            with db.connection() as conn:
                lease = claim_here(conn, db, job.id, holder, run_ref)
                job = import_job.job(conn, job.id)
        except DatabaseUnavailableError:
            if time.monotonic() - seen > PATIENCE_S:
                raise
            continue
        seen = time.monotonic()
        watch(job.cursor, job.failed_rows)
    return job
