"""What is done to a table, and the batches it is done with: values that all kinds of work share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from importer.batch.encode import FrameRows
from importer.forms import FAULT_SCHEMA, CheckedChunk, Form
from importer.target import Target

#: source_row, column, rule, value, message, position of the column in the form
FaultRow: TypeAlias = tuple[int, str, str, str | None, str, int]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Consecutive data rows of a sheet, checked, with the place of the first one."""

    #: How many data rows come before this batch: the cursor it moves on from.
    start: int
    #: Sheet rows of all data rows, good or bad, ascending.
    rows: pl.Series
    #: The good ones: source_row, then the form's columns.
    accepted: pl.DataFrame
    #: The faults of the bad ones: source_row column rule value message.
    faults: pl.DataFrame
    #: The good ones as CSV, when they were encoded ahead.
    encoded: FrameRows | None = None

    def __len__(self) -> int:
        """How many data rows."""
        return len(self.rows)

    def part(self, start: int, stop: int) -> Batch:
        """Data rows from start up to, but without, stop as a batch of their own."""
        if start == 0 and stop == len(self):
            return self
        rows = self.rows[start:stop]
        if not len(rows):
            return Batch(
                start=self.start + start, rows=rows, accepted=self.accepted.clear(), faults=self.faults.clear()
            )
        first, last = int(rows[0]), int(rows[-1])
        return Batch(
            start=self.start + start,
            rows=rows,
            accepted=_between(self.accepted, first, last),
            faults=_between(self.faults, first, last),
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a batch."""

    success: int
    failed: int
    skipped: int
    faults: Sequence[FaultRow]
    #: Of the successes: rows that were there and changed.
    updated: int = 0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A form and its table, ready for batches."""

    form: Form
    target: Target
    job_id: int

    @property
    def names(self) -> tuple[str, ...]:
        """The form's columns, in its order."""
        return tuple(c.name for c in self.target.columns)

    def fault_rows(self, faults: pl.DataFrame) -> tuple[FaultRow, ...]:
        """A frame of faults as rows to store."""
        position = {name: at for at, name in enumerate(self.names)}
        return tuple((*row, position.get(row[1], 0)) for row in faults.select(*FAULT_SCHEMA).iter_rows())

    def encode(self, accepted: pl.DataFrame) -> FrameRows:
        """Rows for COPY."""
        plain = [c.name for c in self.target.columns if c.type == "decimal" and c.precision is None and c.scale is None]
        return FrameRows(accepted, job_id=self.job_id, columns=self.names, plain_decimals=plain)


def batches(chunk: CheckedChunk, *, start: int, rows: int) -> list[Batch]:
    """Cut a checked chunk into batches of at most `rows` data rows; `start` is the cursor before the chunk."""
    whole = Batch(start=start, rows=chunk.rows, accepted=chunk.accepted, faults=chunk.faults)
    return [whole.part(at, min(at + rows, len(whole))) for at in range(0, len(whole), rows)]


def _between(frame: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """Rows of a frame, ascending by source_row, whose source_row lies between first and last."""
    low = frame["source_row"].search_sorted(first, side="left")
    high = frame["source_row"].search_sorted(last, side="right")
    return frame.slice(low, high - low)
