"""What a person sees in a cell, for faults: numbers as General, days and times in ISO 8601, errors by their name."""

from __future__ import annotations

import polars as pl

from importer.excel import serial
from importer.excel.cells import Column, Kind
from importer.forms import numbers

#: Characters of a value that a fault keeps.
MOST_CHARACTERS = 1_000


def shown(cells: Column, *, date_1904: bool) -> pl.Series:
    """The cells as text (String, "" for blank), those of moments by their serial."""
    kind, value = pl.col("kind"), pl.col("value")
    moment = serial.moments(value, date_1904=date_1904)
    midnight = moment.dt.time() == pl.time(0, 0, 0)
    frame = pl.DataFrame({"kind": cells.kind, "value": cells.value})
    text = (
        pl.when(kind == Kind.NUMBER).then(value.replace(_general_texts(frame)))
        .when((kind == Kind.DATE) & midnight).then(moment.dt.strftime("%Y-%m-%d"))
        .when(kind.is_in([int(Kind.DATE), int(Kind.DATETIME)])).then(moment.dt.strftime("%Y-%m-%d %H:%M:%S"))
        .when(kind == Kind.TIME).then(serial.clock_times(value).dt.strftime("%H:%M:%S"))
        .when(kind == Kind.BOOL).then(value.str.to_uppercase())
        .otherwise(value)
    )  # fmt: skip
    whole = pl.coalesce(text, value, pl.lit(""))
    return frame.select(
        pl.when(whole.str.len_chars() > MOST_CHARACTERS)
        .then(whole.str.head(MOST_CHARACTERS) + "…")
        .otherwise(whole)
        .alias("value")
    ).to_series()


def _general_texts(frame: pl.DataFrame) -> dict[str, str]:
    """Each distinct number and how General writes it, for those that are written otherwise."""
    written = frame.filter(pl.col("kind") == Kind.NUMBER).get_column("value").unique().to_list()
    pairs = ((text, numbers.number(text)) for text in written)
    return {text: numbers.general(number) for text, number in pairs if number is not None}
