"""A corrected file, or one that is nearly the same: only what is not in the table yet goes in, and nothing twice.

```
sheet ──► first pass: which rows are in the table ──► left as they are │ changed under their key │ neither
      └─► second pass: left ──► skipped
                       changed ──► on_clash (fault, skip, update)
                       neither ──► a failed row come right? ──yes──► in
                                                             └─no──► fault `changed`: it may be a row that is in
```

A row of the sheet is in the table when its typed values are, each of several equal rows being one of the equal ones
there; so rows may be sorted and moved, whichever file comes back. Of the others, one is a failed row come right when

- it carries its origin (a marked workbook), the origin failed, and no other row corrected it; or
- every row that the chain of imports has in the table was found in the sheet, so that it can be none of them; or
- no row of the sheet has moved, and it stands where a row failed.

Otherwise it may be a changed version of a row that is in: it is a fault, and shown. What the first pass found is
stored, so that a killed import goes on from it. With `only_changes` there is no parent and no last step: rows that are
in the table as they are are left, all others are imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from importer import import_chain
from importer.batch.apply import apply
from importer.batch.importing import Importing, StoppedError
from importer.batch.lookups import looked_up
from importer.batch.plan import Batch, FaultRow, Outcome, Plan, batches
from importer.batch.undoing import CHANGED
from importer.db import Connection
from importer.forms.stamped import origins, stamp_of
from importer.target import lock, match_rows, unmatched

if TYPE_CHECKING:
    from importer.excel import Workbook
    from importer.forms import Reading

_MAYBE = (
    "the row is not in the table as it is, and nothing says that it is a row which failed before: it may be a changed "
    "row that is in already; send the marked workbook, or give the form a key"
)
_TWICE = "the failed row that it corrects came right before"


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What the first pass found out about a corrected file."""

    #: The import that is corrected; none with `only_changes`.
    parent: int | None = None
    failed: frozenset[int] = frozenset()
    corrected: frozenset[int] = frozenset()
    #: Rows of the parent's sheet by rows of this one, as a marked workbook carries them.
    origins: dict[int, int] = dataclasses.field(default_factory=dict)
    #: Whether it is our small workbook, which has failed rows alone.
    only_failed: bool = False
    #: Whether every row that the chain has in the table is in the sheet.
    complete: bool = True
    moved: bool = False


class Correcting(Importing):
    """One attempt at a corrected file, or at the changes of a file."""

    def _import(self, workbook: Workbook) -> None:
        self._workbook = workbook
        super()._import(workbook)

    def _prepare(self) -> None:
        super()._prepare()
        with self.db.connection() as conn:
            jobs = None if self.work.parent_id is None else import_chain.imports_of_chain(conn, self.lease.id)
            known = self._sent(conn)
        if self.work.cursor == 0:
            self._match(jobs, known)
        if jobs is not None and known.parent is not None:
            with self.db.connection() as conn:
                known = self._compared(conn, jobs, known)
        self.apply = partial(_apply_corrected, known=known)

    def _sent(self, conn: Connection) -> _Known:
        """What the file says of itself, and what failed and came right before."""
        parent = self.work.parent_id
        if parent is None:
            return _Known()
        failed = import_chain.failed_rows(conn, parent)
        stamp = stamp_of(self._workbook)
        if stamp is None or stamp.job != parent:
            carried = {}
        else:
            sheet = self._read(self._workbook, skip=0).sheet
            carried = {row: origin.source_row for row, origin in origins(self._workbook, sheet).items()}
        return _Known(
            parent=parent,
            failed=failed,
            corrected=import_chain.corrected_rows(conn, parent, by=self.lease.id),
            origins={row: origin for row, origin in carried.items() if origin in failed},
            only_failed=stamp is not None and stamp.kind == "failed_rows" and stamp.job == parent,
        )

    def _match(self, jobs: list[int] | None, known: _Known) -> None:
        """Find out, from the sheet's beginning, which of its rows are in the table."""
        self._fenced(lambda conn: import_chain.forget_matches(conn, self.lease.id))
        for chunk in self._read(self._workbook, skip=0):
            for batch in batches(chunk, start=0, rows=self.batch_rows):
                self._fenced(partial(self._match_batch, batch, jobs, known))
                if self.stopping():
                    raise StoppedError

    def _match_batch(self, batch: Batch, jobs: list[int] | None, known: _Known, conn: Connection) -> None:
        lock(conn, self.plan.target)
        found, _ = looked_up(conn, self.plan, batch)
        here = found.accepted["source_row"].to_list() if known.origins else []
        match_rows(
            conn,
            self.plan.target,
            self.plan.encode(found.accepted),
            job_id=self.lease.id,
            jobs=jobs,
            parent=known.parent,
            origins={row: known.origins[row] for row in here if row in known.origins},
        )

    def _compared(self, conn: Connection, jobs: list[int], known: _Known) -> _Known:
        """What the first pass makes certain of the whole sheet."""
        assert known.parent is not None  # the caller looked
        missing = 0
        if not known.only_failed:
            missing = unmatched(conn, self.plan.target, job_id=self.lease.id, jobs=jobs)
        moved = import_chain.has_moved(conn, self.lease.id, parent=known.parent)
        return dataclasses.replace(known, complete=missing == 0, moved=moved)

    def _finish(self, reading: Reading, *, failed: int) -> None:
        # In a transaction of its own: a job that is killed after it has no row left to deal with.
        self._fenced(lambda conn: import_chain.forget_left(conn, self.lease.id))
        super()._finish(reading, failed=failed)

    def _encoded(self, batch: Batch) -> Batch:
        return batch  # which rows go in is known only when it is applied


def _apply_corrected(
    conn: Connection, plan: Plan, batch: Batch, *, copying: Callable[[], None], known: _Known
) -> Outcome:
    """Load what of a batch is not in the table yet, in the caller's transaction."""
    first, last = int(batch.rows[0]), int(batch.rows[-1])
    found = import_chain.matches(conn, plan.job_id, first=first, last=last)
    left = {row for row, kind in found.items() if kind == "left"}
    refused: dict[int, str] = {}
    corrects: dict[int, int] = {}
    if known.parent is not None:
        for row in batch.accepted["source_row"].to_list():
            if row not in found:
                _judge(row, known, refused, corrects)
    out = sorted(left | set(refused))
    kept = dataclasses.replace(
        batch,
        rows=batch.rows.filter(~batch.rows.is_in(out)),
        accepted=batch.accepted.filter(~batch.accepted["source_row"].is_in(out)),
        encoded=None,
    )
    outcome = apply(conn, plan, kept, copying=copying)
    failed = {fault[0] for fault in outcome.faults}
    for row, in_row in corrects.items():
        if row not in failed and known.parent is not None:
            import_chain.add_correction(conn, plan.job_id, source_row=row, parent=known.parent, in_row=in_row)
    told: list[FaultRow] = [(row, "", CHANGED, None, why, 0) for row, why in refused.items()]
    return Outcome(
        success=outcome.success,
        failed=outcome.failed + len(refused),
        skipped=outcome.skipped + len(left),
        faults=tuple(sorted((*outcome.faults, *told), key=lambda fault: (fault[0], fault[5]))),
        updated=outcome.updated,
    )


def _judge(row: int, known: _Known, refused: dict[int, str], corrects: dict[int, int]) -> None:
    """Say of a row that is not in the table whether it is a failed row come right."""
    origin = known.origins.get(row)
    if origin is None and known.complete:
        return
    if origin is None and not known.moved and not known.origins and row in known.failed:
        origin = row
    if origin is None or origin not in known.failed:
        refused[row] = _MAYBE
    elif origin in known.corrected or origin in corrects.values():
        refused[row] = _TWICE
    else:
        corrects[row] = origin
