"""What becomes of one cell, exactly: its value under a column's type, or what is wrong with it, in words.

`cells` types whole columns at once and asks here only about cells that it is not sure of, once for each distinct cell.
So this is the rule, and the vectorised ways of `cells` are short cuts to the same answer (moments apart, which
`cells` reads itself: here is only said why one is none).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from importer.excel.cells import Kind
from importer.forms import numbers
from importer.forms.form import MAX_PRECISION, FormColumn, Locale
from importer.forms.locale_text import NumberText, looks_like_a_number, looks_like_a_truth
from importer.forms.moment_text import duration_from_text, formats_for, names_a_zone

#: What PostgreSQL's bigint and a frame's Int64 hold.
_INTEGER_BOUND = 2**63
#: More digits than any column holds: beyond this no number is spelled out.
_MOST_DIGITS = 400
#: The day after 9999-12-31, as a serial.
_BEYOND_SERIALS = 2_958_466

#: Year, month and day are told apart as ISO 8601 does, whatever else is wrong.
_LOOKS_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)?", re.ASCII)
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
_ISO_EXAMPLE = {"date": "2024-02-29", "datetime": "2024-02-29 13:30:00", "time": "13:30:00"}


@dataclass(frozen=True)
class Misfit:
    """Why a cell is not loaded: the code of the rule and a sentence."""

    rule: str
    message: str


class Judge:
    """Judges the cells of one form column."""

    def __init__(self, column: FormColumn, locale: Locale) -> None:
        self._column = column
        self._wanted = WANTED[column.type]
        self._by_type: Callable[[Kind, str], object] = {
            "text": self._text,
            "integer": self._integer,
            "decimal": self._decimal,
            "float": self._float,
            "boolean": self._boolean,
            "duration": self._duration,
        }.get(column.type, self._moment)
        self._number_text = NumberText(locale)
        self._formats = formats_for(column, locale)
        words = {**dict.fromkeys(locale.true or ("true",), True), **dict.fromkeys(locale.false or ("false",), False)}
        self._truth_words = tuple(words)
        self._truths = {word.casefold(): truth for word, truth in words.items()}

    def __call__(self, kind: Kind, text: str) -> object:
        """Give the value of a cell (none: blank) or the misfit it is."""
        if kind == Kind.TEXT:
            text = text.strip()
            if not text:
                return None
        unusable = self._unusable(kind, text)
        if unusable is not None:
            return unusable
        return self._by_type(kind, text)

    def _unusable(self, kind: Kind, text: str) -> Misfit | None:
        """Say what no type can take."""
        if kind == Kind.ERROR:
            return Misfit("cell_error", f"the cell shows the error {text} where {self._wanted} is expected")
        if kind == Kind.UNCALCULATED:
            return Misfit(
                "no_cached_value",
                "the formula was never calculated: open the workbook in Excel, save it and send it again",
            )
        if kind == Kind.BROKEN:
            return Misfit("bad_cell", f"the file breaks this cell, so it cannot be read; {self._wanted} is expected")
        if kind == Kind.UNSTORABLE:
            return Misfit(
                "bad_character", "the text holds a character that PostgreSQL cannot store (here as _x and its code)"
            )
        if kind == Kind.NUMBER and not numbers.GRAMMAR.fullmatch(text):
            return Misfit(
                "bad_cell", f"the file says this cell is a number, but it holds none; {self._wanted} is expected"
            )
        return None

    def _found(self, kind: Kind) -> Misfit:
        return Misfit("type", f"{self._wanted} is expected, the cell holds {_HELD[kind]}")

    def _text(self, kind: Kind, text: str) -> object:
        if kind == Kind.TEXT:
            return text
        if kind == Kind.BOOL:
            return text.upper()
        if kind != Kind.NUMBER:
            held = _HELD[kind]
            return Misfit("type", f"text is expected, the cell holds {held}: format the cell as text and type it again")
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

    def _number(self, kind: Kind, text: str) -> Decimal | Misfit:
        if kind == Kind.NUMBER:
            read = numbers.number(text)
        elif kind == Kind.TEXT:
            plain = self._number_text.plain(text)
            read = None if plain is None else numbers.exact_number(plain)
        else:
            return self._found(kind)
        if read is not None:
            return read
        if looks_like_a_number(text):
            return Misfit(
                "type",
                f"{self._wanted} is expected; this text looks like one with other marks for decimals or thousands "
                "than the form declares (key locale)",
            )
        return Misfit("type", f"{self._wanted} is expected, the cell holds text")

    def _integer(self, kind: Kind, text: str) -> object:
        read = self._number(kind, text)
        if isinstance(read, Misfit):
            return read
        if numbers.decimal_places(read):
            return Misfit("type", "a whole number is expected, this one has decimal places")
        if numbers.integer_digits(read) > len(str(_INTEGER_BOUND)) or not -_INTEGER_BOUND <= int(read) < _INTEGER_BOUND:
            return Misfit("type", f"the number is too large: whole numbers go to {_INTEGER_BOUND - 1}")
        return int(read)

    def _decimal(self, kind: Kind, text: str) -> object:
        read = self._number(kind, text)
        if isinstance(read, Misfit):
            return read
        scale = self._column.frame_scale
        if kind == Kind.TEXT and self._column.scale is None and numbers.decimal_places(read) > scale:
            # Text keeps all its digits where the column can hold them; else it is brought to 15 digits as any number.
            read = numbers.fifteen_digits(read)
        if numbers.decimal_places(read) > scale:
            at_most = "no decimal places are" if scale == 0 else f"at most {scale} decimal places are"
            return Misfit("precision", f"{at_most} expected, this number has more")
        most = (self._column.precision or MAX_PRECISION) - scale
        if numbers.integer_digits(read) > most:
            return Misfit("precision", f"at most {most} digits before the decimal point are expected, there are more")
        return read

    def _float(self, kind: Kind, text: str) -> object:
        read = self._number(kind, text)
        if isinstance(read, Misfit):
            return read
        value = float(read)
        if value in (float("inf"), float("-inf")):
            return Misfit("type", "the number is too large: numbers go to about 1.8E+308")
        return value

    def _boolean(self, kind: Kind, text: str) -> object:
        if kind == Kind.BOOL:
            return text == "true"
        if kind == Kind.NUMBER:
            value = numbers.number(text)
            if value in (0, 1):
                return value == 1
            return Misfit("type", "true or false is expected, the cell holds a number other than 1 and 0")
        if kind != Kind.TEXT:
            return self._found(kind)
        folded = text.casefold()
        if folded in self._truths:
            return self._truths[folded]
        words = " and ".join(f'"{word}"' for word in self._truth_words)
        hint = "; this text looks like a word that the form would have to declare (key locale)"
        return Misfit(
            "type",
            f"true or false is expected; of text only {words} are read{hint if looks_like_a_truth(text) else ''}",
        )

    def _duration(self, kind: Kind, text: str) -> object:
        if kind == Kind.TEXT:
            read = duration_from_text(text)
            if read is not None:
                return read
            return Misfit(
                "type", "a duration is expected; of text only hours as 36:00:00 and ISO 8601 as PT36H are read"
            )
        if kind in (Kind.TIME, Kind.DURATION):
            read = duration_from_text(text)  # where the file itself writes ISO 8601
            if read is not None:
                return read
            return Misfit("type", "a duration is expected, this one cannot be read or is longer than can be stored")
        if kind == Kind.NUMBER:
            return Misfit("type", "a duration is expected, the cell holds a bare number whose unit is not known")
        return self._found(kind)

    def _moment(self, kind: Kind, text: str) -> object:
        """Say why `cells` found no moment in this cell (times of day in ISO 8601 durations, as ODS has them, apart)."""
        if self._column.type == "time" and kind in (Kind.TIME, Kind.DURATION):
            read = duration_from_text(text)
            if read is not None and timedelta() <= read < timedelta(days=1):
                return (datetime.min + read).time()  # noqa: DTZ901 - a workbook knows no zone
        if kind == Kind.BOOL:
            return self._found(kind)
        if kind == Kind.NUMBER:
            why = "the cell holds a bare number that is not formatted as one"
        elif kind == Kind.TEXT:
            return Misfit("bad_date", self._text_is_no_moment(text))
        else:
            why = _why_no_moment(self._column.type, kind, text)
        return Misfit("bad_date", f"{self._wanted} is expected, {why}")

    def _text_is_no_moment(self, text: str) -> str:
        if names_a_zone(text):
            return f"{self._wanted} without a time zone is expected, this text names one"
        if _LOOKS_ISO.fullmatch(text):
            return f"{self._wanted} is expected; this text is written as one, but there is no such moment"
        if _LOOKS_DATE.fullmatch(text) and not self._formats:
            return (
                f"{self._wanted} is expected; which part of this text is the day and which the month is not known: "
                "the form would have to declare it (key formats)"
            )
        read = ", ".join((_ISO_EXAMPLE[self._column.type], *self._formats))
        return f"{self._wanted} is expected; of text only {read} is read, and there must be such a moment"


def _why_no_moment(wanted: str, kind: Kind, text: str) -> str:
    try:
        serial = float(text)
    except ValueError:
        return "the cell holds something else or there is no such moment"
    if wanted == "time":
        return "the cell holds a day as well" if serial >= 1 else "there is no such time of day"
    if kind in (Kind.TIME, Kind.DURATION):
        return f"the cell holds {_HELD[kind]}"
    if not 0 <= serial < _BEYOND_SERIALS:
        return "the number behind this cell lies outside the years that Excel knows, 1900 to 9999"
    if serial < 1:
        return "the cell holds a time of day without a day"
    if int(serial) == 60:  # the day that Lotus 1-2-3 invented
        return "Excel shows 29 February 1900 here, a day that never was"
    return "this one has a time of day as well"
