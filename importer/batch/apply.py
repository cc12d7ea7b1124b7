"""One batch: what becomes of its rows in the caller's fenced transaction.

```
Batch (rows, accepted, faults) ──load──► inserted │ clashes │ refused
                                                      │          │
             key there from an ended job or no job: on_clash    `database` fault
               (fault, skip, or update what differs)
             everything else: `unique` fault
──► Outcome (success, failed, skipped, faults): success + failed + skipped = rows of the batch
```
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import polars as pl

from importer import import_job
from importer.batch.faults import Faults
from importer.batch.lookups import looked_up
from importer.batch.plan import Batch, FaultRow, Outcome, Plan
from importer.db import Connection
from importer.forms import repeat_message
from importer.forms.shown import as_shown
from importer.target import Clash, load, lock


def apply(
    conn: Connection,
    plan: Plan,
    batch: Batch,
    *,
    open_among: Callable[[Connection, Collection[int]], Collection[int]] | None = None,
    copying: Callable[[], None] | None = None,
) -> Outcome:
    """Load the good rows and tell of the others, in the caller's transaction; faults are not stored here.

    Raises:
        psycopg.Error: for a reason outside the rows; the transaction is then aborted.
    """
    if plan.target.unique_sets:
        lock(conn, plan.target)
    found: list[FaultRow] = []
    if plan.target.looked_up:
        batch, found = looked_up(conn, plan, batch)
    rows = batch.encoded or plan.encode(batch.accepted)
    clashing = _Clashing(conn, plan, open_among)
    loaded = load(conn, plan.target, rows, job_id=plan.job_id, copying=copying, updating=clashing.updating)
    position = {name: at for at, name in enumerate(plan.names)}
    faults = found
    values = _Values(batch.accepted)
    skipped = {clash.source_row for clash in loaded.clashes if clashing.skips(clash)}
    for clash in loaded.clashes:
        if clash.source_row not in skipped and not clashing.updates(clash):
            column = clash.columns[0]
            value = values.text(clash.source_row, column)
            faults.append((clash.source_row, column, "unique", value, clashing.message(clash), position[column]))
    for refused in loaded.refused:
        value = values.text(refused.source_row, refused.column) if refused.column else None
        faults.append(
            (refused.source_row, refused.column, "database", value, refused.message, position.get(refused.column, 0))
        )
    success = loaded.inserted + len(loaded.updated)
    left = len(skipped) + len(loaded.unchanged)
    return Outcome(
        success=success,
        failed=len(batch) - success - left,
        skipped=left,
        faults=Faults(plan, batch.faults, tuple(_one_a_cell(faults))),
        updated=len(loaded.updated),
    )


def _one_a_cell(faults: Iterable[FaultRow]) -> Iterator[FaultRow]:
    """Faults in sheet order, the first one of each cell."""
    ordered = sorted(faults, key=lambda fault: (fault[0], fault[5]))
    return (next(same) for _, same in itertools.groupby(ordered, key=lambda fault: fault[:2]))


class _Clashing:
    """What becomes of rows whose values are in the table already."""

    def __init__(
        self,
        conn: Connection,
        plan: Plan,
        open_among: Callable[[Connection, Collection[int]], Collection[int]] | None,
    ) -> None:
        self._conn = conn
        self._plan = plan
        self._ask = open_among or (lambda conn, ids: import_job.open_among(conn, sorted(ids)))
        self._open: dict[int, bool] = {}

    def updating(self, clashes: Collection[Clash]) -> Collection[int]:
        """The rows that update the row with their key: there from an earlier import, and all that they clash with."""
        if self._plan.form.on_clash != "update":
            return ()
        by_row: dict[int, list[Clash]] = {}
        for clash in clashes:
            by_row.setdefault(clash.source_row, []).append(clash)
        self._learn(clashes)
        return [
            row
            for row, its in by_row.items()
            if any(self._is_earlier(clash) for clash in its) and len({clash.place for clash in its}) == 1
        ]

    def updates(self, clash: Clash) -> bool:
        """Whether the row would update the other one, if it did not clash with a third."""
        return self._plan.form.on_clash == "update" and self._is_earlier(clash)

    def skips(self, clash: Clash) -> bool:
        """Whether the row is left out without a fault."""
        self._learn((clash,))
        return self._plan.form.on_clash == "skip" and self._is_earlier(clash)

    def message(self, clash: Clash) -> str:
        """What the fault of a row says that clashes with another one."""
        self._learn((clash,))
        what = " and ".join(clash.columns)
        if clash.job_id == self._plan.job_id:
            return repeat_message(clash.columns, clash.first_row or 0)
        if clash.job_id is None:
            return f"{what}: already in the table"
        first = f"{what}: already in the table from row {clash.first_row} of import job {clash.job_id}"
        return f"{first}, which is still running" if self._open[clash.job_id] else first

    def _is_earlier(self, clash: Clash) -> bool:
        """Whether the key is there from an earlier import that is not open any more, or from no import."""
        if clash.columns != self._plan.target.key or clash.job_id == self._plan.job_id:
            return False
        return clash.job_id is None or not self._open[clash.job_id]

    def _learn(self, clashes: Collection[Clash]) -> None:
        """Ask once which of the other jobs are open: their rows may yet go."""
        unknown = {c.job_id for c in clashes if c.job_id is not None} - {self._plan.job_id} - set(self._open)
        if unknown:
            still_open = frozenset(self._ask(self._conn, unknown))
            self._open |= {job_id: job_id in still_open for job_id in unknown}


class _Values:
    """Cells of accepted rows as text, looked up one by one (only for the few rows that did not go in)."""

    def __init__(self, accepted: pl.DataFrame) -> None:
        self._accepted = accepted

    def text(self, source_row: int, column: str) -> str | None:
        at = self._accepted["source_row"].search_sorted(source_row)
        value: Any = self._accepted.item(at, column)
        return None if value is None else as_shown(value)
