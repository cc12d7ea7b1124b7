"""Taking an import back: what people call, and what it would do."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, overload

import polars as pl

from importer import import_chain, import_job
from importer.batch.door import database_of, id_of
from importer.batch.here import claim_here, run_here
from importer.batch.importing import CHUNK_ROWS, Progress
from importer.batch.opened import opened
from importer.batch.plan import FaultRow, Plan, batches
from importer.batch.undoing import take_back_batch
from importer.batch.writer import At
from importer.db import Database, repeat_on_conflict
from importer.display import count, table
from importer.errors import WorkbookError
from importer.forms import FAULT_SCHEMA, Form, read_rows
from importer.import_job import Job
from importer.lease import holder_name
from importer.store import Store
from importer.target import Target

#: Stands for a job in a preview: no job has this id.
_NO_JOB = -1


@dataclass(frozen=True, kw_only=True)
class UndoPreview:
    """What an undo would do now; nothing was changed."""

    job: Job
    #: Rows that would go.
    removed: int
    #: Rows that would get back what they held.
    restored: int
    #: Rows that would be kept because somebody changed them since, as a frame of faults.
    kept: pl.DataFrame

    def __repr__(self) -> str:
        """Counts, in one line."""
        what = f"undo of import job {self.job.id} ({self.job.file_name})"
        kept = f"{self.kept.height:,} were changed since and would be kept"
        return f"{what}: {count(self.removed, 'row')} would go, {self.restored:,} would get back what they held, {kept}"

    def _repr_html_(self) -> str:
        headers = ["would go", "would be given back", "changed since, kept"]
        return table(headers, [(self.removed, self.restored, self.kept.height)], caption=f"undo of job {self.job.id}")


@overload
def undo(
    job: Job | int,
    *,
    db: Database | None = None,
    dry_run: Literal[False] = False,
    queue: bool = False,
    wait: bool = True,
    progress: bool = True,
    run_ref: str | None = None,
    watch: Progress | None = None,
    at: At = ...,
) -> Job: ...
@overload
def undo(job: Job | int, *, db: Database | None = None, dry_run: Literal[True]) -> UndoPreview: ...
def undo(
    job: Job | int,
    *,
    db: Database | None = None,
    dry_run: bool = False,
    queue: bool = False,
    wait: bool = True,
    progress: bool = True,
    run_ref: str | None = None,
    watch: Progress | None = None,
    at: At = lambda _point: None,
) -> Job | UndoPreview:
    """Take an import back: rows it put in go, rows it updated get back what they held.

    An undo is a job of its own (`kind` undo, `parent_id` the import), leased and resumed like any: killed and called
    again it goes on. Rows that somebody changed since are kept and listed (`faults(undo_job)`, rule `changed`). At its
    end the import has `undone_at`, and the same file may come again.

    Args:
        job: the import.
        db: the database; else the one of `connect()`.
        dry_run: change nothing, and return an `UndoPreview`.
        queue: let a worker do it, and return the waiting job.
        wait: wait for an undo of this import that somebody else runs.
        progress: show a bar.
        run_ref: who runs it outside, for example a Dagster run id.
        watch: called with (rows dealt with, rows kept) as it goes.
        at: called at named points (tests end the process there).

    Returns the undo job as it ended: `success_rows` were taken back (`updated_rows` of them restored), `failed_rows`
    were kept.

    Raises:
        JobNotFoundError: there is no such job.
        JobStateError: it is open, is an undo itself, or its rows were replaced or taken back before.
        StoreError, DatabaseError: store or database do not answer; the undo waits and goes on later.
    """
    with database_of(db) as database:
        if dry_run:
            return _preview(database, id_of(job))
        holder = holder_name("import")
        rhythm = database.settings.imports
        with database.connection() as conn, conn.transaction():
            made, new = import_chain.submit_undo(conn, id_of(job), max_attempts=rhythm.max_attempts, run_ref=run_ref)
            lease = None
            if not queue:
                lease = claim_here(conn, database, made, holder, run_ref)
            waiting = import_job.job(conn, made)
        before = None if new else waiting
        if queue:
            return dataclasses.replace(waiting, submitted_before=before)
        done = run_here(
            database, waiting, lease, holder=holder, run_ref=run_ref, wait=wait, progress=progress, watch=watch, at=at
        )
        return dataclasses.replace(done, submitted_before=before)


def _preview(db: Database, job_id: int) -> UndoPreview:
    with db.connection() as conn:
        job = import_job.job(conn, job_id)
        form = Form.from_dict(import_chain.form_of(conn, job_id).definition)
    form = dataclasses.replace(form, sheet=job.sheet) if job.sheet is not None else form
    plan = Plan(form=form, target=Target.of(form.to_dict()), job_id=_NO_JOB)

    def run() -> UndoPreview:
        back, restored = 0, 0
        kept: list[FaultRow] = []
        path = Store(db.settings.store).path(job.content_hash)
        with opened(path, db.settings, form, name=job.file_name) as workbook:
            reading = iter(read_rows(workbook, form, chunk_rows=CHUNK_ROWS))
            with conn.transaction(force_rollback=True):
                try:
                    for chunk in reading:
                        for batch in batches(chunk, start=0, rows=CHUNK_ROWS):
                            outcome = take_back_batch(conn, plan, batch, parent=job_id)
                            back, restored = back + outcome.success, restored + outcome.updated
                            kept += outcome.faults
                except WorkbookError:
                    pass  # the import has no row from behind there
        frame = pl.DataFrame([fault[:5] for fault in kept], schema=FAULT_SCHEMA, orient="row")
        return UndoPreview(job=job, removed=back - restored, restored=restored, kept=frame)

    with db.connection() as conn:
        return repeat_on_conflict(run)
