"""Texts cut and cleaned to what Excel takes."""

from __future__ import annotations

import re

_FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_LONGEST_SHEET_NAME = 31
#: What XML 1.0 cannot hold at all.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def cut(text: str, most: int) -> str:
    """The text, its end replaced by an ellipsis when it is longer than `most` characters (as UTF-16 counts them)."""
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 <= most:
        return text
    while len(text.encode("utf-16-le", "surrogatepass")) // 2 > most - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def sheet_name(wanted: str) -> str:
    """A name that Excel takes for a sheet."""
    clean = cut(_FORBIDDEN.sub(" ", wanted).strip().strip("'"), _LONGEST_SHEET_NAME)
    return "Sheet" if not clean or clean.casefold() == "history" else clean


def storable(text: str) -> str:
    """The text without what XML cannot hold, each such character shown as `_x0000_`."""
    return _NOT_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
