"""Running one claimed import job to its end: the only place that reads a workbook and writes a table.

```
                  ┌────────────── this thread ──────────────┐   ┌── Writer ──┐
workbook ─ header ─ prepare ─ (refuse_all: whole sheet) ─ chunks ─ batches ─► fenced batches ─► finish
             │         │                                     │                     │
             └ refused ┴ table does not fit: failed          └ broken: refused     └ lease lost: nothing more is written
```

How it ends:

| what happened | the job |
|---|---|
| the sheet was read to its end | success, partial_success or failed, by its counts |
| the workbook is corrupt, unsafe, too large, lacks a column | failed with the reason; rows and faults go, counts 0 |
| `refuse_all` and a fault | failed; its rows go, the faults stay, counts 0 |
| the table does not fit, stored content changed, cursor beyond the rows | failed; rows and cursor stay |
| store, disk or database unreachable, or a bug | waits again after the retry delay; failed at max attempts |
| interrupted (Ctrl-C, SIGTERM, a notebook's stop) | waits again at once, the attempt not counted |
| the lease was lost (cancelled, taken over) | what the other one made of it; nothing is written here |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from importer import import_job
from importer.batch.apply import Batch, FaultRow, Plan, batches
from importer.batch.writer import At, RefuseAllError, Writer
from importer.db import Connection, Database, database_error, errors, repeat_on_conflict
from importer.errors import (
    ContentChangedError,
    CursorBeyondRowsError,
    DatabaseError,
    DatabaseUnavailableError,
    FormError,
    ImporterError,
    LeaseLostError,
    TargetError,
    WorkbookError,
)
from importer.excel import Workbook, open_workbook
from importer.forms import Form, Reading, SeenKeys, read_rows
from importer.import_job import Job, Work
from importer.lease import Lease, fenced
from importer.store import Store
from importer.target import Target, compare, create, delete_rows, exists, lock

#: Data rows that were dealt with, and how many of them failed; called from the thread that reads.
Progress = Callable[[int, int], None]

#: Checking costs about 10 ms a call whatever the rows, so chunks are larger than batches.
CHUNK_ROWS = 50_000

#: SQLSTATE classes after which trying again changes nothing: the statement or a name in it, a missing right, a
#: read-only session.
_LASTING_CLASSES = ("0A", "3D", "3F", "42")
_LASTING_STATES = ("25006",)


class StoppedError(Exception):
    """The import was asked to stop; the job waits again with what was committed."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of a job here: as it stands now, and the error that ended the run, if one did."""

    job: Job
    error: Exception | None = None


def run(
    db: Database,
    lease: Lease,
    *,
    store: Store,
    stopping: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _rows, _failed: None,
    at: At = lambda _point: None,
) -> Ran:
    """Run a claimed job until it ended, failed, was stopped or was lost.

    Errors are returned, and the job's row says the same.
    `stopping` is asked between batches. A `KeyboardInterrupt` (any BaseException that is no Exception) gives the job
    back and goes on.

    Raises:
        DatabaseUnavailableError: the database is away, so the row cannot say anything; the job is due again when its
        lease runs out.
    """
    error: Exception | None = None
    try:
        with db.connection() as conn:
            work = import_job.work(conn, lease)
        _Run(db, lease, work, store=store, stopping=stopping, progress=progress, at=at).all()
    except Exception as raised:  # noqa: BLE001 - every error has its way to the row
        error = _settle(db, lease, raised)
    except BaseException:
        with suppress(ImporterError), db.connection() as conn:
            import_job.hand_back(conn, lease)
        raise
    with db.connection() as conn:
        return Ran(job=import_job.job(conn, lease.id), error=error)


class _Run:
    """One attempt at one job."""

    def __init__(
        self,
        db: Database,
        lease: Lease,
        work: Work,
        *,
        store: Store,
        stopping: Callable[[], bool],
        progress: Progress,
        at: At,
    ) -> None:
        self.db = db
        self.lease = lease
        self.work = work
        self.store = store
        self.stopping = stopping
        self.progress = progress
        self.at = at
        form = Form.from_dict(work.definition)
        self.form = dataclasses.replace(form, sheet=work.sheet) if work.sheet is not None else form
        self.plan = Plan(form=self.form, target=Target.of(work.definition), job_id=lease.id)
        self.batch_rows = work.batch_rows or db.settings.batch_rows

    def all(self) -> None:
        """From the stored workbook to the end of the job."""
        self.at("claimed")
        self.store.verify(self.work.content_hash)
        try:
            with open_workbook(self.store.path(self.work.content_hash)) as workbook:
                self._import(workbook)
        except WorkbookError as error:
            self._undo(reason=error.reason, error=str(error))
            raise

    def _import(self, workbook: Workbook) -> None:
        reading = self._read(workbook, skip=self.work.cursor)
        self._prepare()
        with Writer(self.db, self.lease, self.plan, at=self.at) as writer:
            if self.form.on_fault == "refuse_all" and self.work.cursor == 0 and self._has_faults(workbook, writer):
                return
            try:
                self._write(reading, writer)
            except RefuseAllError as struck:
                self._undo(error=_refused_all(len(struck.outcome.faults)), faults=struck.outcome.faults)
                return
        if reading.rows_seen < self.work.cursor:
            raise CursorBeyondRowsError(
                f"{self.work.file_name}: {self.work.cursor} rows were dealt with before, "
                f"but the sheet has only {reading.rows_seen}"
            )
        self.at("finishing")
        self._fenced(lambda conn: import_job.finish(conn, self.lease, left_out=reading.left_out.to_dict()))

    def _read(self, workbook: Workbook, *, skip: int) -> Reading:
        rows = self.batch_rows * max(1, CHUNK_ROWS // self.batch_rows)
        return read_rows(workbook, self.form, chunk_rows=rows, skip=skip)

    def _write(self, reading: Reading, writer: Writer) -> None:
        cursor = self.work.cursor
        for chunk in reading:
            for batch in batches(chunk, start=cursor, rows=self.batch_rows):
                writer.put(self._encoded(batch), waiting=lambda: self._tick(writer))
                self._tick(writer)
                cursor += len(batch)
        writer.close(waiting=lambda: self._tick(writer))
        self._tick(writer)

    def _encoded(self, batch: Batch) -> Batch:
        rows = self.plan.encode(batch.accepted)
        rows.encode()
        return dataclasses.replace(batch, encoded=rows)

    def _tick(self, writer: Writer) -> None:
        self.progress(self.work.cursor + writer.committed, self.work.failed_rows + writer.failed)
        if self.stopping():
            raise StoppedError

    def _prepare(self) -> None:
        """Let go what this job replaces, and make sure of the table, before any row."""
        target = self.plan.target

        def prepare(conn: Connection) -> None:
            if self.work.replaces:
                for old, definition in import_job.to_replace(conn, self.work.replaces):
                    delete_rows(conn, Target.of(definition), job_id=old)
                    import_job.mark_replaced(conn, old, by=self.lease.id)
            if self.work.create_table and not exists(conn, target):
                lock(conn, target)
                if not exists(conn, target):
                    create(conn, target)
            compare(conn, target)

        self._fenced(prepare)

    def _has_faults(self, workbook: Workbook, writer: Writer) -> bool:
        """Read the whole sheet before the first batch; where a row has a fault, store the faults and refuse the job."""
        reading = self._read(workbook, skip=0)
        seen = SeenKeys(self.form)
        found = 0
        self._fenced(lambda conn: import_job.delete_faults(conn, self.lease.id))
        for chunk in reading:
            faults = self.plan.fault_rows(seen.sift(chunk).faults)
            if faults:
                self._fenced(partial(_add_faults, self.lease.id, faults))
            found += len(faults)
            writer.raise_error()
            if self.stopping():
                raise StoppedError
        if found:
            self._undo(error=_refused_all(found), total_rows=reading.rows_seen, faults=())
        return found > 0

    def _undo(
        self,
        *,
        error: str,
        reason: str | None = None,
        faults: Sequence[FaultRow] | None = None,
        total_rows: int | None = None,
    ) -> None:
        """Promise 9: the rows that this job put in go and its counts are zero, in one transaction with its end.

        Its faults go too, unless `faults` says which come to those there are.
        """

        def undo(conn: Connection) -> None:
            if import_job.work(conn, self.lease).success_rows:
                delete_rows(conn, self.plan.target, job_id=self.lease.id)
            if faults is None:
                import_job.delete_faults(conn, self.lease.id)
            else:
                import_job.add_faults(conn, self.lease.id, faults)
            import_job.refuse(conn, self.lease, reason=reason, error=error, total_rows=total_rows)

        self._fenced(undo)

    def _fenced(self, work: Callable[[Connection], object]) -> None:
        def transaction() -> None:
            with fenced(conn, self.lease):
                work(conn)

        with self.db.connection() as conn:
            repeat_on_conflict(transaction)


def _add_faults(job_id: int, faults: Sequence[FaultRow], conn: Connection) -> None:
    import_job.add_faults(conn, job_id, faults)


def _refused_all(faults: int) -> str:
    return f"refused as a whole: {faults:,} bad cells, and the form says on_fault: refuse_all; no row was kept"


def _settle(db: Database, lease: Lease, error: Exception) -> Exception | None:
    """Say in the job's row how the run ended; return the error that the caller should know of."""
    if isinstance(error, LeaseLostError | WorkbookError):
        return error  # the row belongs to somebody else, or says it already
    if isinstance(error, errors.Error):
        error = database_error(error, db.label)
    delay = db.settings.imports.retry_delay
    with suppress(LeaseLostError), db.connection() as conn:
        if isinstance(error, StoppedError):
            import_job.hand_back(conn, lease)
            return None
        if _lasts(error):
            import_job.fail(conn, lease, error=str(error))
        else:
            import_job.retry_later(conn, lease, delay=delay, error=_sentence(error))
    return error


def _lasts(error: Exception) -> bool:
    """Whether trying again would change nothing, so that the job has failed."""
    if isinstance(error, DatabaseError) and not isinstance(error, DatabaseUnavailableError):
        state = getattr(error.__cause__, "sqlstate", None) or ""
        return state[:2] in _LASTING_CLASSES or state in _LASTING_STATES
    return isinstance(error, TargetError | ContentChangedError | CursorBeyondRowsError | FormError)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, ImporterError) else f"{type(error).__name__}: {error}"
