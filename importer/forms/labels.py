"""Titles are compared as people read them: case, spaces, line breaks, NBSP and full width make no difference."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

#: Marks that show nothing and yet make two titles differ: soft hyphen, zero-width characters, byte-order mark.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))


def normal_title(title: str) -> str:
    """What two titles must share to be the same: NFKC, invisible marks, spaces collapsed, any about a slash, case."""
    shown = unicodedata.normalize("NFKC", title).translate(_INVISIBLE).replace("/", " / ")
    return unicodedata.normalize("NFKC", " ".join(shown.split()).casefold())


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean "x"?` for the closest of `words`, or nothing."""
    by_fold = {w.casefold(): w for w in words}
    close = get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=0.6)
    return f'; did you mean "{by_fold[close[0]]}"?' if close else ""


def listed(words: Iterable[str], most: int = 20) -> str:
    """Names for a sentence: quoted, commas between, cut after `most`."""
    every = list(words)
    shown = ", ".join(f'"{word}"' for word in every[:most])
    return f"{shown} and {len(every) - most} more" if len(every) > most else shown


def column_letter(index: int) -> str:
    """The letters of a sheet column counted from 0: 0 is A, 27 is AB."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
