"""The plain scanner in C, where it could be built: the same cells as `plain_scan`, several times faster.

It is never needed. `_scanner.c` is compiled when the package is installed and a compiler is there; without it `scan`
takes the plain scanner in Python. What it does not take goes the exact way, as everything that is not plain.

Two things it does that the plain scanner in Python leaves to the exact one: formulas with a calculated value, and rows
that lack some of the cells of others (null in the column).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from importer.excel.chunking import places_allowed
from importer.excel.limits import Limits
from importer.excel.raw_cells import RawCells, RawColumn, RawGrid, SheetCounts, Tag
from importer.excel.tags import TagReader

if TYPE_CHECKING:
    Scanner: Callable[..., Any] | None
    strings: Callable[..., Any] | None
else:
    try:
        from importer.excel._scanner import Scanner, strings
    except ImportError:  # no compiler when the package was installed
        Scanner = strings = None

#: whether the compiled scanner is there
COMPILED = Scanner is not None

#: fewest bytes of a cell, `<c r="A1"/>`
_CELL_BYTES = 11


class CompiledScanner:
    """Takes runs of whole rows and gives their cells, or None for a run that is not of the plain shape."""

    def __init__(self, head: bytes, limits: Limits, counts: SheetCounts) -> None:
        if Scanner is None:
            raise RuntimeError("the compiled scanner was not built")
        self._tags = TagReader(head, "")
        self._limits = limits
        self._counts = counts
        self._scanner = Scanner(
            judge_cell=self._cell,
            judge_row=self._row,
            judge_formula=self._formula,
            rows=limits.rows,
            columns=limits.columns,
            characters=limits.cell_characters,
            tag_bytes=limits.tag_bytes,
        )

    def scan(self, piece: bytes) -> RawGrid | RawCells | None:
        """Scan rows, from `<row` to the end of a row. Nothing is counted unless the run is plain."""
        most = places_allowed(len(piece) // _CELL_BYTES)
        found = self._scanner.scan(piece, self._counts.last_row, most)
        if found is None:
            return None
        rows, columns, others, cells, formulas, hidden, last_row = found
        if self._counts.cells + cells > self._limits.cells:
            return None
        self._counts.cells += cells
        self._counts.formulas += formulas
        self._counts.hidden_rows += hidden
        self._counts.last_row = last_row
        left = None if others is None else _cells(others)
        if rows is None:
            return left
        return RawGrid(
            rows=pl.Series(rows),
            columns={
                at: RawColumn(tag=Tag(tag), style=style, text=pl.Series(texts), sound=bool(sound))
                for at, tag, style, sound, texts in columns
            },
            others=left,
        )

    def _cell(self, end: bytes) -> tuple[int, int, bool, bool] | None:
        written = _text(end)
        tag = None if written is None else self._tags.cell(written)
        return None if tag is None else (int(tag.tag), tag.style, tag.inline, tag.closed)

    def _row(self, end: bytes) -> tuple[bool, bool] | None:
        written = _text(end)
        tag = None if written is None else self._tags.row(written)
        return None if tag is None else (tag.hidden, tag.closed)

    def _formula(self, end: bytes) -> tuple[bool, bool] | None:
        written = _text(end)
        return (False, end.endswith(b"/>")) if written is not None and self._tags.formula(written) else None


def compiled_strings(run: bytes, limits: Limits) -> pl.Series | None:
    """Give the texts of a run of whole items of shared strings; None when it is not plain or nothing was compiled."""
    found = None if strings is None else strings(run, limits.cell_characters)
    return None if found is None else pl.Series(found)


def _text(end: bytes) -> str | None:
    try:
        return end.decode()
    except UnicodeDecodeError:
        return None


def _cells(parts: tuple[Any, ...]) -> RawCells:
    row, column, tag, style, text = (pl.Series(part) for part in parts)
    return RawCells(row=row, column=column, tag=tag, style=style, text=text)
