"""Serial numbers become dates, moments, clock times and durations, as Excel shows them.

Each function takes the serial as the file writes it (String) or as a number, vectorised over an expression;
`pl.select(moments(pl.lit("45351.5"), date_1904=False)).item()` converts one. What is no such moment becomes null:

- days count from 1900-01-01 = 1. Serial 60 is a 29 February 1900 that never was, serial 0 (0 January 1900) and anything
  negative or beyond 9999-12-31 is no day. In a 1904 workbook 0 is 1904-01-01 and there is no gap (ECMA-376 part 1,
  18.17.4).
- a serial is a binary fraction of a day, so it is rounded to whole milliseconds first, as Excel does when it shows one:
  45351.999999999 is the midnight after, not one microsecond before it.
- no zone of the machine is ever looked at.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

_DAY_MS = 86_400_000
_GHOST_DAY = 60  # 29 February 1900, which Lotus 1-2-3 invented and Excel keeps
_LAST_DAY_1900 = 2_958_465  # 9999-12-31
_LAST_DAY_1904 = 2_957_003
_LONGEST_DAYS = 100_000_000  # well inside Duration("us") and PostgreSQL's interval
_EPOCH_1900 = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no zone
_EPOCH_1904 = dt.datetime(1904, 1, 1)  # noqa: DTZ001 - the same


def milliseconds(serial: pl.Expr) -> pl.Expr:
    """Give the serial in whole milliseconds (Int64), null where it is no finite number or absurdly long."""
    days = serial.cast(pl.Float64, strict=False)
    return pl.when(days.abs() <= _LONGEST_DAYS).then((days * _DAY_MS).round()).cast(pl.Int64)


def moments(serial: pl.Expr, *, date_1904: bool) -> pl.Expr:
    """Give the moment (Datetime in microseconds, no zone) of a serial, null where there is none."""
    ms = milliseconds(serial)
    day = ms.floordiv(_DAY_MS)
    epoch: pl.Expr
    if date_1904:
        known = day.is_between(0, _LAST_DAY_1904)
        epoch = pl.lit(_EPOCH_1904, dtype=pl.Datetime("us"))
    else:
        known = day.is_between(1, _LAST_DAY_1900) & (day != _GHOST_DAY)
        ms = pl.when(day < _GHOST_DAY).then(ms + _DAY_MS).otherwise(ms)
        epoch = pl.lit(_EPOCH_1900, dtype=pl.Datetime("us"))
    return epoch + pl.when(known).then(ms * 1000).cast(pl.Duration("us"))


def days(serial: pl.Expr, *, date_1904: bool) -> pl.Expr:
    """Give the day (Date) of a serial, its clock time left off; null where there is none."""
    return moments(serial, date_1904=date_1904).dt.date()


def clock_times(serial: pl.Expr) -> pl.Expr:
    """Give the time of day (Time) of a serial from 0 to below 1; null for one that holds a day as well."""
    ms = milliseconds(serial)
    return (pl.when(ms.is_between(0, _DAY_MS - 1)).then(ms) * 1_000_000).cast(pl.Time)


def durations(serial: pl.Expr) -> pl.Expr:
    """Give the elapsed time (Duration in microseconds) of a serial of days, negative ones included."""
    return (milliseconds(serial) * 1000).cast(pl.Duration("us"))
