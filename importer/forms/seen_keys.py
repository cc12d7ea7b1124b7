"""No two rows of one sheet share a value of a `unique` column or of the `key`: the first row in sheet order keeps it.

Memory is bounded: of each value 128 bits of hash and the row are kept (24 bytes), in sorted runs that double in size.
The hashes are seeded anew for each sheet, so no file can be made to collide.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from importer.forms.form import Form
from importer.forms.reading import FAULT_SCHEMA, CheckedChunk
from importer.forms.shown import as_shown


def repeat_message(columns: Sequence[str], row: int) -> str:
    """What is said of a row whose values in these columns an earlier row of the sheet has; wherever that is found."""
    return f"{' and '.join(columns)}: the same as in row {row} of this sheet"


@dataclass
class _Runs:
    """The values that rows hold: frames (h1, h2, row) sorted by h1, each at least twice as long as the next."""

    frames: list[pl.DataFrame] = field(default_factory=list)

    def add(self, held: pl.DataFrame) -> None:
        if held.is_empty():
            return
        new = held.sort("h1")
        while self.frames and self.frames[-1].height < 2 * new.height:
            new = pl.concat([self.frames.pop(), new]).sort("h1")
        self.frames.append(new)

    def holders(self, asked: pl.DataFrame) -> pl.DataFrame:
        """Rows of *asked* (at, h1, h2, row) whose value is held: at and holder (the row that holds it)."""
        found: list[pl.DataFrame] = []
        for frame in self.frames:
            places = frame["h1"].search_sorted(asked["h1"], side="left")
            near = frame["h1"].gather(places.clip(upper_bound=frame.height - 1)) == asked["h1"]
            if near.any():
                held = frame.rename({"row": "holder"})
                found.append(asked.filter(near).join(held, on=["h1", "h2"], how="inner").select("at", "holder"))
        return pl.concat(found) if found else pl.DataFrame(schema={"at": pl.UInt32, "holder": pl.Int64})


class SeenKeys:
    """What the rows of one sheet hold so far; give it each chunk once, in order."""

    def __init__(self, form: Form) -> None:
        self._form = form
        every: list[tuple[str, ...]] = [(c.name,) for c in form.columns if c.unique]
        if form.key and form.key not in every:
            every.append(form.key)
        self._held = {columns: _Runs() for columns in every}
        self._seeds = (secrets.randbits(63), secrets.randbits(63))

    def sift(self, chunk: CheckedChunk) -> CheckedChunk:
        """Turn rows that repeat a value into `unique` faults; rows with another fault hold no value.

        A row that repeats one value holds none of its others either: it will not be in the table.
        """
        if not self._held or not chunk.accepted.height:
            return chunk
        hashes = {columns: self._hashes(chunk.accepted, columns) for columns in self._held}
        clashes = self._clashes(hashes)
        refused = pl.Series(sorted({at for at, _, _ in clashes}), dtype=pl.UInt32)
        for columns, runs in self._held.items():
            mine = hashes[columns]
            runs.add(
                (mine.filter(~pl.col("at").is_in(refused.implode())) if len(refused) else mine).select(
                    "h1", "h2", "row"
                )
            )
        if not clashes:
            return chunk
        good = ~pl.int_range(chunk.accepted.height, dtype=pl.UInt32, eager=True).is_in(refused.implode())
        faults = pl.concat([chunk.faults, self._faults(chunk.accepted, clashes)])
        return CheckedChunk(rows=chunk.rows, accepted=chunk.accepted.filter(good), faults=self._in_order(faults))

    def _hashes(self, frame: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
        """at, h1, h2, row of each row that has a value."""
        value = frame.get_column(columns[0]) if len(columns) == 1 else frame.select(columns).to_struct()
        first, second = self._seeds
        whole = pl.DataFrame(
            {
                "at": pl.int_range(frame.height, dtype=pl.UInt32, eager=True),
                "h1": value.hash(first),
                "h2": value.hash(second),
                "row": frame["source_row"],
            }
        )
        blank = frame.get_column(columns[0]).is_null()
        return whole.filter(~blank) if len(columns) == 1 and blank.any() else whole

    def _clashes(self, hashes: dict[tuple[str, ...], pl.DataFrame]) -> list[tuple[int, tuple[str, ...], int]]:
        """Which rows repeat a value: place in the chunk, columns, row that holds the value."""
        held: dict[tuple[str, ...], dict[int, int]] = {
            columns: dict(self._held[columns].holders(mine).iter_rows()) for columns, mine in hashes.items()
        }
        doubtful: dict[tuple[str, ...], dict[int, tuple[int, int, int]]] = {}
        for columns, mine in hashes.items():
            repeated = mine.filter(pl.struct("h1", "h2").is_duplicated())
            doubtful[columns] = {at: (h1, h2, row) for at, h1, h2, row in repeated.iter_rows()}
        # A loop over the rows that share a value with another one: which of them stay depends on those before.
        clashes: list[tuple[int, tuple[str, ...], int]] = []
        taken: dict[tuple[tuple[str, ...], int, int], int] = {}
        for at in sorted({at for those in (*map(set, held.values()), *map(set, doubtful.values())) for at in those}):
            against = []
            for columns, those in doubtful.items():
                holder = held[columns].get(at)
                if holder is None and at in those:
                    holder = taken.get((columns, *those[at][:2]))
                if holder is not None:
                    against.append((at, columns, holder))
            if not against:
                for columns, those in doubtful.items():
                    if at in those:
                        h1, h2, row = those[at]
                        taken[columns, h1, h2] = row
            clashes.extend(against)
        return clashes

    def _faults(self, frame: pl.DataFrame, clashes: list[tuple[int, tuple[str, ...], int]]) -> pl.DataFrame:
        seen: set[tuple[int, str]] = set()
        faults: list[tuple[int, str, str, str, str]] = []
        for at, columns, holder in clashes:
            if (at, columns[0]) in seen:
                continue
            seen.add((at, columns[0]))
            row = frame.row(at, named=True)
            value = as_shown(row[columns[0]])
            faults.append((row["source_row"], columns[0], "unique", value, repeat_message(columns, holder)))
        return pl.DataFrame(faults, schema=FAULT_SCHEMA, orient="row")

    def _in_order(self, faults: pl.DataFrame) -> pl.DataFrame:
        order = {column.name: i for i, column in enumerate(self._form.columns)}
        return (
            faults.with_columns(order=pl.col("column").replace_strict(order, return_dtype=pl.UInt32))
            .sort("source_row", "order", maintain_order=True)
            .drop("order")
        )
