"""What a person sees in a cell, for faults: numbers as General, days and times in ISO 8601, errors by their name."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import polars as pl

from importer.excel import serial
from importer.excel.cells import Column, Kind
from importer.forms import numbers

#: Characters of a value that a fault keeps.
MOST_CHARACTERS = 1_000


def shown(cells: Column, *, date_1904: bool) -> pl.Series:
    """Show the cells as text (String, "" for blank), moments by their serial; a serial of no moment as written."""
    kinds = [Kind(kind) for kind in cells.kind.unique().to_list()]
    texts = cells.value.alias("value")
    for kind in kinds:
        text = _text(kind, cells.value, date_1904=date_1904)
        if text is not None:
            own = cells.kind == kind
            texts = pl.select(pl.when(own & text.is_not_null()).then(text).otherwise(texts).alias("value")).to_series()
    texts = texts.fill_null("")
    long = texts.str.len_chars() > MOST_CHARACTERS
    if not long.any():
        return texts
    return pl.select(
        pl.when(long).then(texts.str.head(MOST_CHARACTERS) + "…").otherwise(texts).alias("value")
    ).to_series()


def as_shown(value: object) -> str:
    """Show one typed value as its cell is shown, for the faults of whole rows."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        text = numbers.general(value)
        return text.rstrip("0").rstrip(".") if "." in text and "E" not in text else text
    if isinstance(value, timedelta):
        seconds, fraction = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{'-' if value < timedelta(0) else ''}{clock}" + (f".{fraction:06d}".rstrip("0") if fraction else "")
    text = str(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _text(kind: Kind, values: pl.Series, *, date_1904: bool) -> pl.Series | None:
    """What the values show if they are of this kind; none when they show what is written."""
    value = pl.col("value")
    if kind == Kind.NUMBER:
        pairs = ((text, numbers.number(text)) for text in values.unique().drop_nulls().to_list())
        general = {text: numbers.general(number) for text, number in pairs if number is not None}
        return values.replace(general)
    if kind == Kind.BOOL:
        return values.str.to_uppercase()
    if kind == Kind.TIME:
        expression = serial.clock_times(value).dt.strftime("%H:%M:%S")
    elif kind in (Kind.DATE, Kind.DATETIME):
        moment = serial.moments(value, date_1904=date_1904)
        at_midnight = (moment.dt.time() == pl.time(0, 0, 0)) & (kind == Kind.DATE)
        expression = (
            pl.when(at_midnight).then(moment.dt.strftime("%Y-%m-%d")).otherwise(moment.dt.strftime("%Y-%m-%d %H:%M:%S"))
        )
    else:
        return None
    return values.alias("value").to_frame().select(expression).to_series()
