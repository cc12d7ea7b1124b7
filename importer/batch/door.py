"""What a notebook, a command line and a sensor call: submit a workbook, import it here, look at jobs."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from importer import import_chain, import_job, import_run, inbox
from importer.batch.from_address import submit_address
from importer.batch.here import claim_here, run_here
from importer.batch.importing import Progress
from importer.batch.request import request_of
from importer.batch.writer import At
from importer.db import Connection, Database, connect, dict_rows, translated
from importer.errors import JobError
from importer.forms import FAULT_SCHEMA, Form
from importer.import_address import is_address
from importer.import_job import Job, Jobs
from importer.import_run import RunLeases
from importer.lease import holder_name


def submit(
    path: str | os.PathLike[str],
    form: Form,
    *,
    db: Database | None = None,
    conn: Connection | None = None,
    sheet: str | None = None,
    key: str | None = None,
    force: bool = False,
    replace: bool = False,
    create_table: bool = False,
    batch_rows: int | None = None,
    priority: int = 2,
    run_ref: str | None = None,
    corrects: Job | int | None = None,
    only_changes: bool = False,
) -> Job:
    """Queue a workbook for import; a worker on any machine with the same store and database runs it.

    The file is copied into the store first, so editing the original changes nothing. The same content, form version
    and sheet is one job: the earlier one comes back with `submitted_before` set. A failed or cancelled job that did
    not read its sheet to the end is taken up from its cursor.

    Args:
        path: the workbook, or an address of http(s) where it stands.
        form: what its sheet has to be.
        db: the database; else the one of `connect()`.
        conn: write the job in this connection's transaction instead (psycopg 3); it counts once that commits.
        sheet: a sheet by name, instead of the form's own choice.
        key: a name of the caller's for this submission; the same key with other input is an error.
        force: make a new job although the content was imported before.
        replace: the content came under another version of the form; its rows go when the new import starts.
        create_table: create the form's table when it is missing.
        batch_rows: rows per transaction, instead of the setting.
        priority: 0 (first) to 3.
        run_ref: who runs it outside, for example a Dagster run id.
        corrects: the import whose failed rows come again, corrected: only they go in. Known by itself where the file
            is a fault workbook of ours; a file that was corrected by hand needs it.
        only_changes: leave rows that are in the table as they are, import the others.

    Raises:
        WorkbookError: the file is no workbook that can be read.
        JobStateError: the import that it corrects is open, or its rows were replaced or taken back.
        FormDisabledError: the form takes no imports at present.
        JobConflictError: the key, or the content under another version of the form, came before.
        StoreError: the file cannot be copied into the store.
        RequestRefusedError: the address may not be asked.
        RequestError: the address did not give the file.
    """
    options = {
        "sheet": sheet,
        "key": key,
        "force": force,
        "replace": replace,
        "create_table": create_table,
        "batch_rows": batch_rows,
        "priority": priority,
        "run_ref": run_ref,
        "parent_id": None if corrects is None else id_of(corrects),
        "only_changes": only_changes,
    }
    with database_of(db) as database:
        if is_address(path):
            return submit_address(database, str(path), form, options, conn=conn)
        request = request_of(database, Path(path), form, options)
        if conn is not None:
            with translated(database.label), dict_rows(conn) as own:
                return import_job.submit(own, request)
        with database.connection() as pooled:
            return import_job.submit(pooled, request)


def import_workbook(
    path: str | os.PathLike[str],
    form: Form,
    *,
    db: Database | None = None,
    sheet: str | None = None,
    key: str | None = None,
    force: bool = False,
    replace: bool = False,
    create_table: bool = True,
    batch_rows: int | None = None,
    priority: int = 2,
    run_ref: str | None = None,
    corrects: Job | int | None = None,
    only_changes: bool = False,
    wait: bool | dt.timedelta = True,
    progress: bool = True,
    watch: Progress | None = None,
    at: At = lambda _point: None,
) -> Job:
    """Import a workbook here and now; the job is claimed in the transaction that makes it.

    A job that exists already is taken up when it waits, failed before its sheet's end, or lost its holder; one that
    another holder runs is waited for (`wait=False` gives it back as it is). Stopping the cell, or Ctrl-C, gives the
    job back with what was committed; the same call goes on.

    The arguments are those of `submit`, but `create_table` is on.
    `wait`: wait for a job that somebody else runs, at most this long when it is a duration.
    `progress`: show a bar. `watch`: called with (rows dealt with, rows failed) as it goes, for a display of one's own.
    `at`: called at named points of the import (tests end the process there).

    Returns the job as it ended. Bad rows are no error: look at `failed_rows` and `faults(job)`.

    Raises:
        WorkbookError: the workbook cannot be imported at all; the job has failed and left no row.
        TargetError: the form's table is missing or does not fit.
        StoreError, DatabaseError: store or database do not answer; rows and cursor are kept and the job waits.
        Everything that `submit` raises.
    """
    options = {
        "sheet": sheet,
        "key": key,
        "force": force,
        "replace": replace,
        "create_table": create_table,
        "batch_rows": batch_rows,
        "priority": priority,
        "run_ref": run_ref,
        "parent_id": None if corrects is None else id_of(corrects),
        "only_changes": only_changes,
    }
    with database_of(db) as database:
        request = request_of(database, Path(path), form, options)
        holder = holder_name("import")
        with database.connection() as conn, conn.transaction():
            job = import_job.submit(conn, request)
            lease = None if job.ended else claim_here(conn, database, job.id, holder, run_ref)
        done = run_here(
            database, job, lease, holder=holder, run_ref=run_ref, wait=wait, progress=progress, watch=watch, at=at
        )
        return dataclasses.replace(done, submitted_before=job.submitted_before)


def retry(job: Job | int, *, db: Database | None = None) -> Job:
    """Let a failed or cancelled job wait again from its cursor, with all its attempts.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it is open, ended well, was replaced, or read its sheet to the end.
    """
    with connection_of(db) as conn:
        return import_job.take_up(conn, id_of(job))


def cancel(job: Job | int, *, db: Database | None = None) -> Job:
    """Cancel an open job; a worker that runs it stops at its next batch. Rows that were committed stay.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it has ended.
    """
    with connection_of(db) as conn:
        return import_job.cancel(conn, id_of(job))


def jobs(
    *,
    db: Database | None = None,
    form: str | None = None,
    status: str | None = None,
    since: dt.datetime | None = None,
    limit: int | None = None,
) -> Jobs:
    """Read import jobs, newest first, each with started, ended and duration; a table in a notebook."""
    with connection_of(db) as conn:
        return import_job.jobs(conn, form=form, status=status, since=since, limit=limit)


def job(id: int | Job, *, db: Database | None = None) -> Job:  # noqa: A002 - a name of the front door
    """Read one import job, with its `history`: what it corrects, its corrections and undos, oldest first.

    Raises:
        JobNotFoundError: there is no such job.
    """
    with connection_of(db) as conn:
        found = import_job.job(conn, id_of(id))
        chain = tuple(import_job.from_row(row) for row in import_chain.history(conn, found.id))
        return dataclasses.replace(found, history=Jobs(chain))


def faults(job: Job | int, *, db: Database | None = None, limit: int | None = None) -> pl.DataFrame:
    """Read the faults of a job in sheet order, one row per bad cell.

    The frame has source_row i64 and the strings column, rule, value, message.

    Raises:
        JobNotFoundError: there is no such job.
    """
    with connection_of(db) as conn:
        import_job.job(conn, id_of(job))
        rows = import_job.faults(conn, id_of(job), limit=limit)
    return pl.DataFrame(rows, schema=FAULT_SCHEMA, orient="row")


def stored_form(name: str, *, db: Database | None = None) -> Form:
    """Read the newest stored version of a form.

    Raises:
        JobError: no form has this name.
    """
    with connection_of(db) as conn:
        for row in import_job.forms(conn):
            if row["name"] == name:
                return Form.from_dict(row["definition"])
    raise JobError(f"no form {name!r} is stored in the database")


def faults_by_rule(job: Job | int, *, db: Database | None = None) -> dict[str, int]:
    """Count the bad cells of a job by rule, the commonest first."""
    with connection_of(db) as conn:
        return import_job.faults_by_rule(conn, id_of(job))


def due(*, db: Database | None = None) -> int:
    """Count the import jobs that could be claimed now: due ones, and those whose holder did not come back."""
    with connection_of(db) as conn:
        return import_job.due(conn)


def run_leases(run_refs: Sequence[str], *, db: Database | None = None) -> RunLeases:
    """Tell what runs of an orchestrator hold, each by its `run_ref`, and the database's time of that."""
    with connection_of(db) as conn:
        return import_run.run_leases(conn, run_refs)


def run_jobs(run_ref: str, *, db: Database | None = None) -> Jobs:
    """Read the import jobs that a run of an orchestrator worked on, in the order it began them."""
    with connection_of(db) as conn:
        return Jobs(import_job.job(conn, job_id) for job_id in import_run.jobs_of_run(conn, run_ref))


def inbox_ledger(*, db: Database | None = None, limit: int | None = None) -> list[dict[str, Any]]:
    """Read what became of the files of the inbox, newest first.

    Each with path, stamp, outcome, content_hash, form_name, job_id, message, seen_at and ended_at.
    """
    with database_of(db) as database, database.connection() as conn:
        return inbox.ledger(conn, inbox.folder(database.settings), limit=limit)


def locate(name: str, *, db: Database) -> Path:
    """Find the file of this name below the inbox, else the workbook of this content hash in the store.

    Raises:
        StoreError: there is none, or the name leads out of the inbox.
    """
    return inbox.locate(db.settings, name)


def id_of(job: Job | int) -> int:
    """The number of a job that is given itself or by its number."""
    return job.id if isinstance(job, Job) else job


@contextmanager
def database_of(db: Database | None) -> Iterator[Database]:
    """The caller's database, else one of our own for this call."""
    if db is not None:
        yield db
        return
    with connect() as own:
        yield own


@contextmanager
def connection_of(db: Database | None) -> Iterator[Connection]:
    """A connection to the caller's database, else to one of our own for this call."""
    with database_of(db) as database, database.connection() as conn:
        yield conn
