"""Cells become chunks: runs of rows, each column one series. Memory follows the cells, never a declared range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from importer.excel.cell_kinds import KindedCells
from importer.excel.cells import Chunk, Column, Kind

#: a chunk has at most this many places (rows x columns), whatever rows were asked for: one cell in each of 50,000 rows,
#: each in a column of its own, would else make 800 million places
MOST_PLACES = 2_000_000
#: and at most this many places for each of its cells, once it has more than a few
PLACES_PER_CELL = 16
FEW_PLACES = 131_072
#: cells are put together into chunks when this many are waiting
MOST_WAITING = 2_000_000

_KEY = pl.col("row").cast(pl.Int64) * 16_384 + pl.col("column")


def chunks_of(pieces: Iterable[KindedCells], *, rows: int, date_1904: bool) -> Iterator[Chunk]:
    """Cut pieces (whole rows, ascending) into chunks of at most `rows` rows."""
    waiting: list[pl.DataFrame] = []
    counted = cells = 0
    for piece in pieces:
        if not len(piece):
            continue
        frame = pl.DataFrame({"row": piece.row, "column": piece.column, "kind": piece.kind, "value": piece.value})
        waiting.append(frame)
        cells += len(frame)
        counted += frame["row"].n_unique()
        if counted >= rows or cells >= MOST_WAITING:
            frame = pl.concat(waiting)
            numbers = frame["row"].unique(maintain_order=True)
            begin = 0
            while len(numbers) - begin >= rows or (begin == 0 and cells >= MOST_WAITING):
                end = min(begin + rows, len(numbers))
                yield from _cut(_between(frame, numbers, begin, end), date_1904=date_1904)
                begin = end
            frame = _between(frame, numbers, begin, len(numbers))
            waiting, counted, cells = [frame], len(numbers) - begin, len(frame)
    if cells:
        yield from _cut(pl.concat(waiting), date_1904=date_1904)


def _between(frame: pl.DataFrame, numbers: pl.Series, begin: int, end: int) -> pl.DataFrame:
    """Give the cells of the rows `numbers[begin:end]`."""
    row = frame["row"]
    first = row.search_sorted(numbers[begin], "left") if begin < len(numbers) else len(row)
    last = row.search_sorted(numbers[end], "left") if end < len(numbers) else len(row)
    return frame[first:last]


def _cut(frame: pl.DataFrame, *, date_1904: bool) -> Iterator[Chunk]:
    """Halve the rows until a chunk has few enough places for its cells."""
    numbers = frame["row"].unique(maintain_order=True)
    width = frame["column"].n_unique()
    most = min(MOST_PLACES, max(FEW_PLACES, PLACES_PER_CELL * len(frame)))
    if len(numbers) > 1 and len(numbers) * width > most:
        half = len(numbers) // 2
        yield from _cut(_between(frame, numbers, 0, half), date_1904=date_1904)
        yield from _cut(_between(frame, numbers, half, len(numbers)), date_1904=date_1904)
    elif len(numbers):
        yield _chunk(frame, numbers, width, date_1904=date_1904)


def _chunk(frame: pl.DataFrame, numbers: pl.Series, width: int, *, date_1904: bool) -> Chunk:
    frame = _without_doubles(frame)
    height = len(numbers)
    if len(frame) < height * width:
        at = frame.select(
            pl.col("row").rle_id().cast(pl.Int64) + (pl.col("column").rank("dense").cast(pl.Int64) - 1) * height
        ).to_series()
        which = pl.repeat(None, height * width, dtype=pl.UInt32, eager=True)
        which = which.scatter(at, pl.int_range(len(frame), dtype=pl.UInt32, eager=True))
        names = frame["column"].unique().sort()
        kind = frame["kind"].gather(which).fill_null(int(Kind.BLANK))
        value = frame["value"].gather(which)
    else:
        frame = frame.sort("column", maintain_order=True)
        names, kind, value = frame["column"].unique(maintain_order=True), frame["kind"], frame["value"]
    columns = {
        name: Column(kind.slice(at * height, height).alias(""), value.slice(at * height, height).alias(""))
        for at, name in enumerate(names.to_list())
    }
    return Chunk(rows=numbers.cast(pl.Int64).alias(""), columns=columns, date_1904=date_1904)


def _without_doubles(frame: pl.DataFrame) -> pl.DataFrame:
    """A cell that the file holds twice becomes one broken cell with both values."""
    key = frame.select(key=_KEY)["key"]
    if (key.diff(null_behavior="drop") > 0).all():
        return frame
    double = key.is_duplicated()
    if not double.any():
        return frame
    merged = (
        frame.filter(double)
        .group_by("row", "column", maintain_order=True)
        .agg(
            pl.lit(int(Kind.BROKEN), dtype=pl.UInt8).alias("kind"),
            (pl.lit("the cell is there twice: ") + pl.col("value").str.join(" | ")).alias("value"),
        )
    )
    return pl.concat([frame.filter(~double), merged]).sort("row", "column", maintain_order=True)
