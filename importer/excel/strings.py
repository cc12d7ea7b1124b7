"""Text as files write it: the escapes that stand for characters XML cannot hold, and the table of shared strings."""

from __future__ import annotations

import re

import polars as pl

_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def decode_escapes(text: str) -> tuple[str, bool]:
    """Decode `_xHHHH_` (ECMA-376 part 1, 22.9.2.19, ST_Xstring) and say whether PostgreSQL can hold the result.

    Two escapes of a surrogate pair make one character. NUL and lone surrogates are shown as `_x0000_`, `_xD800_`.
    """
    if "_x" not in text:
        return text, True
    decoded = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
    if not _UNSTORABLE.search(decoded):
        return decoded, True
    paired = _PAIR.sub(lambda match: match.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le"), decoded)
    if not _UNSTORABLE.search(paired):
        return paired, True
    return _UNSTORABLE.sub(lambda match: f"_x{ord(match.group()):04X}_", paired), False


def decode_column(texts: pl.Series) -> tuple[pl.Series, pl.Series | None]:
    """Decode the escapes of a column of texts; the second is true where PostgreSQL cannot hold one (None: nowhere)."""
    marked = texts.str.contains("_x", literal=True).fill_null(False)
    if not marked.any():
        return texts, None
    at = marked.arg_true()
    decoded = [decode_escapes(text) for text in texts.gather(at).to_list()]
    texts = texts.scatter(at, pl.Series([text for text, _ in decoded], dtype=pl.String))
    bad = [storable for _, storable in decoded]
    if all(bad):
        return texts, None
    flags = pl.repeat(False, len(texts), dtype=pl.Boolean, eager=True)
    return texts, flags.scatter(at, pl.Series([not storable for storable in bad], dtype=pl.Boolean))


class SharedStrings:
    """The shared strings of a workbook, decoded, by index."""

    def __init__(self, texts: pl.Series, unstorable: pl.Series | None) -> None:
        self._texts = texts
        self._unstorable = unstorable
        self._plain = unstorable is None and not (texts == "").any()

    def __len__(self) -> int:
        return len(self._texts)

    def gather(self, indexes: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        """Give the texts at indexes (null for null and beyond the end), and where they cannot be stored (or None)."""
        beyond = indexes >= len(self._texts)
        if beyond.any():
            indexes = indexes.set(beyond.fill_null(False), None)
        flags = None if self._unstorable is None else self._unstorable.gather(indexes)
        return self._texts.gather(indexes), flags

    def lookup(self, indexes: pl.DataFrame) -> pl.DataFrame | None:
        """Give the texts for columns of written indexes; None when one may be blank, cannot be stored or is beyond."""
        if not self._plain or not indexes.width:
            return None
        numbers = indexes.select(pl.all().cast(pl.UInt32))
        if any(most is not None and most >= len(self._texts) for most in numbers.max().row(0)):
            return None
        return pl.DataFrame({name: self._texts.gather(numbers[name]) for name in numbers.columns})
