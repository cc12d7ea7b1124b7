"""A number format says what a number is: a date, a moment, a time of day, an elapsed time, or just a number.

The grammar is that of ECMA-376 part 1, 18.8.31 (numFmts), with what Excel writes beyond it: `[$-F400]`, eras, Thai and
Buddhist years, AM/PM in other scripts. Two things decide: the letters outside quotes, escapes and brackets, and the
neighbours of an `m` (month or minute). Only number sections count; the section for text never does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from importer.excel.cells import Kind

#: the formats that need no text in the file (ECMA-376 part 1, 18.8.30); every other builtin is a plain number
BUILTIN: dict[int, Kind] = {
    **dict.fromkeys((14, 15, 16, 17), Kind.DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 47), Kind.TIME),
    22: Kind.DATETIME,
    46: Kind.DURATION,
    # East Asian builtins: dates, times, and four that are a date in Japanese and a time in Chinese
    **dict.fromkeys((27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), Kind.DATE),
    **dict.fromkeys((32, 33), Kind.TIME),
    **dict.fromkeys((34, 35, 55, 56), Kind.DATETIME),
    # Thai builtins
    **dict.fromkeys((71, 72, 73, 74, 81), Kind.DATE),
    **dict.fromkeys((75, 76, 78, 80), Kind.TIME),
    77: Kind.DATETIME,
    79: Kind.DURATION,
}

_TOKENS = re.compile(
    r"""
      "(?:[^"]*)(?:"|$)                 # quoted text
    | [\\_*].?                          # an escaped character, a space of its width, a fill
    | \[(?P<bracket>[^\]]*)\]?          # colour, condition, locale, elapsed time
    | (?P<general>general)
    | (?P<noon>am/pm|a/p|上午/下午|午前/午後|오전/오후)
    | (?P<science>e[+-])
    | (?P<fraction>\.0+)                # of a second, or of a number
    | (?P<letters>y+|m+|d+|h+|s+|e+|g+|b+[12]?|a{3,4})
    | (?P<digit>[0\#?])
    | (?P<end>;)
    | (?P<other>.)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
_CONDITION = re.compile(r"\s*(?:[<>]=?|<>|=)")


@dataclass
class _Section:
    day: bool = False
    clock: bool = False
    elapsed: bool = False
    digits: bool = False
    conditional: bool = False

    @property
    def temporal(self) -> bool:
        return (self.day or self.clock or self.elapsed) and not self.digits


@lru_cache(maxsize=4096)
def kind_of(code: str) -> Kind:
    """Say what a number under this format code is; `NUMBER` for all that shows no moment."""
    sections = _sections(code)[:3]
    first = sections[0]
    if not first.temporal and first.digits and not first.conditional:
        return Kind.NUMBER  # a positive number is shown as a number, whatever the other sections do
    temporal = [section for section in sections if section.temporal]
    day = any(section.day for section in temporal)
    clock = any(section.clock for section in temporal)
    elapsed = any(section.elapsed for section in temporal)
    if day:
        return Kind.DATETIME if clock or elapsed else Kind.DATE
    if elapsed:
        return Kind.DURATION
    return Kind.TIME if clock else Kind.NUMBER


def _sections(code: str) -> list[_Section]:
    """Read the sections of a format code."""
    sections = [_Section()]
    marks: list[str] = []  # the h, m and s of the section, in order, for telling months from minutes
    for token in _TOKENS.finditer(code):
        section = sections[-1]
        group, text = token.lastgroup, token.group().lower()
        if group == "end":
            _tell_minutes(section, marks)
            marks = []
            sections.append(_Section())
        elif group == "bracket":
            inner = token.group("bracket")
            if _ELAPSED.fullmatch(inner):
                section.elapsed = True
                marks.append("h" if inner[0] in "hH" else "s")
            elif _CONDITION.match(inner):
                section.conditional = True
        elif group == "letters":
            _take_letters(section, marks, text)
        elif group == "noon":
            section.clock = True
        elif group in {"digit", "general", "science"}:
            section.digits = True
        elif group == "fraction":
            section.digits = section.digits or not (section.clock or section.elapsed)
    _tell_minutes(sections[-1], marks)
    return sections


def _take_letters(section: _Section, marks: list[str], text: str) -> None:
    if text[0] in "hs":
        section.clock = True
        marks.append(text[0])
    elif text[0] == "m":
        marks.append("m" if len(text) <= 2 else "month")
    else:
        section.day = True
        marks.append("day")


def _tell_minutes(section: _Section, marks: list[str]) -> None:
    """An m after an h or before an s is a minute, any other a month (18.8.31)."""
    for index, mark in enumerate(marks):
        if mark == "month":
            section.day = True
        elif mark == "m":
            before = marks[index - 1] if index else ""
            after = marks[index + 1] if index + 1 < len(marks) else ""
            if before == "h" or after == "s":
                section.clock = True
            else:
                section.day = True
