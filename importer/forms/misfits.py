"""What is wrong with one cell, in words: the rule for each kind of cell under each type, one cell at a time.

`cells` types whole columns at once and asks here only about cells that it is not sure of, once for each distinct cell. So this is the
exact rule, and the vectorised ways of `cells` are short cuts to the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from importer.excel.cells import Kind
from importer.forms import numbers
from importer.forms.form import MAX_PRECISION, FormColumn, Locale
from importer.forms.moment_text import duration_from_text, names_a_zone

#: What PostgreSQL's bigint and a frame's Int64 hold.
_INTEGER_BOUND = 2**63
#: More digits than any column holds: beyond this no number is spelled out.
_MOST_DIGITS = 400

_LOOKS_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[.,'’ \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?%?")
_LOOKS_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+%?")
_LOOKS_DATE = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?:[ T].*)?")

WANTED = {
    "text": "text",
    "integer": "a whole number",
    "decimal": "a number",
    "float": "a number",
    "boolean": "true or false",
    "date": "a date",
    "datetime": "a date with a time of day",
    "time": "a time of day",
    "duration": "a duration",
}
_HELD = {
    Kind.TEXT: "text",
    Kind.NUMBER: "a number",
    Kind.BOOL: "true or false",
    Kind.DATE: "a date",
    Kind.DATETIME: "a date with a time of day",
    Kind.TIME: "a time of day",
    Kind.DURATION: "a duration",
}
_MOMENT_KINDS = (Kind.DATE, Kind.DATETIME, Kind.TIME, Kind.DURATION)


@dataclass(frozen=True)
class Misfit:
    """Why a cell is not loaded: the code of the rule and a sentence."""

    rule: str
    message: str


#: The value of a cell under a column's type (none: blank), or why it has none.
Judge = Callable[[Kind, str], object]


def judge_for(column: FormColumn, locale: Locale) -> Judge:
    """The judge of the cells of a column."""
    judges: dict[str, Callable[[FormColumn, Locale, Kind, str], object]] = {
        "text": _text,
        "integer": _integer,
        "decimal": _decimal,
        "float": _float,
        "boolean": _boolean,
    }
    judge = judges.get(column.type, _moment)

    def judged(kind: Kind, text: str) -> object:
        if kind == Kind.TEXT:
            text = text.strip()
            if not text:
                return None
        return _unusable(column, kind, text) or judge(column, locale, kind, text)

    return judged


def _unusable(column: FormColumn, kind: Kind, text: str) -> Misfit | None:
    """What no type can take."""
    wanted = WANTED[column.type]
    if kind == Kind.ERROR:
        return Misfit("cell_error", f"the cell shows the error {text} where {wanted} is expected")
    if kind == Kind.UNCALCULATED:
        return Misfit(
            "no_cached_value", "the formula was never calculated: open the workbook in Excel, save it and send it again"
        )
    if kind == Kind.BROKEN:
        return Misfit("bad_cell", f"the file breaks this cell, so it cannot be read; {wanted} is expected")
    if kind == Kind.UNSTORABLE:
        return Misfit("bad_character", "the text holds a character that PostgreSQL cannot store (shown as _x....._)")
    if kind == Kind.NUMBER and not numbers.GRAMMAR.fullmatch(text):
        return Misfit("bad_cell", f"the file says this cell is a number, but it holds none; {wanted} is expected")
    return None


def _found(column: FormColumn, kind: Kind) -> Misfit:
    return Misfit("type", f"{WANTED[column.type]} is expected, the cell holds {_HELD[kind]}")


def _text(column: FormColumn, locale: Locale, kind: Kind, text: str) -> object:
    if kind == Kind.TEXT:
        return text
    if kind == Kind.BOOL:
        return text.upper()
    if kind != Kind.NUMBER:
        return Misfit(
            "type", f"text is expected, the cell holds {_HELD[kind]}: format the cell as text and type it again"
        )
    value = numbers.number(text)
    if value is None or value.adjusted() >= _MOST_DIGITS:
        return Misfit("precision", "the number is too long to be written out as text")
    if value.adjusted() >= numbers.EXCEL_DIGITS and not numbers.is_written_out(text):
        return Misfit(
            "precision",
            f"Excel keeps only {numbers.EXCEL_DIGITS} digits of a number, the others are lost: "
            "format the cell as text and type it again",
        )
    return numbers.general(value)


def _number(column: FormColumn, locale: Locale, kind: Kind, text: str) -> Decimal | Misfit:
    if kind == Kind.NUMBER:
        read = numbers.number(text)
    elif kind == Kind.TEXT:
        read = numbers.exact_number(text)
    else:
        return _found(column, kind)
    if read is not None:
        return read
    if _LOOKS_COMMA.fullmatch(text) or _LOOKS_GROUPED.fullmatch(text):
        return Misfit(
            "type",
            f"{WANTED[column.type]} is expected; this text looks like one written with another decimal or thousands mark: "
            "the form would have to declare them as its locale",
        )
    return Misfit("type", f"{WANTED[column.type]} is expected, the cell holds text")


def _integer(column: FormColumn, locale: Locale, kind: Kind, text: str) -> object:
    read = _number(column, locale, kind, text)
    if isinstance(read, Misfit):
        return read
    if numbers.integer_digits(read) > 19:  # noqa: PLR2004 - digits of the largest bigint
        return Misfit("type", "the number is too large for a whole number (at most 9223372036854775807)")
    if read != read.to_integral_value():
        return Misfit("type", "a whole number is expected, this one has decimal places")
    value = int(read)
    if not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        return Misfit("type", "the number is too large for a whole number (at most 9223372036854775807)")
    return value


def _decimal(column: FormColumn, locale: Locale, kind: Kind, text: str) -> object:
    read = _number(column, locale, kind, text)
    if isinstance(read, Misfit):
        return read
    scale = column.frame_scale
    precision = column.precision or MAX_PRECISION
    if kind == Kind.TEXT and numbers.decimal_places(read) > scale and column.scale is None:
        read = numbers.number(text) or read
    if numbers.decimal_places(read) > scale:
        least = (
            "no decimal places are" if scale == 0 else f"at most {scale} decimal place{'s are' if scale > 1 else ' is'}"
        )
        return Misfit("precision", f"{least} expected, this number has more")
    if numbers.integer_digits(read) > precision - scale:
        return Misfit(
            "precision",
            f"at most {precision - scale} digits before the decimal point are expected, this number has more",
        )
    return read


def _float(column: FormColumn, locale: Locale, kind: Kind, text: str) -> object:
    read = _number(column, locale, kind, text)
    if isinstance(read, Misfit):
        return read
    value = float(read)
    if value in (float("inf"), float("-inf")):
        return Misfit("type", "the number is too large")
    return value


def _boolean(column: FormColumn, locale: Locale, kind: Kind, text: str) -> object:
    if kind == Kind.BOOL:
        return text == "true"
    if kind == Kind.NUMBER:
        value = numbers.number(text)
        if value in (0, 1):
            return value == 1
        return Misfit("type", "true or false is expected, the cell holds a number other than 0 and 1")
    if kind != Kind.TEXT:
        return _found(column, kind)
    words = {**dict.fromkeys(locale.true or ("true",), True), **dict.fromkeys(locale.false or ("false",), False)}
    folded = {word.casefold(): truth for word, truth in words.items()}
    if text.casefold() in folded:
        return folded[text.casefold()]
    return Misfit(
        "type",
        f"true or false is expected; of text only {' and '.join(words)} are read, other words would have to be declared "
        "in the form's locale",
    )


def _moment(column: FormColumn, locale: Locale, kind: Kind, text: str) -> object:
    """Why `cells` found no moment in this cell (it reads all that there are)."""
    if column.type == "duration":
        return _duration(column, kind, text)
    wanted = WANTED[column.type]
    if kind == Kind.NUMBER:
        return Misfit("bad_date", f"{wanted} is expected, the cell holds a bare number that is not formatted as one")
    if kind == Kind.BOOL:
        return _found(column, kind)
    if kind == Kind.TEXT:
        return Misfit("bad_date", _text_is_no_moment(column, locale, text))
    return Misfit("bad_date", _serial_is_no_moment(column, kind, text))


def _text_is_no_moment(column: FormColumn, locale: Locale, text: str) -> str:
    wanted = WANTED[column.type]
    if names_a_zone(text):
        return f"{wanted} without a time zone is expected, this text names one"
    formats = (*column.formats, *locale.formats)
    if _LOOKS_DATE.fullmatch(text) and not formats:
        return f"{wanted} is expected; which part of this text is the day and which the month is not known: the form would have to declare its formats"
    iso = {"date": "2024-02-29", "datetime": "2024-02-29 13:30:00", "time": "13:30:00"}[column.type]
    return (
        f"{wanted} is expected; of text only {', '.join((iso, *formats))} are read and only if there is such a moment"
    )


def _serial_is_no_moment(column: FormColumn, kind: Kind, text: str) -> str:
    wanted = WANTED[column.type]
    if column.type == "date" and kind == Kind.DURATION:
        return f"{wanted} is expected, the cell holds a duration"
    if column.type == "date" and kind == Kind.TIME:
        return f"{wanted} is expected, the cell holds a time of day"
    try:
        serial = float(text)
    except ValueError:
        if column.type == "date" and ":" in text:
            return "a date is expected, this one has a time of day as well"
        return f"{wanted} is expected, there is no such moment"
    if column.type == "time":
        return f"{wanted} is expected, the cell holds a day as well"
    if int(serial) == 60:  # noqa: PLR2004 - the day that Lotus invented
        return f"{wanted} is expected; Excel shows 29 February 1900, a day that never was"
    if serial < 0 or serial >= 2_958_466:  # noqa: PLR2004 - 9999-12-31 is the last day
        return f"{wanted} is expected; the number behind it lies outside the years 1900 to 9999"
    if serial < 1:
        return f"{wanted} is expected; the cell holds a time of day without a day"
    if column.type == "date":
        return "a date is expected, this one has a time of day as well"
    return f"{wanted} is expected, the cell holds {_HELD[kind]}"


def _duration(column: FormColumn, kind: Kind, text: str) -> object:
    if kind == Kind.TEXT:
        read = duration_from_text(text)
        return (
            read
            if read is not None
            else Misfit("type", "a duration is expected; of text only 36:00:00 and PT36H are read")
        )
    if kind in (Kind.TIME, Kind.DURATION):
        return Misfit("type", "a duration is expected, this one is longer than can be stored")
    return _found(column, kind)
