"""Numbers in text, by the marks a form declares; without a declaration only `1234.5` is one.

A thousands mark is read only where it parts groups of three. Where a space is declared the no-break spaces that Excel
writes count as one, and so does the typographic apostrophe for the plain one.
"""

from __future__ import annotations

import re
from functools import cached_property

import polars as pl

from importer.forms.form import Locale

#: What else is written for a declared mark.
_SAME_MARKS = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}

_LOOKS_GROUPED = re.compile("[+-]?[0-9]{1,3}(?:[.,'\u2019 \u00a0\u202f\u2009][0-9]{3})+(?:[.,][0-9]+)?")
_LOOKS_MARKED = re.compile(r"[+-]?[0-9]+[.,\u066b][0-9]+")
_TRUTH_WORDS = frozenset(
    "yes no y n true false on off ja nein wahr falsch oui non vrai faux sí si sì no verdadero falso vero sim não "  # noqa: SIM905 - words read better so
    "verdadeiro tak nie prawda fałsz ano ne да нет истина ложь 是 否 真 假 はい いいえ".split()
)


class NumberText:
    """Reads numbers from trimmed texts under one locale."""

    def __init__(self, locale: Locale) -> None:
        self._locale = locale

    @property
    def is_plain(self) -> bool:
        """Whether only numbers as computers write them are read."""
        return self._locale.decimal == "." and self._locale.thousands is None

    @cached_property
    def _thousands(self) -> str:
        mark = self._locale.thousands
        return "" if mark is None else f"[{re.escape(_SAME_MARKS.get(mark, mark))}]"

    @cached_property
    def _grammar(self) -> str:
        """A regular expression that Python and polars read alike."""
        grouped = f"|[0-9]{{1,3}}(?:{self._thousands}[0-9]{{3}})+" if self._thousands else ""
        mark = re.escape(self._locale.decimal)
        return rf"^[+-]?(?:(?:[0-9]+{grouped})(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?0*[0-9]{{1,9}})?$"

    def plain(self, text: str) -> str | None:
        """Write a text's number as computers do (`1234.5`); none when it is no number in this locale."""
        if not re.fullmatch(self._grammar, text):
            return None
        if self._thousands:
            text = re.sub(self._thousands, "", text)
        return text.replace(self._locale.decimal, ".")

    def plain_texts(self, texts: pl.Series) -> pl.Series:
        """Do the same for a whole column (String), null where `plain` gives none."""
        read = pl.select(pl.when(texts.str.contains(self._grammar)).then(texts)).to_series()
        if self._thousands:
            read = read.str.replace_all(self._thousands, "")
        return read if self._locale.decimal == "." else read.str.replace(self._locale.decimal, ".", literal=True)


def looks_like_a_number(text: str) -> bool:
    """Whether a text may be a number with marks of some locale."""
    bare = text.strip("%€$£¥ \u00a0")
    return bool(_LOOKS_GROUPED.fullmatch(bare) or _LOOKS_MARKED.fullmatch(bare))


def looks_like_a_truth(text: str) -> bool:
    """Whether a text may be a word for true or false in some language."""
    return text.casefold() in _TRUTH_WORDS
