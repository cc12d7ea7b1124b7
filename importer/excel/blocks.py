"""Cells with their kinds become blocks of columns, however they are scattered."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from importer.excel.cells import Column, Kind
from importer.excel.chunking import Block, places_allowed

_KEY = pl.col("row").cast(pl.Int64) * 16_384 + pl.col("column")


def blocks_of(cells: pl.DataFrame) -> Iterator[Block]:
    """Lay out cells (row, column, kind, value; rows ascending): halve the rows until a block has few enough places."""
    rows = cells["row"].unique(maintain_order=True)
    width = cells["column"].n_unique()
    if len(rows) > 1 and len(rows) * width > places_allowed(len(cells)):
        half = cells["row"].search_sorted(rows[len(rows) // 2], "left")
        yield from blocks_of(cells[:half])
        yield from blocks_of(cells[half:])
    elif len(rows):
        yield Block(rows=rows.alias(""), columns=columns_over(rows, cells), cells=len(cells))


def columns_over(rows: pl.Series, cells: pl.DataFrame) -> dict[int, Column]:
    """Lay out cells over rows, which hold all of theirs; both ascend."""
    cells = _without_doubles(cells)
    names = cells["column"].unique().sort()
    height = len(rows)
    if len(cells) == height * len(names):
        cells = cells.sort("column", maintain_order=True)
        kind, value = cells["kind"], cells["value"]
    else:
        row_at = rows.search_sorted(cells["row"], "left").cast(pl.Int64)
        at = row_at + (cells["column"].rank("dense").cast(pl.Int64) - 1) * height
        which = pl.repeat(None, height * len(names), dtype=pl.UInt32, eager=True)
        which = which.scatter(at, pl.int_range(len(cells), dtype=pl.UInt32, eager=True))
        kind = cells["kind"].gather(which).fill_null(int(Kind.BLANK))
        value = cells["value"].gather(which)
    return {
        name: Column(kind.slice(at * height, height).alias(""), value.slice(at * height, height).alias(""))
        for at, name in enumerate(names.to_list())
    }


def _without_doubles(cells: pl.DataFrame) -> pl.DataFrame:
    """A cell that the file holds twice becomes one broken cell with both values."""
    key = cells.select(key=_KEY)["key"]
    if (key.diff(null_behavior="drop") > 0).all():
        return cells
    double = key.is_duplicated()
    if not double.any():
        return cells
    merged = (
        cells.filter(double)
        .group_by("row", "column", maintain_order=True)
        .agg(
            pl.lit(int(Kind.BROKEN), dtype=pl.UInt8).alias("kind"),
            (pl.lit("the cell is there twice: ") + pl.col("value").str.join(" | ")).alias("value"),
        )
    )
    return pl.concat([cells.filter(~double), merged]).sort("row", "column", maintain_order=True)
