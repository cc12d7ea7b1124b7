"""The cells of a column become values of its type, or misfits: every cell exactly one of the two, or blank.

Whole columns are cast at once where all cells are of a kind that the type takes; a cell that comes out empty of that is
looked at again, once for each distinct cell, by the rule in `misfits`. The fast ways never give a value that the rule
would not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from importer.excel import serial
from importer.excel.cells import Column, Kind
from importer.forms import numbers
from importer.forms.form import FormColumn, Locale
from importer.forms.locale_text import NumberText
from importer.forms.misfits import Judge, Misfit
from importer.forms.moment_text import dates_from_text, datetimes_from_text, formats_for, times_from_text
from importer.forms.plain_serials import plain_days, plain_moments

#: Values of one kind's cells (String, null for cells of other kinds) to the column's type, null where unsure.
_Cast = Callable[[pl.Series], pl.Series]

_MISFIT_SCHEMA = {"index": pl.UInt32, "rule": pl.String, "message": pl.String}


@dataclass(frozen=True)
class TypedColumn:
    """A column after typing."""

    #: Of the column's frame type, null for blank and for misfits.
    values: pl.Series
    #: One row per misfit: index (UInt32, row within the column), rule, message; ascending.
    misfits: pl.DataFrame


class ColumnTyper:
    """Types the cells of one form column, chunk after chunk."""

    def __init__(self, column: FormColumn, locale: Locale, *, date_1904: bool) -> None:
        self.column = column
        self._casts = _casts(column, locale, date_1904=date_1904)
        self._judge = Judge(column, locale)
        #: Judgements made so far; distinct odd cells are few, and the cache is emptied when they are not.
        self._judged: dict[tuple[int, str], object] = {}

    def typed(self, cells: Column) -> TypedColumn:
        """Type the cells of one chunk."""
        values = self._cast(cells)
        odd = values.is_null() & cells.value.is_not_null()
        if not odd.any():
            return TypedColumn(values, pl.DataFrame(schema=_MISFIT_SCHEMA))
        return self._judge_odd(values, odd.arg_true(), cells)

    def _cast(self, cells: Column) -> pl.Series:
        kinds = [Kind(k) for k in cells.kind.unique().to_list() if k != Kind.BLANK]
        if len(kinds) == 1 and kinds[0] in self._casts:
            return self._casts[kinds[0]](cells.value)
        return self._cast_mixed(cells, kinds)

    def _cast_mixed(self, cells: Column, kinds: list[Kind]) -> pl.Series:
        """Cast each kind for itself: the most frequent one in place, the others taken out and put back."""
        read = pl.repeat(None, len(cells.value), dtype=self.column.frame_type, eager=True)
        few: list[tuple[Kind, pl.Series]] = []
        for kind in kinds:
            if kind not in self._casts:
                continue
            own = cells.kind == kind
            if 2 * (own.sum() or 0) > len(own):
                read = self._casts[kind](pl.select(pl.when(own).then(cells.value)).to_series())
            else:
                few.append((kind, own.arg_true()))
        for kind, at in few:
            read = read.scatter(at, self._casts[kind](cells.value.gather(at)))
        return read

    def _judge_odd(self, values: pl.Series, at: pl.Series, cells: Column) -> TypedColumn:
        # A loop, but over odd cells only, and each distinct one is judged once.
        found: dict[int, object] = {}
        misfits: list[tuple[int, str, str]] = []
        kinds, texts = cells.kind.gather(at).to_list(), cells.value.gather(at).to_list()
        if len(self._judged) > 10_000:
            self._judged.clear()
        for index, cell in zip(at.to_list(), zip(kinds, texts, strict=True), strict=True):
            if cell not in self._judged:
                self._judged[cell] = self._judge(Kind(cell[0]), cell[1])
            judgement = self._judged[cell]
            if isinstance(judgement, Misfit):
                misfits.append((index, judgement.rule, judgement.message))
            elif judgement is not None:
                found[index] = judgement
        if found:
            read = pl.Series(list(found.values()), dtype=self.column.frame_type)
            values = values.scatter(list(found), read)
        return TypedColumn(values, pl.DataFrame(misfits, schema=_MISFIT_SCHEMA, orient="row"))


def trimmed(values: pl.Series) -> pl.Series:
    """Texts without spaces at their ends; null for those that were nothing else."""
    texts = values.str.strip_chars()
    if (texts == "").any():
        return pl.select(pl.when(texts != "").then(texts)).to_series()
    return texts


def _casts(column: FormColumn, locale: Locale, *, date_1904: bool) -> dict[Kind, _Cast]:
    scale, precision = column.frame_scale, column.precision
    texts = NumberText(locale)

    def plain(values: pl.Series) -> pl.Series:
        stripped = values.str.strip_chars()
        return stripped if texts.is_plain else texts.plain_texts(stripped)

    match column.type:
        case "text":
            return {Kind.TEXT: trimmed, Kind.NUMBER: numbers.plain_integer_texts}
        case "integer":
            return {Kind.NUMBER: numbers.integers, Kind.TEXT: lambda v: numbers.integers(plain(v))}
        case "decimal":
            return {
                Kind.NUMBER: lambda v: numbers.decimals(v, precision, scale),
                Kind.TEXT: lambda v: numbers.text_decimals(plain(v), precision, scale),
            }
        case "float":
            return {Kind.NUMBER: numbers.floats, Kind.TEXT: lambda v: numbers.text_floats(plain(v))}
        case "boolean":
            return {Kind.BOOL: lambda v: v == "true"}
        case _:
            return _moment_casts(column, formats_for(column, locale), date_1904=date_1904)


def _moment_casts(column: FormColumn, formats: tuple[str, ...], *, date_1904: bool) -> dict[Kind, _Cast]:
    def moments(values: pl.Series) -> pl.Series:
        plain = plain_moments(values, date_1904=date_1904)
        if plain is not None:
            return plain
        read = _serials(values, serial.moments(pl.col("v"), date_1904=date_1904))
        return _filled_in(read, values, lambda left: datetimes_from_text(left, ()))

    def days(values: pl.Series) -> pl.Series:
        plain = plain_days(values, date_1904=date_1904)
        if plain is not None:
            return plain
        read = moments(values)
        midnight = read.dt.time() == pl.time(0, 0, 0)
        return pl.select(pl.when(midnight).then(read.dt.date())).to_series()

    def clocks(values: pl.Series) -> pl.Series:
        read = _serials(values, serial.clock_times(pl.col("v")))
        return _filled_in(read, values, lambda left: times_from_text(left, ()))

    def elapsed(values: pl.Series) -> pl.Series:
        return _serials(values, serial.durations(pl.col("v")))

    if column.type == "date":
        return {
            Kind.DATE: days,
            Kind.DATETIME: days,
            Kind.TEXT: lambda v: dates_from_text(v.str.strip_chars(), formats),
        }
    if column.type == "datetime":
        return {
            Kind.DATE: moments,
            Kind.DATETIME: moments,
            Kind.TEXT: lambda v: datetimes_from_text(v.str.strip_chars(), formats),
        }
    if column.type == "time":
        return {
            Kind.TIME: clocks,
            Kind.DATETIME: clocks,
            Kind.DURATION: clocks,
            Kind.TEXT: lambda v: times_from_text(v.str.strip_chars(), formats),
        }
    return {Kind.DURATION: elapsed, Kind.TIME: elapsed}


def _serials(values: pl.Series, reading: pl.Expr) -> pl.Series:
    return values.alias("v").to_frame().select(reading).to_series()


def _filled_in(read: pl.Series, values: pl.Series, second: _Cast) -> pl.Series:
    """Read what came out empty in a second way."""
    if read.null_count() == values.null_count():
        return read
    left = (read.is_null() & values.is_not_null()).arg_true()
    return read.scatter(left, second(values.gather(left)))
