"""The values a reader yields: kinds, columns, chunks, sheets and notes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import polars as pl

SheetKind = Literal["worksheet", "chartsheet", "dialogsheet", "macrosheet"]


class Kind(IntEnum):
    """What a cell is, before any form looks at it."""

    BLANK = 0
    TEXT = 1
    NUMBER = 2
    BOOL = 3
    DATE = 4
    DATETIME = 5
    TIME = 6
    DURATION = 7
    ERROR = 8
    UNCALCULATED = 9
    BROKEN = 10
    UNSTORABLE = 11


@dataclass(frozen=True)
class Column:
    """One column of a chunk, as long as its `rows`."""

    #: UInt8, the `Kind` of each cell
    kind: pl.Series
    #: String, null exactly where the kind is `BLANK`; see the room's docstring for what each kind holds
    value: pl.Series


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A run of rows of one sheet."""

    #: Int64, sheet row numbers from 1, strictly ascending; only rows with a cell that is not blank
    rows: pl.Series
    #: by sheet column from 0; only columns with a cell that is not blank in this chunk
    columns: dict[int, Column]
    #: whether serials count from 1904
    date_1904: bool


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One sheet of a workbook, of any kind."""

    #: the name on its tab
    name: str
    #: only worksheets (and Excel 4 macro sheets) hold cells
    kind: SheetKind
    #: whether its tab is shown
    visible: bool
    #: from 0, over all sheets
    position: int


@dataclass(frozen=True, kw_only=True)
class SheetNotes:
    """What a sheet holds beside its cells; known once its chunks ran to the end."""

    #: formula cells, calculated or not
    formulas: int
    #: row elements marked hidden (by hand or by a filter)
    hidden_rows: int
    #: columns marked hidden
    hidden_columns: int
    #: merged ranges as written, `A1:C1`
    merged: tuple[str, ...]
    #: what the format, or the library that reads it, cannot tell, and what was seen rather than declared
    remarks: tuple[str, ...] = ()
