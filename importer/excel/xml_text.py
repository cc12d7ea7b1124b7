"""Character data of XML that was cut out without a parser: what must be looked at, and what entities stand for."""

from __future__ import annotations

import polars as pl

#: characters no XML document may hold (XML 1.0, 2.2), the carriage return, which a parser turns into a line feed, and
#: the end of a CDATA section, which may not stand in text
_UNFIT = r"[\x00-\x08\x0b-\x1f\x{fffe}\x{ffff}]|\]\]>"
_ENTITY = r"&(?:amp|lt|gt|quot|apos);"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}


def plain_text(texts: pl.Series) -> pl.Series | None:
    """Decode the five named entities; None when a text holds anything that only a parser should judge."""
    if texts.str.contains(_UNFIT).any():
        return None
    marked = texts.str.contains("&", literal=True)
    if not marked.any():
        return texts
    at = marked.arg_true()
    found = texts.gather(at)
    if (found.str.count_matches("&", literal=True) != found.str.count_matches(_ENTITY)).any():
        return None
    for entity, character in _ENTITIES.items():
        found = found.str.replace_all(entity, character, literal=True)
    return texts.scatter(at, found.str.replace_all("&amp;", "&", literal=True))
