"""The short cut for serials of days from 1 March 1900 to the year 9999: the same as `importer.excel.serial` gives.

Nearly all columns of dates are of this kind; for them no cell needs to be asked about day 60, negative numbers or the
end of the calendar. Measured on 50,000 cells: days 0.7 ms against 7 ms, moments 1.6 ms against 8 ms.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

_DAY_US = 86_400_000_000
_DAY_MS = 86_400_000
_FIRST = {False: 61, True: 0}
#: The last day but one: a serial of the last day may round up beyond it.
_LAST = {False: 2_958_464, True: 2_957_002}
_UNIX = dt.date(1970, 1, 1)
_DAYS_TO_UNIX = {
    False: (_UNIX - dt.date(1899, 12, 30)).days,
    True: (_UNIX - dt.date(1904, 1, 1)).days,
}


def plain_days(values: pl.Series, *, date_1904: bool) -> pl.Series | None:
    """Give the days (Date) of whole serials; none when a cell is anything else."""
    days = values.cast(pl.Int32, strict=False)
    if days.null_count() != values.null_count() or not _within(days.min(), days.max(), date_1904=date_1904):
        return None
    return (days - _DAYS_TO_UNIX[date_1904]).cast(pl.Date)


def plain_moments(values: pl.Series, *, date_1904: bool) -> pl.Series | None:
    """Give the moments (Datetime in microseconds) of serials, to the millisecond; none when a cell is anything else."""
    days = values.cast(pl.Float64, strict=False)
    if days.null_count() != values.null_count() or not _within(days.min(), days.max(), date_1904=date_1904):
        return None
    milliseconds = (days * _DAY_MS).round().cast(pl.Int64)
    return (milliseconds * 1000 - _DAYS_TO_UNIX[date_1904] * _DAY_US).cast(pl.Datetime("us"))


def _within(least: object, most: object, *, date_1904: bool) -> bool:
    if not isinstance(least, int | float) or not isinstance(most, int | float):
        return False
    return _FIRST[date_1904] <= least and most <= _LAST[date_1904]
