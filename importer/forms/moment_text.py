"""Moments and durations written as text: ISO 8601 and the formats a form declares, nothing guessed.

Formats are strftime directives. A four-digit year (`%Y`) must have four digits; a time zone is never dropped in
silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import polars as pl

from importer.forms.form import FormColumn, Locale

#: The longest duration that is read, well inside what a frame and PostgreSQL's interval hold.
LONGEST = timedelta(days=100_000_000)

#: Directives that a declared format may use.
_DIRECTIVES = frozenset("dmYybBHIMSpf")
_ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_ISO_MIDNIGHT = r"[T ]00:00(?::00(?:[.,]0{1,9})?)?$"
_ISO_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-5][0-9](?:[.,][0-9]{1,6}0{0,3})?)?)?$"
_ISO_TIME = r"^[0-9]{2}:[0-9]{2}(?::[0-5][0-9](?:[.,][0-9]{1,6}0{0,3})?)?$"
_ZONE = re.compile(r"[0-9]{2}:[0-9]{2}.*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$", re.IGNORECASE)
_CLOCK_DURATION = re.compile(r"(-?)([0-9]{1,10}):([0-5][0-9]):([0-5][0-9])(?:[.,]([0-9]{1,6})0*)?")
_ISO_DURATION = re.compile(
    r"(-?)P(?=.)(?:([0-9]{1,7})D)?(?:T(?=.)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:[.,]([0-9]{1,6})0*)?S)?)?"
)


def format_problem(written: str, kind: str) -> str | None:
    """Say what keeps a declared format from being used for a column of this type; none when it is fine."""
    directives = re.findall(r"%(.)", written)
    if not directives:
        return "holds no directive such as %d, %m, %Y, %H, %M"
    unknown = sorted(set(directives) - _DIRECTIVES)
    if unknown:
        return f"holds %{unknown[0]}, which is none of %d %m %Y %y %b %B %H %I %M %S %p %f"
    if "f" in directives and "%S.%f" not in written:
        return "may hold %f only as %S.%f"
    return _type_problem(set(directives), kind)


def _type_problem(directives: set[str], kind: str) -> str | None:
    of_day, of_clock = directives & set("dmYybB"), directives & set("HIMSpf")
    whole_day = "d" in directives and bool(directives & set("mbB")) and bool(directives & set("Yy"))
    whole_clock = "M" in directives and ("H" in directives or {"I", "p"} <= directives)
    if kind == "time":
        if of_day:
            return "holds a day, which a time column has no place for"
        return None if whole_clock else "must hold an hour (%H, or %I with %p) and a minute"
    if not whole_day:
        return "must hold a day, a month and a year"
    if kind == "date" and of_clock:
        return "holds a time of day, which a date column has no place for"
    return None if whole_clock or not of_clock else "must hold an hour (%H, or %I with %p) and a minute, or neither"


def formats_for(column: FormColumn, locale: Locale) -> tuple[str, ...]:
    """The formats of text moments of a column: its own, then those of the locale that suit its type."""
    if column.type not in ("date", "datetime", "time"):
        return ()
    of_locale = (f for f in locale.formats if format_problem(f, column.type) is None)
    return tuple(dict.fromkeys((*column.formats, *of_locale)))


def dates_from_text(texts: pl.Series, formats: Sequence[str]) -> pl.Series:
    """Dates (Date) of trimmed texts, null for what is no date."""
    bare = texts.str.replace(_ISO_MIDNIGHT, "")
    read = _only(bare, _ISO_DATE).str.to_date("%Y-%m-%d", strict=False)
    return _sane(_with_formats(read, texts, formats, lambda s, f: s.str.to_date(f, strict=False)))


def datetimes_from_text(texts: pl.Series, formats: Sequence[str]) -> pl.Series:
    """Moments (Datetime in microseconds) of trimmed texts, null for what is none; a day alone is its midnight."""
    iso = _only(texts, _ISO_DATETIME).str.replace("T", " ", literal=True).str.replace(",", ".", literal=True)
    length = iso.str.len_bytes()
    day, minute = 10, 16  # characters of an ISO date, and of one with hour and minute
    full = pl.select(
        pl.when(length == day).then(iso + " 00:00:00").when(length == minute).then(iso + ":00").otherwise(iso)
    ).to_series()
    read = full.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)

    def by_format(series: pl.Series, written: str) -> pl.Series:
        if re.search(r"%[HIMSp]", written):
            return series.str.to_datetime(written, time_unit="us", strict=False)
        return series.str.to_date(written, strict=False).cast(pl.Datetime("us"))

    return _sane(_with_formats(read, texts, formats, by_format))


def times_from_text(texts: pl.Series, formats: Sequence[str]) -> pl.Series:
    """Times of day (Time) of trimmed texts, null for what is none."""
    iso = _only(texts, _ISO_TIME).str.replace(",", ".", literal=True)
    minute = 5  # characters of hour and minute
    full = pl.select(pl.when(iso.str.len_bytes() == minute).then(iso + ":00").otherwise(iso)).to_series()
    read = full.str.to_time("%H:%M:%S%.f", strict=False)
    return _with_formats(read, texts, formats, lambda s, f: s.str.to_time(f, strict=False))


def duration_from_text(text: str) -> timedelta | None:
    """A duration written as `36:00:00` (hours may be many) or in ISO 8601 (`PT36H`, `P1DT12H`); else none."""
    clock = _CLOCK_DURATION.fullmatch(text)
    if clock:
        sign, hours, minutes, seconds, fraction = clock.groups()
        days: str | None = None
    else:
        iso = _ISO_DURATION.fullmatch(text)
        if not iso:
            return None
        sign, days, hours, minutes, seconds, fraction = iso.groups()
    whole = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + int(seconds or 0)
    if whole > LONGEST.total_seconds():
        return None
    value = timedelta(seconds=whole, microseconds=int((fraction or "0").ljust(6, "0")))
    return -value if sign else value


def duration_text(value: timedelta) -> str:
    """A duration as `36:00:00`, with a fraction only where there is one."""
    sign = "-" if value < timedelta() else ""
    seconds, micro = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    fraction = f".{micro:06d}".rstrip("0") if micro else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def names_a_zone(text: str) -> bool:
    """Whether a moment written as text names a time zone or an offset."""
    return bool(_ZONE.search(text))


def _only(texts: pl.Series, pattern: str) -> pl.Series:
    """The texts that match, null for the others."""
    return pl.select(pl.when(texts.str.contains(pattern)).then(texts)).to_series()


def _with_formats(read: pl.Series, texts: pl.Series, formats: Sequence[str], parse: object) -> pl.Series:
    for written in formats:
        if not read.null_count():
            break
        tried = parse(texts, written.replace("%S.%f", "%S%.f"))  # type: ignore[operator]  # one of the lambdas above
        if "%Y" in written:
            tried = pl.select(pl.when(tried.dt.year() >= 1000).then(tried)).to_series()
        read = pl.select(pl.coalesce(read, tried)).to_series()
    return read


def _sane(read: pl.Series) -> pl.Series:
    """Year 0 is no year: PostgreSQL and the calendar know none."""
    return pl.select(pl.when(read.dt.year() >= 1).then(read)).to_series()
