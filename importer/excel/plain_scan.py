"""The plain scanner: rows of the plainest shape become columns without a parser, many times faster than expat.

`plain_lines` cuts a run of rows into lines; here each line is checked against what stands before it, rows of the usual
width are read as a grid, and the cells of the others, and those whose tag is not that of their column, one by one (as
columns of cells, not as Python objects). What does not fit in any respect is left to the exact scanner, as a whole run.

Processor time measured side by side, rows by twelve columns, inflating and shared strings included: 100,000 rows this
0.97 s, the exact scanner 6.0 s, the compiled one 0.34 s, fastexcel (calamine) 0.78 s; a million rows this 10.2 s, the
compiled one 2.8 s, fastexcel 5.6 s. Of about 0.8 microseconds for a cell, cutting the lines takes 0.21, inflating 0.11
(in a thread), comparing the openings 0.06, looking at the values 0.05.
"""

from __future__ import annotations

import polars as pl

from importer.excel import plain_lines as marks
from importer.excel.chunking import places_allowed
from importer.excel.limits import Limits
from importer.excel.plain_cells import MOST_TAGS, NotPlainError, read_cells, require, take_formulas
from importer.excel.plain_grid import Grid, Place, places_of
from importer.excel.plain_lines import cut_lines
from importer.excel.raw_cells import RawCells, RawColumn, RawGrid, SheetCounts
from importer.excel.tags import TagReader

_ROW_NUMBER = r"^[1-9][0-9]{0,6}$"


class PlainScanner:
    """Takes runs of whole rows and gives their cells, or None for a run that is not of the plain shape."""

    def __init__(self, head: bytes, prefix: str, limits: Limits, counts: SheetCounts) -> None:
        self._tags = TagReader(head, prefix)
        self._prefix = prefix.encode()
        self._limits = limits
        self._counts = counts
        self._rare = False  # whether rows that end in a blank cell were met

    def scan(self, run: bytes) -> RawGrid | RawCells | None:
        """Scan rows, from `<row` to the end of a row. Nothing is counted unless the run is plain."""
        for rare in (True,) if self._rare else (False, True):
            lines = cut_lines(run, self._prefix, rare=rare)
            if lines is None:
                continue
            try:
                found = _Run(lines, len(run), self._tags, self._limits, self._counts).read()
            except NotPlainError:
                continue
            self._rare = rare
            return found
        return None


class _Run:
    """One run cut into lines; the last line only bears the mark of its end."""

    def __init__(self, lines: pl.DataFrame, size: int, tags: TagReader, limits: Limits, counts: SheetCounts) -> None:
        self._size = size  # bytes of the run
        self._openings = lines["opening"]
        self._values = lines["value"]
        self._tags = tags
        self._limits = limits
        self._counts = counts

    def read(self) -> RawGrid | RawCells:
        is_row = self._openings < marks.CELL_AFTER_INLINE
        written, numbers, hidden, closed = self._rows(self._openings.filter(is_row)[:-1])
        self._check_marks(is_row, closed)
        is_row = is_row[:-1]
        starts = is_row.arg_true().cast(pl.Int64)
        widths = pl.concat([starts, pl.Series([len(is_row)], dtype=pl.Int64)]).diff()[1:] - 1
        count = len(is_row) - len(starts)
        require(self._counts.cells + count <= self._limits.cells)
        if self._size > self._limits.cell_characters:
            require((self._values.str.len_bytes() <= self._limits.cell_characters).all())
        values, formulas = take_formulas(self._values[:-1], self._tags)
        found = self._cells(self._openings[:-1].filter(~is_row), values.filter(~is_row), written, numbers, widths)
        self._counts.cells += count
        self._counts.formulas += formulas
        self._counts.hidden_rows += hidden
        self._counts.last_row = numbers[-1]
        return found

    def _rows(self, lines: pl.Series) -> tuple[pl.Series, pl.Series, int, pl.Series]:
        """Give row numbers as written and as Int32, how many rows are hidden, and which are closed at once."""
        end = lines[-1][1:].partition('"')[1:]
        alike = lines.str.ends_with("".join(end)).all()  # most rows of a sheet differ in their number alone
        if alike:
            written = lines.str.slice(1).str.strip_suffix("".join(end))
            ends = pl.Series([end[1]]).new_from_index(0, len(lines))
        else:
            parts = lines.str.slice(1).str.splitn('"', 2).struct.unnest()
            written, ends = parts.to_series(0), parts.to_series(1)
            require(not ends.null_count())
        require(written.str.contains(_ROW_NUMBER).all())
        numbers = written.cast(pl.Int32)
        require(numbers[0] > self._counts.last_row and numbers[-1] <= self._limits.rows)
        require((numbers.diff()[1:] > 0).all())
        counted = [(end[1], len(lines))] if alike else ends.value_counts().rows()
        require(len(counted) <= MOST_TAGS)
        hidden, closing = 0, []
        for one, times in counted:
            tag = self._tags.row(one)
            if tag is None:
                raise NotPlainError
            if tag.hidden:
                hidden += times
            if tag.closed:
                closing.append(one)
        closed = ends.is_in(closing) if closing else pl.repeat(False, len(ends), dtype=pl.Boolean, eager=True)
        return written, numbers, hidden, closed

    def _check_marks(self, is_row: pl.Series, closed: pl.Series) -> None:
        """Each mark must fit the line before it: a value, an inline string, a tag, or a row that is closed at once."""
        openings, values = self._openings, self._values
        valued = values.is_not_null()
        require(not valued.filter(is_row).any())
        after_value = (openings >= marks.CELL_AFTER_VALUE) | (openings < marks.ROW_AFTER_INLINE)
        written_inline = values.str.starts_with("i>").fill_null(False)
        inline = (openings >= marks.ROW_AFTER_INLINE) & (openings < marks.ROW_AFTER_TAG)
        inline |= (openings >= marks.CELL_AFTER_INLINE) & (openings < marks.CELL_AFTER_TAG)
        if written_inline.any() or inline.any():
            require((inline[1:] == written_inline[:-1]).all())
            after_value |= inline
        require((after_value[1:] == valued[:-1]).all())
        after_row = (openings >= marks.ROW_AFTER_ROW) & (openings < marks.CELL_AFTER_INLINE)
        if closed.any():
            rows_closed = pl.repeat(False, len(openings), dtype=pl.Boolean, eager=True)
            rows_closed = rows_closed.scatter(is_row.arg_true()[:-1].filter(closed), True)
            require((after_row[1:] == rows_closed[:-1]).all())
        else:
            require(not after_row[1:].any())

    def _cells(
        self, cells: pl.Series, values: pl.Series, written: pl.Series, numbers: pl.Series, widths: pl.Series
    ) -> RawGrid | RawCells:
        """Read rows of the usual width as a grid, and what does not fit into it cell by cell."""
        usual = int(widths.mode()[0])
        fits = widths == usual
        if usual == 0 or 2 * int(fits.sum()) < len(widths):
            return read_cells(cells, values, _repeated(numbers, widths), self._tags, self._limits)
        whole = bool(fits.all())
        mine = None if whole else _repeated(fits, widths)
        my_cells, my_values = (cells, values) if mine is None else (cells.filter(mine), values.filter(mine))
        my_written = written if whole else written.filter(fits)
        places = places_of(my_cells[-usual:].to_list(), my_written[-1], self._tags, self._limits.columns)
        if places is None:
            return read_cells(cells, values, _repeated(numbers, widths), self._tags, self._limits)
        grid = Grid(my_cells, my_values, my_written, places)
        if whole and grid.same.all():
            return RawGrid(rows=numbers, columns=grid.columns(None), others=None)
        return self._with_others(grid, cells, values, numbers, widths, mine, places)

    def _with_others(
        self,
        grid: Grid,
        cells: pl.Series,
        values: pl.Series,
        numbers: pl.Series,
        widths: pl.Series,
        mine: pl.Series | None,
        places: list[Place],
    ) -> RawGrid | RawCells:
        """Read what has the opening of its place as a grid, all else as other cells."""
        taken = grid.same
        astray = grid.astray()
        if len(astray):
            taken &= ~grid.row.is_in(astray.implode())
        row = _repeated(numbers, widths)
        if 2 * int(taken.sum()) < len(cells):
            return read_cells(cells, values, row, self._tags, self._limits)
        left = (
            ~taken
            if mine is None
            else pl.repeat(True, len(cells), dtype=pl.Boolean, eager=True).scatter(mine.arg_true(), ~taken)
        )
        others = read_cells(cells.filter(left), values.filter(left), row.filter(left), self._tags, self._limits)
        if len(numbers) * others.column.n_unique() > places_allowed(len(cells)):
            return read_cells(cells, values, row, self._tags, self._limits)
        columns = grid.columns(taken)
        if mine is not None:
            fits = (widths == len(places)).arg_true()
            which = pl.repeat(None, len(numbers), dtype=pl.UInt32, eager=True)
            which = which.scatter(fits, pl.int_range(len(fits), dtype=pl.UInt32, eager=True))
            columns = {
                name: RawColumn(tag=column.tag, style=column.style, text=column.text.gather(which), sound=column.sound)
                for name, column in columns.items()
            }
        return RawGrid(rows=numbers, columns=columns, others=others)


def _repeated(values: pl.Series, times: pl.Series) -> pl.Series:
    """Repeat each value some times."""
    return values.repeat_by(times).explode(empty_as_null=False)
