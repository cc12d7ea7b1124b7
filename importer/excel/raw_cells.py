"""The seam of the room: what scanning the bytes of a sheet yields, before styles and shared strings are looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import polars as pl

#: a number as XML Schema writes a double, without its words for what is no number
NUMBER_SHAPE = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?$"
#: an index into the shared strings
INDEX_SHAPE = r"^[0-9]{1,9}$"
#: what XML calls white space
XML_SPACE = " \t\r\n"


class Tag(IntEnum):
    """What the XML itself says a cell is (its `t`), blank cells never being yielded."""

    NUMBER = 0
    SHARED = 1
    TEXT = 2
    BOOL = 3
    ERROR = 4
    ISO = 5
    UNCALCULATED = 6
    BROKEN = 7


#: the words of `t` (ECMA-376 part 1, 18.18.11, ST_CellType); any other is broken
TAGS = {
    "n": Tag.NUMBER,
    "s": Tag.SHARED,
    "str": Tag.TEXT,
    "inlineStr": Tag.TEXT,
    "b": Tag.BOOL,
    "e": Tag.ERROR,
    "d": Tag.ISO,
}


@dataclass(frozen=True, kw_only=True)
class RawCells:
    """A run of whole rows as cells, one entry per cell that is not blank; all series are of one length."""

    #: Int32, sheet row from 1, ascending
    row: pl.Series
    #: Int32, sheet column from 0; mostly ascending within a row, never promised
    column: pl.Series
    #: UInt8, the `Tag`
    tag: pl.Series
    #: Int32, index of the cell format
    style: pl.Series
    #: String, never null: the content of `v` (inner text of `is`), XML decoded, `_xHHHH_` not yet; the formula with
    #: its "=" where the tag is UNCALCULATED
    text: pl.Series

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, kw_only=True)
class RawColumn:
    """A column of a grid whose cells all bear the same tag and format."""

    tag: Tag
    #: index of the cell format
    style: int
    #: String, as in `RawCells`, null where a row has no such cell; indexes may come as UInt32 where they are sound
    text: pl.Series
    #: whether every text is known to have the shape of its tag (a number, an index, 0 or 1)
    sound: bool


@dataclass(frozen=True, kw_only=True)
class RawGrid:
    """A run of whole rows as columns; rows without a cell may be missing."""

    #: Int32, sheet row from 1, strictly ascending
    rows: pl.Series
    #: by sheet column from 0
    columns: dict[int, RawColumn]
    #: cells that are not in `columns`: of further columns, or of another tag than their column; their rows ascend and
    #: are among `rows`
    others: RawCells | None


@dataclass(kw_only=True)
class SheetCounts:
    """What a scanner counts while it reads one sheet; both scanners of a sheet share one."""

    #: the last row number seen
    last_row: int = 0
    #: cell elements, blank ones included
    cells: int = 0
    formulas: int = 0
    hidden_rows: int = 0
    hidden_columns: int = 0
    merged: list[str] = field(default_factory=list)


def from_lists(rows: list[int], columns: list[int], tags: list[int], styles: list[int], texts: list[str]) -> RawCells:
    """Make raw cells from Python lists."""
    return RawCells(
        row=pl.Series(rows, dtype=pl.Int32),
        column=pl.Series(columns, dtype=pl.Int32),
        tag=pl.Series(tags, dtype=pl.UInt8),
        style=pl.Series(styles, dtype=pl.Int32),
        text=pl.Series(texts, dtype=pl.String),
    )
