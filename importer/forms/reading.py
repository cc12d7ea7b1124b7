"""A sheet read through a form: chunks of raw cells become typed rows and faults, in sheet order.

```
Chunk ──> rows below the header ──> ColumnTyper per column ──> Rules (pandera) ──> CheckedChunk
          blank ones counted         values, misfits            breaches            accepted, faults
```

Every data row is in exactly one of `accepted` and `faults`; a cell has one fault at most, and a cell that could not be
typed breaks no rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from importer.excel.cells import Chunk, Column, Kind, Sheet, SheetNotes
from importer.forms.cells import ColumnTyper, trimmed
from importer.forms.form import Form
from importer.forms.header import HEADER_WITHIN, Header, blank_cells, choose_sheet, find_header, rows_after
from importer.forms.left_out import LeftOut, named_column
from importer.forms.rules import Rules
from importer.forms.shown import shown

#: One row per fault; sorted by source_row, then the form's order of columns.
FAULT_SCHEMA = {
    "source_row": pl.Int64,
    "column": pl.String,
    "rule": pl.String,
    "value": pl.String,
    "message": pl.String,
}


class Workbook(Protocol):
    """What is read of a workbook (`importer.excel.Workbook`)."""

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """All sheets, in order."""

    @property
    def date_1904(self) -> bool:
        """Whether serials count from 1904."""

    def chunks(self, sheet: Sheet, rows: int = ...) -> Iterator[Chunk]:
        """Yield the rows of a sheet, in order."""

    def notes(self, sheet: Sheet) -> SheetNotes:
        """Give what a sheet holds beside its cells, once its chunks ran to the end."""


@dataclass(frozen=True, kw_only=True)
class CheckedChunk:
    """A run of checked rows."""

    #: Int64: sheet rows of all data rows, good or bad, in order.
    rows: pl.Series
    #: The good rows: source_row (Int64) and one typed column per form column.
    accepted: pl.DataFrame
    #: The faults of the bad rows: source_row, column, rule, value, message.
    faults: pl.DataFrame


class Reading:
    """One pass over a sheet through a form; iterate it once, then `left_out` is complete."""

    def __init__(self, workbook: Workbook, form: Form, *, chunk_rows: int, skip: int) -> None:
        self.form = form
        self.sheet = choose_sheet(workbook.sheets, form)
        self._workbook = workbook
        self._chunks = workbook.chunks(self.sheet, rows=chunk_rows)
        self._head = self._read_head()
        self.header: Header = find_header(self._head, form)
        self._typers = {c.name: ColumnTyper(c, form.locale, date_1904=workbook.date_1904) for c in form.columns}
        self._rules = Rules(form)
        self._skip = skip
        self._above = self._rows_above()
        self._last_row = self.header.row
        #: Data rows read so far, skipped ones included.
        self.rows_seen = 0
        self._untitled: set[int] = set()
        self._notes: SheetNotes | None = None

    def __iter__(self) -> Iterator[CheckedChunk]:
        """Check the rows below the header, chunk by chunk."""
        for chunk in self._below_header():
            rows, cells = self._data_rows(chunk)
            skipped = min(self._skip, len(rows))
            self._skip -= skipped
            self.rows_seen += len(rows)
            if skipped:
                rows = rows.slice(skipped)
                cells = {name: Column(c.kind.slice(skipped), c.value.slice(skipped)) for name, c in cells.items()}
            if len(rows):
                yield self._checked(rows, cells, date_1904=chunk.date_1904)
        self._notes = self._workbook.notes(self.sheet)

    @property
    def left_out(self) -> LeftOut:
        """What was not read, and why; complete once all chunks were read."""
        notes = self._notes
        unknown = {**dict.fromkeys(self._untitled, ""), **self.header.unknown}
        return LeftOut(
            unknown_columns=tuple(named_column(at, title) for at, title in sorted(unknown.items())),
            absent_columns=self.header.absent,
            rows_above=self._above,
            blank_rows=self._last_row - self.header.row - self.rows_seen,
            other_sheets=tuple(s.name for s in self._workbook.sheets if s.position != self.sheet.position),
            formulas=notes.formulas if notes else 0,
            hidden_rows=notes.hidden_rows if notes else 0,
            hidden_columns=notes.hidden_columns if notes else 0,
            merged=notes.merged if notes else (),
        )

    def _read_head(self) -> list[Chunk]:
        """Chunks until the header must have come by."""
        until = self.form.header_row or HEADER_WITHIN
        head: list[Chunk] = []
        for chunk in self._chunks:
            head.append(chunk)
            if len(chunk.rows) and chunk.rows.item(-1) >= until:
                break
        return head

    def _rows_above(self) -> tuple[int, ...]:
        return tuple(row for chunk in self._head for row in chunk.rows.filter(chunk.rows < self.header.row).to_list())

    def _below_header(self) -> Iterator[Chunk]:
        while self._head:
            below = rows_after(self._head.pop(0), self.header.row)
            if below is not None:
                yield below
        yield from self._chunks

    def _data_rows(self, chunk: Chunk) -> tuple[pl.Series, dict[str, Column]]:
        """The rows with something in a declared column, and the cells of those columns."""
        if len(chunk.rows):
            self._last_row = chunk.rows.item(-1)
        known = {*self.header.columns.values(), *self.header.unknown}
        self._untitled.update(at for at in chunk.columns if at not in known)
        length = len(chunk.rows)
        cells = {
            name: chunk.columns[at] if at in chunk.columns else Column(*blank_cells(length))
            for name, at in self.header.columns.items()
        }
        filled = _filled(cells, length)
        if filled is None:
            return chunk.rows, cells
        return chunk.rows.filter(filled), {
            n: Column(c.kind.filter(filled), c.value.filter(filled)) for n, c in cells.items()
        }

    def _checked(self, rows: pl.Series, cells: dict[str, Column], *, date_1904: bool) -> CheckedChunk:
        values: list[pl.Series] = []
        breaches: list[pl.DataFrame] = []
        for column in self.form.columns:
            if column.name not in cells:
                values.append(pl.repeat(None, len(rows), dtype=column.frame_type, eager=True).alias(column.name))
                continue
            typed = self._typers[column.name].typed(cells[column.name])
            values.append(typed.values.alias(column.name))
            if typed.misfits.height:
                breaches.append(typed.misfits.select("index", pl.lit(column.name).alias("column"), "rule", "message"))
        frame = pl.DataFrame(values)
        broken = self._rules.breaches(frame)
        if broken.height:
            breaches.append(broken)
        whole = frame.insert_column(0, rows.alias("source_row"))
        if not breaches:
            return CheckedChunk(rows=rows, accepted=whole, faults=pl.DataFrame(schema=FAULT_SCHEMA))
        found = self._in_order(pl.concat(breaches))
        bad = found["index"].unique()
        good = pl.repeat(True, len(rows), dtype=pl.Boolean, eager=True).scatter(bad, False)
        faults = self._faults(found, rows, cells, date_1904=date_1904)
        return CheckedChunk(rows=rows, accepted=whole.filter(good), faults=faults)

    def _in_order(self, breaches: pl.DataFrame) -> pl.DataFrame:
        """One breach per cell (misfits come first), by the form's order of columns and then by row."""
        order = {column.name: i for i, column in enumerate(self.form.columns)}
        return (
            breaches.unique(["index", "column"], keep="first", maintain_order=True)
            .with_columns(order=pl.col("column").replace_strict(order, return_dtype=pl.UInt32))
            .sort("order", "index")
        )

    def _faults(
        self, found: pl.DataFrame, rows: pl.Series, cells: dict[str, Column], *, date_1904: bool
    ) -> pl.DataFrame:
        kinds: list[pl.Series] = []
        values: list[pl.Series] = []
        for part in found.partition_by("order", maintain_order=True):
            name = part.item(0, "column")
            column = cells.get(name) or Column(*blank_cells(len(rows)))
            kinds.append(column.kind.gather(part["index"]))
            values.append(column.value.gather(part["index"]))
        texts = shown(Column(pl.concat(kinds), pl.concat(values)), date_1904=date_1904)
        return (
            found.with_columns(rows.gather(found["index"]).alias("source_row"), texts.alias("value"))
            .sort("source_row", "order")
            .select(*FAULT_SCHEMA)
        )


def read_rows(workbook: Workbook, form: Form, *, chunk_rows: int = 50_000, skip: int = 0) -> Reading:
    """Read a sheet through a form; the header is found before this returns.

    *skip*: so many data rows are read and counted, but neither typed nor checked nor returned (to resume).
    Raises: WorkbookError (sheet_not_found, no_header, missing_column, duplicate_column, unexpected_column; while
    iterating, whatever the workbook proves to be).
    """
    return Reading(workbook, form, chunk_rows=chunk_rows, skip=skip)


def _filled(cells: dict[str, Column], length: int) -> pl.Series | None:
    """Which rows have something in one of the columns; none when all do. A text of nothing but spaces is nothing."""
    filled = pl.repeat(False, length, dtype=pl.Boolean, eager=True)
    # Columns of numbers and dates first: they need no look at their texts.
    for column in sorted(cells.values(), key=lambda c: c.kind.item(0) == Kind.TEXT if length else False):
        there = column.kind != Kind.BLANK
        if (column.kind == Kind.TEXT).any():
            there = there & ~((column.kind == Kind.TEXT) & trimmed(column.value).is_null())
        filled = filled | there
        if filled.all():
            return None
    return filled
