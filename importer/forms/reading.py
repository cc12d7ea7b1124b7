"""A sheet read through a form: chunks of raw cells become typed rows and faults, in sheet order.

```
Chunk ──> rows below the header ──> ColumnTyper per column ──> Rules (pandera) ──> CheckedChunk
          blank ones counted         values, misfits            breaches            accepted, faults
```

Every data row is in exactly one of `accepted` and `faults`; a cell has one fault at most, and a cell that could not be
typed breaks no rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from importer.errors import WorkbookError
from importer.excel.cells import Chunk, Column, Kind, Sheet, SheetNotes
from importer.excel.ranges import Area, Table, read_area, tables
from importer.forms.cells import ColumnTyper, trimmed
from importer.forms.form import Form
from importer.forms.header import Header, blank_column, find_header, last_header_row, rows_between
from importer.forms.left_out import LeftOut, LeftOutCount
from importer.forms.merged import MergedFill
from importer.forms.place import choose_sheet, choose_table
from importer.forms.rules import Rules
from importer.forms.shown import shown
from importer.forms.stamped import is_ours, older_template, refused_template, stamp_of

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
    def path(self) -> Path:
        """Where it was opened."""

    @property
    def format(self) -> str:
        """What kind of file it is: xlsx, ods, csv ..."""

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """All sheets, in order."""

    @property
    def date_1904(self) -> bool:
        """Whether serials count from 1904."""

    def chunks(self, sheet: Sheet, rows: int = ...) -> Iterator[Chunk]:
        """Yield the rows of a sheet, in order."""

    def merged(self, sheet: Sheet) -> tuple[str, ...]:
        """Give the merged ranges of a sheet before its cells are read."""

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
        self._workbook = workbook
        table = _table(workbook, form)
        self._area = None if table is None else table.area
        self.sheet = _sheet(workbook, form, table)
        self._beyond = None if table is None else table.area.last_row - table.totals_rows + 1
        self._chunks = workbook.chunks(self.sheet, rows=chunk_rows)
        self._head = self._read_head()
        merged = _merged(workbook, self.sheet, form)
        #: What a workbook of ours says of itself; none for any other.
        self.stamp = stamp_of(workbook)
        self._older = older_template(self.stamp, form)
        try:
            self.header: Header = find_header(self._head, form, merged=merged, table=self._area)
        except WorkbookError as error:
            if not self._older:
                raise
            raise WorkbookError(error.reason, f"{error}; {refused_template(self._older)}") from error
        self._typers = {c.name: ColumnTyper(c.as_read, form.locale, date_1904=workbook.date_1904) for c in form.columns}
        self._rules = Rules(form)
        self._fill = MergedFill(
            merged if form.merged == "fill" else (), self.header.columns.values(), below=self.header.row
        )
        self._skip = skip
        #: Data rows read so far, skipped ones included.
        self.rows_seen = 0
        self._sorting = LeftOutCount(self.header, self._area, self._head)
        self._notes: SheetNotes | None = None

    def __iter__(self) -> Iterator[CheckedChunk]:
        """Check the rows below the header, chunk by chunk."""
        for chunk in self._data_chunks():
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
        return self._sorting.left_out(
            rows_seen=self.rows_seen,
            other_sheets=tuple(
                s.name
                for s in self._workbook.sheets
                if s.position != self.sheet.position and not is_ours(s.name, self.stamp)
            ),
            notes=self._notes,
            filled=self.form.merged == "fill",
            older_template=self._older,
        )

    def _read_head(self) -> list[Chunk]:
        """Chunks until the header must have come by."""
        until = last_header_row(self.form, self._area)
        head: list[Chunk] = []
        for chunk in self._chunks:
            head.append(chunk)
            if len(chunk.rows) and chunk.rows.item(-1) >= until:
                break
        return head

    def _data_chunks(self) -> Iterator[Chunk]:
        """The rows between the header and the end of the table, if there is one."""
        head, self._head = self._head, []
        for chunk in itertools.chain(head, self._chunks):
            data = rows_between(chunk, self.header.row, self._beyond)
            self._sorting.count(chunk, data)
            if data is not None:
                yield data

    def _data_rows(self, chunk: Chunk) -> tuple[pl.Series, dict[str, Column]]:
        """The rows with something in a declared column, and the cells of those columns."""
        length = len(chunk.rows)
        cells = {
            name: chunk.columns[at] if at in chunk.columns else blank_column(length)
            for name, at in self.header.columns.items()
        }
        filled = _filled(cells, length)
        cells = self._fill.fill(chunk, cells, self.header.columns)
        if filled is None:
            return chunk.rows, cells
        return chunk.rows.filter(filled), {
            name: Column(c.kind.filter(filled), c.value.filter(filled)) for name, c in cells.items()
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
            column = cells.get(name) or blank_column(len(rows))
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


#: Formats whose files know Excel tables.
_OFFICE_FORMATS = ("xlsx", "xlsm", "xltx", "xltm")


def _table(workbook: Workbook, form: Form) -> Table | None:
    if form.table_range is None:
        return None
    found = tables(workbook.path) if workbook.format in _OFFICE_FORMATS else ()
    return choose_table(found, workbook.sheets, form)


def _sheet(workbook: Workbook, form: Form, table: Table | None) -> Sheet:
    if table is None:
        return choose_sheet(workbook.sheets, form)
    return next(sheet for sheet in workbook.sheets if sheet.position == table.sheet)


def _merged(workbook: Workbook, sheet: Sheet, form: Form) -> tuple[Area, ...]:
    """Merged ranges, looked for only if the form makes something of them."""
    if form.header_rows == 1 and form.merged == "first":
        return ()
    areas = (read_area(reference) for reference in workbook.merged(sheet))
    return tuple(area for area in areas if area is not None)


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
