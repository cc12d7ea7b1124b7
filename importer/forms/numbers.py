"""Numbers as a file writes them become exact numbers, by one rule.

An integer written out keeps all its digits. Any other number is brought to the 15 significant digits that Excel keeps
(7.4999999999999997E-2 is 0.075), half away from zero on the decimal digits as they are written: no binary float is on
the way. `number` is the rule for one value; the functions over series are the fast way to the same result and give null
wherever they are not sure.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal

import polars as pl

from importer.forms.form import DEFAULT_SCALE

#: Significant digits that Excel keeps of a number.
EXCEL_DIGITS = 15
#: Characters up to which a number without exponent has at most 15 digits (and a mark), or is an integer.
_SHORT = 16
#: Below this power of ten a number in a text column is written with an exponent, as Excel does.
_SMALLEST_PLAIN = -9

GRAMMAR = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?0*[0-9]{1,9})?")
_WRITTEN_OUT = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_PLAIN_INTEGER = r"^(?:0|-?[1-9][0-9]{0,14})$"

#: Places of a decimal column that declares none.
_FRAME_SCALE = DEFAULT_SCALE
#: Wide enough for 15 digits from 1e-5 on, and for 18 before the point.
_WIDE = pl.Decimal(38, 20)
#: Powers of ten from 1e-17 to 1e17, to find out how many digits stand before the decimal point.
_POWERS = [10.0**power for power in range(-17, 18)]
#: From here on 15 digits do not reach the decimal point.
_BEYOND = 10.0**EXCEL_DIGITS

_FIFTEEN = Context(prec=EXCEL_DIGITS, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_EXACT = Context(prec=100_000, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def is_written_out(text: str) -> bool:
    """Whether the text is an integer with all its digits (`12`, `12.0`), and not `1.2E1`."""
    return _WRITTEN_OUT.fullmatch(text) is not None


def number(text: str) -> Decimal | None:
    """The number a cell holds, none when the text is no number."""
    if not GRAMMAR.fullmatch(text):
        return None
    return shortest((_EXACT if is_written_out(text) else _FIFTEEN).create_decimal(text))


def exact_number(text: str) -> Decimal | None:
    """The number a text says with all its digits, none when it says none."""
    return shortest(_EXACT.create_decimal(text)) if GRAMMAR.fullmatch(text) else None


def fifteen_digits(value: Decimal) -> Decimal:
    """Bring a number to the digits that Excel keeps."""
    return shortest(_FIFTEEN.plus(value))


def shortest(value: Decimal) -> Decimal:
    """The same number without trailing zeros behind the point (and no exponent games before it)."""
    return value.normalize(_EXACT) if value else Decimal(0)


def decimal_places(value: Decimal) -> int:
    """Places behind the decimal point that a normalized number needs."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def integer_digits(value: Decimal) -> int:
    """Digits before the decimal point."""
    return max(0, value.adjusted() + 1) if value else 0


def general(value: Decimal) -> str:
    """A number as Excel's General format writes it, with all of its (up to 15) digits."""
    if not value:
        return "0"
    power = value.adjusted()
    if power < _SMALLEST_PLAIN or power > 400:
        sign, digits, _ = value.as_tuple()
        mantissa = "".join(map(str, digits)).rstrip("0") or "0"
        point = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
        return f"{'-' if sign else ''}{mantissa[0]}{point}E{'-' if power < 0 else '+'}{abs(power):02d}"
    return format(value, "f")


def integers(values: pl.Series) -> pl.Series:
    """Int64 of plain integers, null for anything else."""
    return values.cast(pl.Int64, strict=False)


def plain_integer_texts(values: pl.Series) -> pl.Series:
    """The texts that are integers as General writes them already, null for anything else."""
    return _where(values, values.str.contains(_PLAIN_INTEGER))


def decimals(values: pl.Series, precision: int | None, scale: int) -> pl.Series:
    """Decimal(38, scale) of numbers that fit as written or as 15 digits, null for anything else."""
    return _fitted(_exact_decimals(values), precision, scale)


def text_decimals(values: pl.Series, precision: int | None, scale: int) -> pl.Series:
    """As `decimals` for numbers typed as text, which keep all their digits; null where it is not sure."""
    places = values.str.len_bytes() - values.str.find(".", literal=True) - 1
    sure = (places.fill_null(0) <= _FRAME_SCALE) & ~values.str.contains("[eE]")
    return _fitted(_where(values, sure).cast(pl.Decimal(38, _FRAME_SCALE), strict=False), precision, scale)


def _fitted(exact: pl.Series, precision: int | None, scale: int) -> pl.Series:
    """The numbers that fit into a column of this precision and scale, null for the others."""
    fits = exact
    if scale != _FRAME_SCALE:
        fits = exact.cast(pl.Decimal(38, scale), strict=False)
    if scale < _FRAME_SCALE:
        fits = _where(fits, fits.cast(exact.dtype, strict=False) == exact)
    if precision is not None and precision - scale < 38 - _FRAME_SCALE:
        fits = _where(fits, fits.abs() < Decimal(10) ** (precision - scale))
    return fits


def text_floats(values: pl.Series) -> pl.Series:
    """Float64 nearest to numbers typed as text, with all their digits; null for anything else."""
    read = values.cast(pl.Float64, strict=False)
    return _where(read, read.is_finite())


def floats(values: pl.Series) -> pl.Series:
    """Float64 of numbers, null for anything that is not surely right."""
    read = text_floats(_short(values))
    if read.null_count() == values.null_count():
        return read
    left = read.is_null() & values.is_not_null()
    return read.scatter(left.arg_true(), _rounded(values.filter(left)).cast(pl.String).cast(pl.Float64))


def _short(values: pl.Series) -> pl.Series:
    """The values short enough to need no rounding, and without exponent; null for the others."""
    if values.null_count() == len(values):
        return values
    longest = values.str.len_bytes().max()
    sure = values.str.len_bytes() <= _SHORT if isinstance(longest, int) and longest > _SHORT else None
    exponent = values.str.contains("[eE]")
    if exponent.any():
        sure = ~exponent if sure is None else sure & ~exponent
    return values if sure is None else _where(values, sure)


def _exact_decimals(values: pl.Series) -> pl.Series:
    """Decimal(38, 18) of numbers brought to 15 digits, null where they need more places or it is not sure."""
    target = pl.Decimal(38, _FRAME_SCALE)
    exact = _short(values).cast(target, strict=False)
    if exact.null_count() == values.null_count():
        return exact
    left = exact.is_null() & values.is_not_null()
    rounded = _rounded(values.filter(left))
    cut = rounded.cast(target, strict=False)
    return exact.scatter(left.arg_true(), _where(cut, cut.cast(rounded.dtype, strict=False) == rounded))


def _where(values: pl.Series, holds: pl.Series) -> pl.Series:
    """The values for which it holds, null for the others."""
    return values if holds.all() else pl.select(pl.when(holds).then(values)).to_series()


def _rounded(values: pl.Series) -> pl.Series:
    """Decimal(38, 20) of long numbers brought to 15 significant digits, null where it is not sure.

    Never of integers written out: those keep all their digits.
    """
    exponent = values.str.contains("[eE]")
    if not exponent.any():
        return _rounded_plain(values)
    plain = _rounded_plain(pl.select(pl.when(~exponent).then(values)).to_series())
    scientific = _rounded_scientific(pl.select(pl.when(exponent).then(values)).to_series())
    return pl.select(pl.coalesce(plain, scientific)).to_series()


def _rounded_plain(values: pl.Series) -> pl.Series:
    """As `_rounded`, for numbers with a decimal point and no exponent."""
    places = values.str.len_bytes() - values.str.find(".", literal=True) - 1
    exact = pl.select(pl.when(places <= _WIDE.scale).then(values)).to_series().cast(_WIDE, strict=False)
    # The power of ten is judged by the nearest double: where that is off, the number is so near to a power of ten that
    # 15 digits come out the same.
    size = values.cast(pl.Float64, strict=False).abs()
    exact = _where(exact, size < _BEYOND)
    power = pl.Series(_POWERS).search_sorted(size, side="right").cast(pl.Int8)
    return _rounded_by(exact, power, EXCEL_DIGITS + len(_POWERS) // 2)


def _rounded_scientific(values: pl.Series) -> pl.Series:
    """As `_rounded`, for numbers written with one digit before the point and an exponent that is not extreme."""
    parts = values.str.to_uppercase().str.splitn("E", 2)
    mantissa = parts.struct.field("field_0")
    power = parts.struct.field("field_1").cast(pl.Int16, strict=False)
    places = mantissa.str.len_bytes().cast(pl.Int32) - mantissa.str.find(".", literal=True).cast(pl.Int32) - 1
    sure = power.is_between(EXCEL_DIGITS - 1 - _WIDE.scale, 17) & (places.fill_null(0) <= _WIDE.scale)
    exact = mantissa.cast(_WIDE, strict=False)
    sure = sure & (exact.abs() >= 1) & (exact.abs() < 10)
    digits = exact.round(EXCEL_DIGITS - 1, mode="half_away_from_zero").cast(pl.String)
    text = pl.select(pl.when(sure).then(digits + "E" + power.cast(pl.String))).to_series()
    return text.cast(_WIDE, strict=False)


def _rounded_by(exact: pl.Series, power: pl.Series, most: int) -> pl.Series:
    """Round each number to the places that leave it 15 digits; *power* counts from the smallest of `_POWERS`."""
    rounded = exact
    few: list[tuple[pl.Series, pl.Series]] = []
    for k in power.unique().drop_nulls().to_list():
        places = max(0, min(_WIDE.scale, most - k))
        at = (power == k).arg_true()
        if 2 * len(at) > len(exact):
            rounded = exact.round(places, mode="half_away_from_zero")
        else:
            few.append((at, exact.gather(at).round(places, mode="half_away_from_zero")))
    for at, part in few:
        rounded = rounded.scatter(at, part)
    return rounded
