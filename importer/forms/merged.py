"""Merged ranges: headings over several columns, and data cells filled with the value their range shows.

A merged range holds its value in the first cell; the others are blank in the file. With `merged: first` that is how
they are read. With `merged: fill` each blank cell of the range takes the value, but no row comes to be by it: a row
that has nothing of its own in a declared column stays blank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from importer.excel.cells import Chunk, Column, Kind
from importer.excel.ranges import Area

_ANCHOR_SCHEMA = {"row": pl.Int64, "column": pl.Int64, "last_row": pl.Int64, "kind": pl.UInt8, "value": pl.String}


def headings(titles: Mapping[int, Mapping[int, str]], row: int, merged: Iterable[Area]) -> dict[int, str]:
    """Titles of a header row by sheet column, each spread over the columns of its merged range.

    A range that also covers the row above lends its title to that one only.
    """
    spread = dict(titles.get(row, {}))
    for area in merged:
        if area.first_row == row and (title := titles.get(row, {}).get(area.first_column)):
            spread |= dict.fromkeys(range(area.first_column, area.last_column + 1), title)
    return spread


class MergedFill:
    """Fills the cells of merged ranges, chunk after chunk; memory holds what reaches into the next chunk."""

    def __init__(self, merged: Iterable[Area], columns: Iterable[int], *, below: int) -> None:
        areas = [area for area in merged if area.first_row > below]
        #: By sheet column: the ranges that cover it, first_row, last_row and the column of the first cell.
        self._covering: dict[int, pl.DataFrame] = {}
        for column in columns:
            rows = [
                (area.first_row, area.last_row, area.first_column)
                for area in areas
                if area.first_column <= column <= area.last_column
            ]
            if rows:
                schema = {"first_row": pl.Int64, "last_row": pl.Int64, "first_column": pl.Int64}
                frame = pl.DataFrame(rows, schema=schema, orient="row").sort("first_row")
                self._covering[column] = frame
        #: First cells of ranges that go on below the last chunk.
        self._open = pl.DataFrame(schema=_ANCHOR_SCHEMA)

    def fill(self, chunk: Chunk, cells: dict[str, Column], columns: Mapping[str, int]) -> dict[str, Column]:
        """Fill the blank cells of the form's columns: *cells* and *columns* by the form's name."""
        if not self._covering:
            return cells
        anchors = pl.concat([self._open, self._anchors(chunk)])
        filled = {
            name: self._filled(chunk.rows, cells[name], self._covering[at], anchors)
            if at in self._covering
            else cells[name]
            for name, at in columns.items()
        }
        self._open = anchors.filter(pl.col("last_row") > chunk.rows.item(-1))
        return filled

    def _anchors(self, chunk: Chunk) -> pl.DataFrame:
        """First cells of ranges that stand in this chunk, those that hold something."""
        found: list[pl.DataFrame] = [pl.DataFrame(schema=_ANCHOR_SCHEMA)]
        wanted = pl.concat(self._covering.values()).unique()
        for (column,), ranges in wanted.group_by("first_column"):
            cells = chunk.columns.get(int(str(column)))
            if cells is None:
                continue
            own = pl.DataFrame({"first_row": chunk.rows, "kind": cells.kind, "value": cells.value})
            there = ranges.join(own, on="first_row").filter(pl.col("kind") != Kind.BLANK)
            found.append(there.select(pl.col("first_row").alias("row"), pl.col("first_column").alias("column"),
                                      "last_row", "kind", "value"))  # fmt: skip
        return pl.concat(found)

    def _filled(self, rows: pl.Series, cells: Column, covering: pl.DataFrame, anchors: pl.DataFrame) -> Column:
        own = pl.DataFrame({"at_row": rows, "own_kind": cells.kind, "own_value": cells.value})
        covered = own.join_asof(covering, left_on="at_row", right_on="first_row", strategy="backward")
        lent = covered.join(
            anchors.drop("last_row"),
            left_on=["first_row", "first_column"],
            right_on=["row", "column"],
            how="left",
            maintain_order="left",
        )
        takes = (
            (pl.col("own_kind") == Kind.BLANK) & (pl.col("at_row") <= pl.col("last_row")) & pl.col("kind").is_not_null()
        )
        filled = lent.select(
            pl.when(takes).then("kind").otherwise("own_kind").alias("kind"),
            pl.when(takes).then("value").otherwise("own_value").alias("value"),
        )
        return Column(filled["kind"], filled["value"])
