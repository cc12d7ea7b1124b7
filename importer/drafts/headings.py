"""The headings of a sheet, each with a sample of what stands below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from importer.errors import WorkbookError
from importer.excel import Chunk, Column, Kind, choose_sheet, open_workbook
from importer.forms.shown import shown

#: Rows that are looked at: enough to tell types, and read in a moment.
SAMPLE_ROWS = 2_000
_HEADER_WITHIN = 50


@dataclass(frozen=True, kw_only=True)
class Heading:
    """One column of a sheet."""

    #: Sheet column from 0.
    column: int
    title: str
    #: How many cells of the sample are of which kind, blank ones left out.
    kinds: Counter[Kind]
    #: Cells of the sample as shown, in order, blank ones left out.
    values: tuple[str, ...]
    #: Cells of the sample.
    cells: pl.DataFrame
    rows: int

    @property
    def is_full(self) -> bool:
        """Whether no cell of the sample is blank."""
        return self.rows > 0 and sum(self.kinds.values()) == self.rows


@dataclass(frozen=True, kw_only=True)
class Headings:
    """What stands in a sheet, before any form."""

    sheet: str
    row: int
    columns: tuple[Heading, ...]
    date_1904: bool


def read_headings(path: str | Path, *, sheet: str | None = None, header_row: int | None = None) -> Headings:
    """Read the headings of a sheet: the declared row, else the first that looks like one.

    Raises:
        WorkbookError: the workbook cannot be read, or has no row that looks like a header.
    """
    with open_workbook(path) as workbook:
        chosen = choose_sheet(workbook, sheet)
        chunk = next(workbook.chunks(chosen, rows=SAMPLE_ROWS), None)
        if chunk is None:
            raise WorkbookError("no_header", f"the sheet {chosen.name!r} is empty")
        row = header_row or _header_row(chunk)
        if row is None or row not in chunk.rows:
            raise WorkbookError("no_header", f"no row of the sheet {chosen.name!r} looks like a header")
        return Headings(sheet=chosen.name, row=row, columns=tuple(_columns(chunk, row)), date_1904=workbook.date_1904)


def _header_row(chunk: Chunk) -> int | None:
    """The first row whose cells are texts, all different, and as many as in the widest of the first rows, or nearly."""
    rows = chunk.rows.filter(chunk.rows <= _HEADER_WITHIN + int(chunk.rows.item(0))).to_list()
    cells = {at: (c.kind.to_list(), c.value.to_list()) for at, c in chunk.columns.items()}
    filled = [[at for at in cells if cells[at][0][place] != Kind.BLANK] for place in range(len(rows))]
    widest = max((len(found) for found in filled), default=0)
    for place, found in enumerate(filled):
        texts = [cells[at][1][place].strip().casefold() for at in found if cells[at][0][place] == Kind.TEXT]
        if len(texts) == len(found) == len(set(texts)) and len(found) >= max(1, 0.6 * widest):
            return int(rows[place])
    return None


def _columns(chunk: Chunk, row: int) -> Sequence[Heading]:
    below = chunk.rows > row
    place = int((chunk.rows == row).arg_true().item(0))
    headings = []
    for at in sorted(chunk.columns):
        cells = chunk.columns[at]
        title = cells.value.item(place)
        if title is None or not title.strip():
            continue
        part = Column(cells.kind.filter(below), cells.value.filter(below))
        there = part.kind != Kind.BLANK
        kept = Column(part.kind.filter(there), part.value.filter(there))
        headings.append(
            Heading(
                column=at,
                title=" ".join(title.split()),
                kinds=Counter(Kind(kind) for kind in kept.kind.to_list()),
                values=tuple(shown(kept, date_1904=chunk.date_1904).to_list()),
                cells=pl.DataFrame({"kind": kept.kind, "value": kept.value}),
                rows=int(below.sum()),
            )
        )
    return headings
