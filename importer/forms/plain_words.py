"""What a column expects, in the words of the person who fills the sheet in."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from importer.forms.column_definition import write_value
from importer.forms.form import Form, FormColumn, RuleValue

_WORDS = {
    "text": "text",
    "integer": "a whole number",
    "decimal": "a number",
    "float": "a number",
    "boolean": "TRUE or FALSE",
    "date": "a date",
    "datetime": "a date with a time",
    "time": "a time of day",
    "duration": "a duration in hours, minutes and seconds",
}
_EXAMPLES: dict[str, RuleValue] = {
    "integer": 12,
    "boolean": "TRUE",
    "date": date(2026, 3, 31),
    "datetime": datetime(2026, 3, 31, 14, 30),  # noqa: DTZ001 - cells know no zone
    "time": time(14, 30),
    "duration": timedelta(hours=36),
}
#: Choices named in a sentence; the dropdown has them all.
_NAMED_CHOICES = 12

#: The pieces of a pattern that have plain words; any other leaves the pattern as it is.
_PIECE = re.compile(r"(?P<set>\[A-Z\]|\[a-z\]|\[0-9\]|\[A-Za-z\]|\[a-zA-Z\]|\\d)|(?P<plain>[A-Za-z0-9 _/:#-]|\\[-./])")
_TIMES = re.compile(r"\{(\d{1,2})\}")
_SETS = {
    "[A-Z]": ("capital letter", "ABCDEFGH"),
    "[a-z]": ("small letter", "abcdefgh"),
    "[A-Za-z]": ("letter", "ABCDEFGH"),
    "[a-zA-Z]": ("letter", "ABCDEFGH"),
    "[0-9]": ("digit", "12345678"),
    "\\d": ("digit", "12345678"),
}


def words(column: FormColumn) -> str:
    """What goes into a cell of the column, in a few words."""
    if column.lookup is not None:
        return "a name that is known"
    if column.type == "decimal" and column.scale:
        return f"a number with up to {_counted(column.scale, 'decimal place')}"
    return _WORDS[column.type]


def rules(column: FormColumn, form: Form) -> tuple[str, ...]:
    """Each rule of a column as a sentence."""
    said: list[str] = []
    if column.required:
        said.append("Required: the cell may not be blank.")
    said += _bounds(column)
    if column.choices:
        said.append(f"One of: {_choices(column.choices)}.")
    if column.lookup is not None:
        made = " one that is not known yet is added" if column.lookup.create else " one that is not is refused"
        said.append(f"Must be known in {column.lookup.table.replace('_', ' ')};{made}.")
    if column.max_length is not None:
        said.append(f"At most {_counted(column.max_length, 'character')}.")
    if column.pattern is not None:
        said.append(pattern_rule(column.pattern))
    if column.precision is not None:
        said.append(f"At most {_counted(column.precision, 'digit')} in all.")
    if column.unique or form.key == (column.name,):
        said.append("Each value may stand only once.")
    elif column.name in form.key:
        others = " and ".join(form.column(name).title for name in form.key if name != column.name)
        said.append(f"May repeat, but not together with the same {others}.")
    if column.formats:
        said.append("Typed as text, it is also read as " + ", ".join(map(format_words, column.formats)) + ".")
    return tuple(said)


def _bounds(column: FormColumn) -> list[str]:
    least, most = (None if value is None else spelled(value) for value in (column.minimum, column.maximum))
    if least is not None and most is not None:
        return [f"From {least} to {most}."]
    if least is not None:
        return [f"At least {least}."]
    return [] if most is None else [f"At most {most}."]


def example(column: FormColumn) -> str:
    """A value that keeps the column's rules, as far as they have plain words; nothing when none is known."""
    if column.choices:
        return spelled(column.choices[0])
    if column.pattern is not None:
        return (_read_pattern(column.pattern) or ("", ""))[1]
    if column.type == "text" or column.lookup is not None:
        return ""
    if column.minimum is not None or column.maximum is not None:
        return spelled(_between(column.minimum, column.maximum))
    if column.type in ("decimal", "float"):
        return "12" if column.scale == 0 else "12.5"
    return spelled(_EXAMPLES[column.type])


def spelled(value: RuleValue) -> str:
    """A value as the sender sees it: moments in ISO 8601, numbers without an exponent."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes" if not value.second else "auto")
    if isinstance(value, time):
        return value.isoformat(timespec="minutes" if not value.second else "auto")
    return str(write_value(value))


def _between(least: RuleValue | None, most: RuleValue | None) -> RuleValue:
    value = least if least is not None else most
    assert value is not None
    if isinstance(least, int | Decimal) and isinstance(most, int | Decimal):
        return int(least + (most - least) // 2) if most - least > 1 else least
    return value


def _choices(choices: tuple[RuleValue, ...]) -> str:
    named = ", ".join(spelled(choice) for choice in choices[:_NAMED_CHOICES])
    more = len(choices) - _NAMED_CHOICES
    return f"{named} and {more} more" if more > 0 else named


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_words(written: str) -> str:
    """A declared format of moments as people write it: DD/MM/YYYY."""
    for directive, shown in (
        ("%d", "DD"), ("%m", "MM"), ("%Y", "YYYY"), ("%y", "YY"), ("%b", "Mar"), ("%B", "March"), ("%H", "hh"),
        ("%I", "hh"), ("%M", "mm"), ("%S.%f", "ss.000"), ("%S", "ss"), ("%p", "AM/PM"),
    ):  # fmt: skip
        written = written.replace(directive, shown)
    return written


def pattern_rule(pattern: str) -> str:
    """A pattern as a sentence: in plain words where it is simple enough."""
    read = _read_pattern(pattern)
    return f"Exactly {read[0]}." if read else f"The text must match the pattern {pattern}"


def _read_pattern(pattern: str) -> tuple[str, str] | None:
    """A simple whole pattern in words, with an example: `^[A-Z]{3}[0-9]{4}$`; none for any other."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    said: list[str] = []
    shown = ""
    at, end = 1, len(pattern) - 1
    literal = ""
    while at < end:
        piece = _PIECE.match(pattern, at, end)
        if piece is None:
            return None
        at = piece.end()
        repeat = _TIMES.match(pattern, at, end)
        times = int(repeat[1]) if repeat else 1
        at = repeat.end() if repeat else at
        if piece["plain"]:
            literal += piece["plain"][-1] * times
            shown += piece["plain"][-1] * times
            continue
        noun, letters = _SETS[piece["set"]]
        said += [f"“{literal}”"] if literal else []
        literal = ""
        said.append(_counted(times, noun))
        shown += (letters * (times // len(letters) + 1))[:times]
    said += [f"“{literal}”"] if literal else []
    return ", then ".join(said), shown
