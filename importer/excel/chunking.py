"""Blocks of columns become chunks. Memory follows the cells, never a declared range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from importer.excel.cells import Chunk, Column, Kind

#: a chunk has at most this many places (rows x columns), whatever rows were asked for: one cell in each of 50,000 rows,
#: each in a column of its own, would else make 800 million places
MOST_PLACES = 2_000_000
#: and at most this many places for each of its cells, once it has more than a few
PLACES_PER_CELL = 16
FEW_PLACES = 131_072


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows of a sheet as columns; some rows and columns may be blank."""

    #: Int32, strictly ascending
    rows: pl.Series
    columns: dict[int, Column]
    #: places that are filled, more or less
    cells: int


def places_allowed(cells: int) -> int:
    """Give how many places (rows x columns) may be made for so many cells."""
    return min(MOST_PLACES, max(FEW_PLACES, PLACES_PER_CELL * cells))


def chunks_of(blocks: Iterable[Block], *, rows: int, date_1904: bool) -> Iterator[Chunk]:
    """Put blocks (ascending) together, and apart again, to chunks of at most `rows` rows."""
    waiting: list[Block] = []
    height = cells = 0
    names: set[int] = set()
    for block in blocks:
        if not len(block.rows):
            continue
        together = names | block.columns.keys()
        if waiting and (height + len(block.rows)) * len(together) > places_allowed(cells + block.cells):
            yield from _chunks([_joined(waiting)], date_1904)
            waiting, height, cells, together = [], 0, 0, set(block.columns)
        waiting.append(block)
        height += len(block.rows)
        cells += block.cells
        names = together
        if height >= rows:
            joined = _joined(waiting)
            whole = height - height % rows
            yield from _chunks([_slice(joined, at, rows) for at in range(0, whole, rows)], date_1904)
            left = _slice(joined, whole, rows)
            waiting = [left] if len(left.rows) else []
            height, cells, names = (
                len(left.rows),
                cells * len(left.rows) // height,
                set(left.columns) if waiting else set(),
            )
    if waiting:
        yield from _chunks([_joined(waiting)], date_1904)


def _slice(block: Block, at: int, length: int) -> Block:
    return Block(
        rows=block.rows.slice(at, length),
        columns={
            name: Column(column.kind.slice(at, length), column.value.slice(at, length))
            for name, column in block.columns.items()
        },
        cells=block.cells,
    )


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    columns: dict[int, Column] = {}
    for name in sorted(set().union(*(block.columns.keys() for block in blocks))):
        parts = [block.columns.get(name) or blank_column(len(block.rows)) for block in blocks]
        columns[name] = Column(pl.concat([part.kind for part in parts]), pl.concat([part.value for part in parts]))
    return Block(
        rows=pl.concat([block.rows for block in blocks]), columns=columns, cells=sum(block.cells for block in blocks)
    )


def blank_column(height: int) -> Column:
    """Make a column without a filled cell."""
    return Column(
        pl.repeat(int(Kind.BLANK), height, dtype=pl.UInt8, eager=True),
        pl.repeat(None, height, dtype=pl.String, eager=True),
    )


def _chunks(blocks: list[Block], date_1904: bool) -> Iterator[Chunk]:  # noqa: FBT001 - private
    for block in blocks:
        chunk = _chunk(block, date_1904=date_1904)
        if len(chunk.rows):
            yield chunk


def _chunk(block: Block, *, date_1904: bool) -> Chunk:
    """Leave out rows and columns in which nothing is filled."""
    rows = block.rows.cast(pl.Int64)
    columns = {name: column for name, column in block.columns.items() if column.value.null_count() < len(rows)}
    blank: pl.Series | None = None
    for column in columns.values():
        if not column.value.null_count():
            blank = None
            break
        blank = column.value.is_null() if blank is None else blank & column.value.is_null()
    if not columns:
        rows = rows.clear()
    elif blank is not None and blank.any():
        filled = ~blank
        rows = rows.filter(filled)
        columns = {
            name: Column(column.kind.filter(filled), column.value.filter(filled)) for name, column in columns.items()
        }
    return Chunk(rows=rows, columns=columns, date_1904=date_1904)
