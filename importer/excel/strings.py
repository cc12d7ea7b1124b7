"""Text as files write it: shared strings, and the escapes that stand for characters XML cannot hold."""

from __future__ import annotations

import re

import polars as pl

from importer.excel.archive import Archive
from importer.excel.limits import Limits, too_large
from importer.excel.safe_xml import main_names, parse

_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NAMES = main_names("sst", "si", "t", "r", "rPh")
_BATCH = 65_536


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
        if max(numbers.max().row(0)) >= len(self._texts):
            return None
        return numbers.select(pl.lit(self._texts).gather(pl.col(name)).alias(name) for name in numbers.columns)


def read_shared_strings(archive: Archive, part: str | None, limits: Limits) -> SharedStrings:
    """Read the part of the shared strings: rich text joined, phonetic runs left out, escapes decoded."""
    if part is None:
        return SharedStrings(pl.Series([], dtype=pl.String), None)
    reader = _StringsReader(limits)
    parse(part, archive.pieces(part), limits, start=reader.start, end=reader.end, text=reader.text)
    return reader.finish()


class _StringsReader:
    """Collects the items of a shared-strings part in batches."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._path: list[str] = []
        self._item: list[str] | None = None
        self._length = 0
        self._taking = False
        self._batch: list[str] = []
        self._count = 0
        self._done: list[tuple[pl.Series, pl.Series | None]] = []

    def start(self, name: str, _: dict[str, str]) -> None:
        local = _NAMES.get(name, "")
        if local == "si":
            self._item, self._length = [], 0
        elif local == "t":
            self._taking = self._item is not None and self._path[-1] in {"si", "r"} and "rPh" not in self._path
        self._path.append(local)

    def end(self, _: str) -> None:
        local = self._path.pop()
        if local == "t":
            self._taking = False
        elif local == "si":
            self._batch.append("".join(self._item or []))
            self._item = None
            if len(self._batch) >= _BATCH:
                self._flush()

    def text(self, characters: str) -> None:
        if self._taking and self._item is not None:
            self._length += len(characters)
            if self._length > self._limits.cell_characters:
                raise too_large("a shared string has too many characters", self._limits.cell_characters)
            self._item.append(characters)

    def _flush(self) -> None:
        self._count += len(self._batch)
        if self._count > self._limits.shared_strings:
            raise too_large("the workbook has too many shared strings", self._limits.shared_strings)
        self._done.append(decode_column(pl.Series(self._batch, dtype=pl.String)))
        self._batch = []

    def finish(self) -> SharedStrings:
        """Join the batches."""
        self._flush()
        texts = pl.concat([texts for texts, _ in self._done], rechunk=True)
        if all(flags is None for _, flags in self._done):
            return SharedStrings(texts, None)
        no = pl.Series([False], dtype=pl.Boolean)
        return SharedStrings(
            texts,
            pl.concat([no.new_from_index(0, len(part)) if flags is None else flags for part, flags in self._done]),
        )
