"""Serials become the moments that Excel shows."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.excel import serial

MOMENTS = [
    ("1", "1900-01-01 00:00:00"),
    ("59", "1900-02-28 00:00:00"),
    ("60", None),
    ("60.5", None),
    ("61", "1900-03-01 00:00:00"),
    ("59.999999999", None),
    ("0", None),
    ("0.5", None),
    ("-1", None),
    ("45351", "2024-02-29 00:00:00"),
    ("45351.5", "2024-02-29 12:00:00"),
    ("4.5351E+4", "2024-02-29 00:00:00"),
    ("45351.999999999", "2024-03-01 00:00:00"),
    ("45351.041666666664", "2024-02-29 01:00:00"),
    ("2958465.999", "9999-12-31 23:58:33.600"),
    ("2958466", None),
    ("1E+300", None),
    ("NaN", None),
    ("", None),
]


@pytest.mark.parametrize(("written", "expected"), MOMENTS)
def test_a_serial_is_the_moment_that_excel_shows(written: str, expected: str | None) -> None:
    """Serial 60 and 0 are no days, and a serial is rounded to milliseconds before it is split."""
    moment = pl.select(serial.moments(pl.lit(written), date_1904=False)).item()

    assert moment == (None if expected is None else dt.datetime.fromisoformat(expected))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("0", "1904-01-01"), ("1", "1904-01-02"), ("60", "1904-03-01"), ("43889", "2024-02-29"), ("-1", None)],
)
def test_a_1904_workbook_counts_from_1904(written: str, expected: str | None) -> None:
    """There is no gap at 60 in the 1904 system, and 0 is its first day."""
    day = pl.select(serial.days(pl.lit(written), date_1904=True)).item()

    assert day == (None if expected is None else dt.date.fromisoformat(expected))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("0", "00:00:00"), ("0.75", "18:00:00"), ("0.99999999999", None), ("1", None), ("-0.1", None)],
)
def test_a_clock_time_is_below_one_day(written: str, expected: str | None) -> None:
    """A serial that holds a day as well is no clock time."""
    time = pl.select(serial.clock_times(pl.lit(written))).item()

    assert time == (None if expected is None else dt.time.fromisoformat(expected))


@pytest.mark.parametrize(
    ("written", "seconds"), [("1.5", 129_600), ("62.5", 5_400_000), ("1.0416666666666667E-3", 90), ("-0.5", -43_200)]
)
def test_a_duration_may_pass_a_day_and_be_negative(written: str, seconds: float) -> None:
    """Elapsed time knows no calendar: 62.5 days are 62.5 days."""
    elapsed = pl.select(serial.durations(pl.lit(written))).item()

    assert elapsed == dt.timedelta(seconds=seconds)


@given(st.datetimes(min_value=dt.datetime(1900, 3, 1), max_value=dt.datetime(9999, 12, 31)))  # noqa: DTZ001 - no zone
def test_any_second_survives_the_way_through_a_serial(moment: dt.datetime) -> None:
    """A moment written as Excel writes it (a binary fraction in 17 digits) is that moment again."""
    moment = moment.replace(microsecond=0)
    written = repr((moment - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1))  # noqa: DTZ001 - no zone

    assert pl.select(serial.moments(pl.lit(written), date_1904=False)).item() == moment
