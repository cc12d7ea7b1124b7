"""An import from the stored workbook to the end of its job: header, table, batches, and what the form says of faults.

```
workbook ─ header ─ prepare ─ (refuse_all: whole sheet) ─ chunks ─ batches ─► Writer ─► finish
             │         │                                     │          └ refuse_all, stop_at: rows go, faults stay
             └ refused ┴ table does not fit: failed          └ broken: refused
```

A form whose imports change rows that are there (`on_clash: update`) looks for keys that repeat inside the sheet before
any batch: the table cannot tell them from an earlier import's. So a resumed import reads such a sheet from its
beginning; what was dealt with before is looked at and not written again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from importer import import_chain, import_job
from importer.batch.apply import apply
from importer.batch.opened import opened
from importer.batch.plan import Batch, FaultRow, Outcome, Plan, batches
from importer.batch.writer import Apply, At, RefuseAllError, Writer
from importer.db import Connection, Database, repeat_on_conflict
from importer.display import count
from importer.errors import CursorBeyondRowsError, WorkbookError
from importer.excel import Workbook
from importer.forms import Form, Reading, SeenKeys, read_rows
from importer.import_job import Work
from importer.lease import Lease, fenced
from importer.store import Store
from importer.target import (
    Restored,
    Target,
    compare,
    create,
    delete_rows,
    exists,
    forget_before_images,
    lock,
    restore_rows,
)

#: Data rows that were dealt with, and how many of them failed; called from the thread that reads.
Progress = Callable[[int, int], None]

#: Rows that are read and checked at once, while the next are read. 20,000 take as long as 50,000, and an import of
#: 200,000 rows x 12 peaks at 1.2 times the memory of one of 50,000 rows instead of 1.4 (measured).
CHUNK_ROWS = 20_000


class StoppedError(Exception):
    """The import was asked to stop; the job waits again with what was committed."""


class Importing:
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
        #: What is done with each batch.
        self.apply: Apply = apply

    def all(self) -> None:
        """From the stored workbook to the end of the job."""
        self.at("claimed")
        self.store.verify(self.work.content_hash)
        try:
            path = self.store.path(self.work.content_hash)
            with opened(path, self.db.settings, self.form, name=self.work.file_name) as workbook:
                self._import(workbook)
        except WorkbookError as error:
            self._take_back(reason=error.reason, error=str(error))
            raise

    def _import(self, workbook: Workbook) -> None:
        reading = self._read(workbook, skip=0 if self._looks_for_repeats else self.work.cursor)
        self._prepare()
        line = _most_failed(self.form)
        most = None if line is None else line - self.work.failed_rows
        with Writer(self.db, self.lease, self.plan, at=self.at, most_failed=most, work=self.apply) as writer:
            if self.form.on_fault == "refuse_all" and self.work.cursor == 0 and self._has_faults(workbook, writer):
                return
            try:
                self._write(reading, writer)
            except RefuseAllError as struck:
                failed = self.work.failed_rows + writer.failed + struck.outcome.failed
                self._take_back(error=self._refused(struck.outcome, failed), faults=struck.outcome.faults)
                return
        self._finish(reading, failed=self.work.failed_rows + writer.failed)

    def _finish(self, reading: Reading, *, failed: int) -> None:
        if reading.rows_seen < self.work.cursor:
            raise CursorBeyondRowsError(
                f"{self.work.file_name}: {self.work.cursor} rows were dealt with before, "
                f"but the sheet has only {reading.rows_seen}"
            )
        self.at("finishing")
        part = _part_failed(self.form)
        if part is not None and failed and failed >= part * reading.rows_seen:
            told = f"{count(failed, 'row')} of {reading.rows_seen:,} failed, and the form stops at {self.form.stop_at}"
            self._take_back(error=f"{told}; no row was kept", faults=(), total_rows=reading.rows_seen)
            return
        self._fenced(lambda conn: import_job.finish(conn, self.lease, left_out=reading.left_out.to_dict()))

    def _refused(self, outcome: Outcome, failed: int) -> str:
        if self.form.on_fault == "refuse_all":
            return _refused_all(len(outcome.faults))
        return f"stopped at {count(failed, 'failed row')}: the form says stop_at: {self.form.stop_at}; no row was kept"

    def _read(self, workbook: Workbook, *, skip: int) -> Reading:
        rows = self.batch_rows * max(1, CHUNK_ROWS // self.batch_rows)
        return read_rows(workbook, self.form, chunk_rows=rows, skip=skip)

    def _write(self, reading: Reading, writer: Writer) -> None:
        for batch in self._batches(reading):
            writer.put(self._encoded(batch), waiting=lambda: self._tick(writer))
            self._tick(writer)
        writer.close(waiting=lambda: self._tick(writer))
        self._tick(writer)

    @property
    def _looks_for_repeats(self) -> bool:
        """Whether keys that repeat inside the sheet are found before the table is asked."""
        return self.form.on_clash == "update"

    def _batches(self, reading: Reading) -> Iterator[Batch]:
        """Yield what was not dealt with before, in order."""
        seen = SeenKeys(self.form) if self._looks_for_repeats else None
        cursor = 0 if seen is not None else self.work.cursor
        for chunk in reading:
            checked = seen.sift(chunk) if seen is not None else chunk
            for batch in batches(checked, start=cursor, rows=self.batch_rows):
                cursor += len(batch)
                if cursor > self.work.cursor:
                    yield batch.part(max(0, self.work.cursor - batch.start), len(batch))

    def _encoded(self, batch: Batch) -> Batch:
        if self.plan.target.looked_up:
            return batch  # its values are known only to the transaction
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
                    take_back(conn, Target.of(definition), job_id=old)
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
            self._take_back(error=_refused_all(found), total_rows=reading.rows_seen, faults=())
        return found > 0

    def _take_back(
        self,
        *,
        error: str,
        reason: str | None = None,
        faults: Sequence[FaultRow] | None = None,
        total_rows: int | None = None,
    ) -> None:
        """Promise 9: what the job did to the table is taken back, its counts are zero, in one transaction with its end.

        Rows it put in go, rows it updated get back what they held. Its faults go too, unless `faults` says which come
        to those there are.
        """

        def undo(conn: Connection) -> None:
            kept: Sequence[int] = ()
            if import_job.work(conn, self.lease).success_rows:
                kept = take_back(conn, self.plan.target, job_id=self.lease.id).kept
            import_chain.forget_matches(conn, self.lease.id)
            if faults is None:
                import_job.delete_faults(conn, self.lease.id)
            else:
                import_job.add_faults(conn, self.lease.id, faults)
            import_job.refuse(conn, self.lease, reason=reason, error=error + _said_kept(kept), total_rows=total_rows)

        self._fenced(undo)

    def _fenced(self, work: Callable[[Connection], object]) -> None:
        def transaction() -> None:
            with fenced(conn, self.lease):
                work(conn)

        with self.db.connection() as conn:
            repeat_on_conflict(transaction)


def _add_faults(job_id: int, faults: Sequence[FaultRow], conn: Connection) -> None:
    import_job.add_faults(conn, job_id, faults)


def take_back(conn: Connection, target: Target, *, job_id: int) -> Restored:
    """Remove the rows that a job put in and give those it updated back what they held; return what became of these.

    In the caller's transaction.
    """
    delete_rows(conn, target, job_id=job_id)
    restored = restore_rows(conn, target, job_id=job_id) if exists(conn, target) else Restored(restored=(), kept=())
    forget_before_images(conn, job_id=job_id)
    return restored


def _most_failed(form: Form) -> int | None:
    """Failed rows at which the job's rows go, where that is known before the sheet's end."""
    if form.on_fault == "refuse_all":
        return 1
    return form.stop_at if isinstance(form.stop_at, int) else None


def _part_failed(form: Form) -> float | None:
    """The part of all rows at which the job's rows go, which is known at the sheet's end."""
    return float(form.stop_at.removesuffix("%")) / 100 if isinstance(form.stop_at, str) else None


def _said_kept(kept: Sequence[int]) -> str:
    if not kept:
        return ""
    rows = ", ".join(map(str, kept[:10])) + (" ..." if len(kept) > 10 else "")
    return f"; what rows {rows} had updated was changed by somebody since, and stays as it is now"


def _refused_all(faults: int) -> str:
    return f"refused as a whole: {faults:,} bad cells, and the form says on_fault: refuse_all; no row was kept"
