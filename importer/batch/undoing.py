"""An undo: what an import did to the table is taken back, batch by batch, with its cursor and its lease like an import.

```
the job's workbook ── its rows again ──► rows it put in that still hold that: removed     ┐ success
                                     └─► rows it updated that still hold that: restored   ┘
                                         changed since: kept, and listed as `changed`       failed
                                         all others (they failed, were left, are gone)      skipped
```

The workbook is read again with the same version of the form, so the rows are those that were loaded; comparing them
with the table costs no memory between import and undo. What is compared are the form's columns; a column that is looked
up counts for nothing, for what it was looked up in may have changed.

*Not guaranteed*: that a row is kept because somebody filled in a column of the table that the form does not have; that
rows which a lookup created go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from importer import import_chain, import_job
from importer.batch.importing import Importing
from importer.batch.plan import Batch, FaultRow, Outcome, Plan
from importer.batch.writer import Writer
from importer.db import Connection
from importer.errors import WorkbookError
from importer.target import exists, forget_before_images, lock, restore_rows, take_rows

if TYPE_CHECKING:
    from importer.excel import Workbook

#: Rule of the faults that list what an undo kept.
CHANGED = "changed"
_CHANGED_ROW = "the row was changed after it was imported, so it was kept"
_CHANGED_UPDATE = "what this row had updated was changed or removed after, so it was left as it is"


class Undoing(Importing):
    """One attempt at one undo."""

    def _import(self, workbook: Workbook) -> None:
        parent = self.work.parent_id
        assert parent is not None  # a constraint of the table
        self.apply = lambda conn, plan, batch, *, copying: take_back_batch(
            conn, plan, batch, parent=parent, copying=copying
        )
        reading = self._read(workbook, skip=self.work.cursor)
        with Writer(self.db, self.lease, self.plan, at=self.at, work=self.apply) as writer:
            try:
                self._write(reading, writer)
            except WorkbookError:
                # It broke off for the import too, which has no row from behind there.
                writer.close(waiting=lambda: self._tick(writer))
        self.at("finishing")

        def finish(conn: Connection) -> None:
            forget_before_images(conn, job_id=parent)
            import_chain.forget_matches(conn, parent)
            import_chain.mark_undone(conn, parent, by=self.lease.id)
            import_job.finish(conn, self.lease, left_out=reading.left_out.to_dict())

        self._fenced(finish)

    @property
    def _looks_for_repeats(self) -> bool:
        return False


def take_back_batch(
    conn: Connection, plan: Plan, batch: Batch, *, parent: int, copying: Callable[[], None] | None = None
) -> Outcome:
    """Take back what a job did with the rows of a batch, in the caller's transaction."""
    lock(conn, plan.target)
    numbers = [int(row) for row in batch.rows]
    if not exists(conn, plan.target):
        return Outcome(success=0, failed=0, skipped=len(batch), faults=())
    looked_up = [column.name for column in plan.target.looked_up]
    blank = batch.accepted.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in looked_up)
    rows = batch.encoded or plan.encode(blank)
    # First what was updated: a row of this job that this job updated later is compared as it was put in.
    restored = restore_rows(conn, plan.target, job_id=parent, rows=numbers)
    taken = take_rows(conn, plan.target, rows, job_id=parent, stage_id=plan.job_id, but=looked_up, copying=copying)
    told = {**dict.fromkeys(restored.kept, _CHANGED_UPDATE), **dict.fromkeys(taken.kept, _CHANGED_ROW)}
    faults: list[FaultRow] = [(row, "", CHANGED, None, told[row], 0) for row in sorted(told)]
    back = len((taken.removed | set(restored.restored)) - set(told))
    return Outcome(
        success=back,
        failed=len(told),
        skipped=len(batch) - back - len(told),
        faults=tuple(faults),
        updated=len(set(restored.restored) - set(told)),
    )
