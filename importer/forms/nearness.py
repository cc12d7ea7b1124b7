"""How near two titles are, from 0 to 1, as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from rapidfuzz import fuzz

from importer.forms.labels import normal_title

_WORD = re.compile(r"[^\W_]+")
#: Nearness from which one title may stand for another.
NEAR = 0.6
#: A heading is often a short form of a title ("Nr", "Qty"): letters in order, the first one the same.
_SHORTEST = 2


def plain(title: str) -> str:
    """A title without case, accents and marks, its words with one space between; camelCase and snake_case are words."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", title)
    folded = unicodedata.normalize("NFKD", normal_title(parted))
    bare = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return " ".join(_WORD.findall(bare))


def nearness(one: str, other: str) -> float:
    """How near two titles are: 1 is the same but for marks, below 0.6 is another word."""
    first, second = plain(one), plain(other)
    if not first or not second:
        return 0.0
    if first == second:
        return 1.0
    letters = fuzz.ratio(first, second) / 100
    words = fuzz.token_sort_ratio(first, second) / 100
    inside = 0.0
    fewer, more = sorted((set(first.split()), set(second.split())), key=len)
    if fewer <= more and all(len(word) > _SHORTEST for word in fewer):
        inside = 0.8 if len(more) - len(fewer) == 1 else 0.7
    short = 0.75 if _is_short_form(first, second) or _is_short_form(second, first) else 0.0
    return max(letters, words * 0.98, inside, short)


def nearest_label(title: str, labels: Iterable[str]) -> float:
    """How near a title is to the nearest of several."""
    return max((nearness(title, label) for label in labels), default=0.0)


def nearest_heading(labels: Iterable[str], headings: Iterable[str]) -> str | None:
    """The heading nearest to one of the labels; none when no heading is near."""
    named = list(labels)
    near = max(((nearest_label(heading, named), heading) for heading in headings), default=(0.0, ""))
    return near[1] if near[0] >= NEAR else None


def _is_short_form(short: str, whole: str) -> bool:
    bare = short.replace(" ", "")
    if not _SHORTEST <= len(bare) <= 4 or len(whole) < 2 * len(bare) or bare[0] != whole[0]:
        return False
    letters = iter(whole)
    return all(letter in letters for letter in bare)
