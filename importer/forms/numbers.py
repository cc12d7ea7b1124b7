"""Numbers as a file writes them become exact numbers, by one rule.

An integer written out keeps all its digits. Any other number is brought to the 15 significant digits that Excel keeps
(7.4999999999999997E-2 is 0.075), half away from zero on the decimal digits as they are written: no binary float is on the way.
`number` is the rule for one value; the functions over series are the fast way to the same result and give null wherever they are not sure.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal

import polars as pl

#: Significant digits that Excel keeps of a number.
EXCEL_DIGITS = 15
#: Characters up to which a number without exponent has at most 15 digits (and a mark), or is an integer.
_SHORT = 16
#: Below this power of ten a number in a text column is written with an exponent, as Excel does.
_SMALLEST_PLAIN = -9

GRAMMAR = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_WRITTEN_OUT = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_PLAIN_INTEGER = r"^(?:0|-?[1-9][0-9]{0,14})$"

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
    if power < _SMALLEST_PLAIN or power > 400:  # noqa: PLR2004 - no cell is that long; never spell a hostile exponent out
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
    plain = values.str.contains(_PLAIN_INTEGER)
    if plain.all():
        return values
    return pl.select(pl.when(plain).then(values)).to_series()


def decimals(values: pl.Series, precision: int | None, scale: int) -> pl.Series:
    """Decimal(38, scale) of numbers that fit as written, null for anything else."""
    exact = _short_decimals(values)
    target = pl.Decimal(38, scale)
    fits = exact.cast(target, strict=False) if scale < EXCEL_DIGITS else exact
    if scale < EXCEL_DIGITS:
        same = fits.cast(pl.Decimal(38, EXCEL_DIGITS), strict=False) == exact
        if not same.all():
            fits = pl.select(pl.when(same).then(fits)).to_series()
    elif scale > EXCEL_DIGITS:
        fits = exact.cast(target, strict=False)
    if precision is not None and precision - scale < 38 - EXCEL_DIGITS:
        bound = Decimal(10) ** (precision - scale)
        inside = fits.abs() < bound
        if not inside.all():
            fits = pl.select(pl.when(inside).then(fits)).to_series()
    return fits


def short_decimals_of_text(values: pl.Series, precision: int | None, scale: int) -> pl.Series:
    """As `decimals` for numbers typed as text: longer ones are left to the rule, which keeps all their digits."""
    return decimals(_short(values), precision, scale)


def floats(values: pl.Series) -> pl.Series:
    """Float64 of numbers, null for anything that is not surely right."""
    short = _short(values)
    read = short.cast(pl.Float64, strict=False)
    if not read.is_finite().all():
        read = pl.select(pl.when(read.is_finite()).then(read)).to_series()
    if read.null_count() == values.null_count():
        return read
    long = _rounded(values.filter(read.is_null() & values.is_not_null()))
    at = (read.is_null() & values.is_not_null()).arg_true()
    return read.scatter(at, long.cast(pl.String).cast(pl.Float64))


def _short(values: pl.Series) -> pl.Series:
    """The values short enough to need no rounding, and without exponent; null for the others."""
    if values.null_count() == len(values):
        return values
    longest = values.str.len_bytes().max()
    sure = values.str.len_bytes() <= _SHORT if isinstance(longest, int) and longest > _SHORT else None
    exponent = values.str.contains("[eE]")
    if exponent.any():
        sure = ~exponent if sure is None else sure & ~exponent
    return values if sure is None else pl.select(pl.when(sure).then(values)).to_series()


def _short_decimals(values: pl.Series) -> pl.Series:
    """Decimal(38, 15) of numbers of up to 15 digits, and of longer ones without exponent brought to 15 digits."""
    exact = _short(values).cast(pl.Decimal(38, EXCEL_DIGITS), strict=False)
    if exact.null_count() == values.null_count():
        return exact
    left = exact.is_null() & values.is_not_null()
    return exact.scatter(
        left.arg_true(), _rounded(values.filter(left)).cast(pl.Decimal(38, EXCEL_DIGITS), strict=False)
    )


def _rounded(values: pl.Series) -> pl.Series:
    """Not yet: everything is left to `number`."""
    return pl.Series(values.name, [None] * len(values), dtype=pl.Decimal(38, 20))
