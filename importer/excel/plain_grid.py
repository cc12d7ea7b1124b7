"""Rows that hold the same columns, as most sheets have them: read as one table of lines.

Nothing is done cell by cell in Python, and little column by column: a call of a method of a series costs some 50
microseconds, and a sheet of 150 columns has a few hundred rows in a run. What each opening must be is known from the
last row (its letters and what follows the row's number), so all openings are compared at once. Measured in nanoseconds
for a cell: joining the expected openings and comparing 88; beginning, end and length compared 9, and 30 for laying out
what is expected; taking the names apart instead 110.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from importer.excel.plain_cells import SHAPES, cell_tag, column_of, contents, require
from importer.excel.raw_cells import RawColumn, Tag
from importer.excel.tags import CellTag, TagReader

_OPENING = re.compile(r"([\x06\x07]?)([A-Z]{1,3})([0-9]{1,7})(\".*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Where a cell stands in a row, and how its opening begins and ends around the row's number."""

    column: int
    letters: str
    before: str
    after: str
    tag: CellTag


def places_of(openings: list[str], row: str, tags: TagReader, most_columns: int) -> list[Place] | None:
    """Take one row as the pattern of all; None where its columns do not ascend."""
    places: list[Place] = []
    for opening in openings:
        match = _OPENING.fullmatch(opening)
        if match is None or match.group(3) != row:
            return None
        mark, letters, _, after = match.groups()
        column = column_of(letters)
        if column >= most_columns or (places and column <= places[-1].column):
            return None
        places.append(Place(column, letters, mark + letters, after, cell_tag(tags, after[1:])))
    return places


class Grid:
    """Lines of cells of rows of one width, read by the pattern of one row."""

    def __init__(self, openings: pl.Series, values: pl.Series, written: pl.Series, places: list[Place]) -> None:
        #: of each cell: its place in the row, its row (UInt32)
        self.place = pl.int_range(len(openings), dtype=pl.UInt32, eager=True) % len(places)
        self.row = pl.int_range(len(openings), dtype=pl.UInt32, eager=True) // len(places)
        self._openings = openings
        self._values = values
        self._places = places
        #: whether a cell has the opening of its place
        self.same = self._compare(written)

    def _compare(self, written: pl.Series) -> pl.Series:
        after = sorted({place.after for place in self._places})
        expected = pl.concat([written + end for end in after])
        start = pl.Series([after.index(place.after) * len(written) for place in self._places], dtype=pl.UInt32)
        frame = pl.DataFrame(
            {
                "opening": self._openings,
                "before": self._by_place([place.before for place in self._places], pl.String),
                "size": self._by_place([len(place.before) for place in self._places], pl.UInt32),
                "after": expected.gather(start.gather(self.place) + self.row),
            }
        )
        opening, before, after_ = pl.col("opening"), pl.col("before"), pl.col("after")
        return frame.select(
            opening.str.starts_with(before)
            & opening.str.ends_with(after_)
            & (opening.str.len_bytes() == pl.col("size") + after_.str.len_bytes())
        ).to_series()

    def _by_place(self, values: list[str] | list[int] | list[bool], dtype: type[pl.DataType]) -> pl.Series:
        return pl.Series(values, dtype=dtype).gather(self.place)

    def astray(self) -> pl.Series:
        """Give the rows (UInt32, from 0) in which a cell does not even stand in the column of its place."""
        odd = ~self.same
        if not odd.any():
            return pl.Series([], dtype=pl.UInt32)
        letters = pl.Series([place.letters for place in self._places]).gather(self.place.filter(odd))
        found = self._openings.filter(odd).str.extract("^[\x06\x07]?([A-Z]+)[0-9]")
        return self.row.filter(odd).filter(~(found == letters).fill_null(False)).unique()

    def columns(self, taken: pl.Series | None) -> dict[int, RawColumn]:
        """Read the cells that have the opening of their place (and are `taken`, where given); null for others."""
        values = self._values
        if taken is not None:
            values = pl.select(pl.when(taken).then(values)).to_series()
        found: dict[int, RawColumn] = {}
        for tag, at in self._groups():
            whole = len(at) == len(self._places)
            mine = None if whole else self._by_place([n in at for n in range(len(self._places))], pl.Boolean)
            some = values if mine is None else values.filter(mine)
            filled = len(some) if taken is None else int((taken if mine is None else taken.filter(mine)).sum())
            require(len(some) - some.null_count() == (0 if tag.closed else filled))
            if not tag.closed:
                found |= self._group(tag, at, some)
        return dict(sorted(found.items()))

    def _groups(self) -> Iterator[tuple[CellTag, list[int]]]:
        """Places by what their cells are; number formats do not matter for reading."""
        groups: dict[tuple[Tag, bool, bool], list[int]] = {}
        for at, place in enumerate(self._places):
            groups.setdefault((place.tag.tag, place.tag.inline, place.tag.closed), []).append(at)
        for at_places in groups.values():
            yield self._places[at_places[0]].tag, at_places

    def _group(self, tag: CellTag, at: list[int], values: pl.Series) -> dict[int, RawColumn]:
        text, sound = contents(tag, values)
        if sound and tag.tag is Tag.SHARED:
            text = text.cast(pl.UInt32)
        frame = pl.DataFrame({"text": text})
        columns = frame.select(pl.col("text").gather_every(len(at), n).alias(str(place)) for n, place in enumerate(at))
        shape = SHAPES.get(tag.tag)
        sounds = [sound] * len(at)
        if shape is not None and not sound:
            sounds = list(columns.select(pl.all().str.contains(shape).all()).row(0))
        return {
            self._places[place].column: RawColumn(
                tag=tag.tag, style=self._places[place].tag.style, text=columns[str(place)], sound=one
            )
            for place, one in zip(at, sounds, strict=True)
        }
