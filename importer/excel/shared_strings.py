"""The part of the shared strings is read: plain items as lines of text, all others by expat.

As in a sheet, one parser reads the whole part, but for runs of plain items (`<si><t>...</t></si>`) that were taken off
it. Of a million notes, 1.8 s of expat become 0.2 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from importer.excel.archive import Archive
from importer.excel.compiled_scan import compiled_strings
from importer.excel.limits import Limits, too_large
from importer.excel.plain_head import plain_prefix
from importer.excel.safe_xml import SafeParser, main_names
from importer.excel.strings import SharedStrings, decode_column
from importer.excel.xml_text import plain_text

_NAMES = main_names("sst", "si", "t", "r", "rPh")
_TABLE = re.compile(rb"<(?:([A-Za-z_][A-Za-z0-9_.-]*):)?sst(?:\s[^<>]*)?>")
_MOST_HEAD_BYTES = 64 * 1024
_RUN_BYTES = 2 * 1024 * 1024
_BATCH = 65_536
_ITEM, _PRESERVED_ITEM = "<si><t>", '<si><t xml:space="preserve">'
_END = "</t></si>"
_LINE = "\x01"


def read_shared_strings(
    archive: Archive, part: str | None, limits: Limits, *, plain: bool = True, compiled: bool = True
) -> SharedStrings:
    """Read the part of the shared strings: rich text joined, phonetic runs left out, escapes decoded.

    `plain=False` lets expat read all of it, `compiled=False` does without the compiled scanner; the strings are the
    same.
    """
    if part is None:
        return SharedStrings(pl.Series([], dtype=pl.String), None)
    return _Table(part, limits, plain=plain, compiled=compiled).read(archive.pieces_ahead(part))


class _Table:
    """The reading of one part of shared strings."""

    def __init__(self, part: str, limits: Limits, *, plain: bool, compiled: bool) -> None:
        self._limits = limits
        self._compiled = compiled
        self._items = _ExactItems(limits)
        self._parser = SafeParser(part, limits, start=self._items.start, end=self._items.end, text=self._items.text)
        self._in_head = plain
        self._plain = False
        self._prefix = b""
        self._count = 0
        self._done: list[tuple[pl.Series, pl.Series | None]] = []

    def read(self, pieces: Iterable[bytes]) -> SharedStrings:
        """Read all items."""
        rest = b""
        for piece in pieces:
            rest = rest + piece if rest else piece
            if self._in_head:
                rest = self._read_head(rest)
            if self._plain and len(rest) >= _RUN_BYTES:
                rest = self._read_run(rest)
            elif not self._plain and not self._in_head:
                self._feed(rest)
                rest = b""
        if self._plain:
            rest = self._read_run(rest)
        self._parser.feed(rest, last=True)
        self._keep(pl.Series(self._items.taken(), dtype=pl.String))
        return self._finish()

    def _read_head(self, head: bytes) -> bytes:
        match = _TABLE.search(head)
        if match is None and len(head) <= _MOST_HEAD_BYTES:
            return head
        self._in_head = False
        if match is None:
            return head
        prefix = plain_prefix(head, match)
        self._parser.feed(head[: match.end()])
        if prefix is not None and self._items.between:
            self._plain, self._prefix = True, prefix
        return head[match.end() :]

    def _read_run(self, rest: bytes) -> bytes:
        """Read as many whole items as there are, and give what is left."""
        end = b"</" + self._prefix + b"si>"
        cut = rest.rfind(end)
        if cut < 0:
            if len(rest) > self._limits.cell_characters:
                self._plain = False
            return rest
        run, rest = rest[: cut + len(end)], rest[cut + len(end) :]
        texts = compiled_strings(run, self._limits) if self._compiled and not self._prefix else None
        if texts is None:
            texts = _plain_items(run, self._prefix, self._limits)
        if texts is None:
            self._feed(run)
            if not self._items.between or b"<!" in run or b"<?" in run:
                self._plain = False  # a comment or the like may hide where an item ends; the parser keeps the rest
        else:
            self._keep(pl.Series(self._items.taken(), dtype=pl.String))
            self._keep(texts)
        return rest

    def _feed(self, run: bytes) -> None:
        self._parser.feed(run)
        if len(self._items) >= _BATCH:
            self._keep(pl.Series(self._items.taken(), dtype=pl.String))

    def _keep(self, texts: pl.Series) -> None:
        self._count += len(texts)
        if self._count > self._limits.shared_strings:
            raise too_large("the workbook has too many shared strings", self._limits.shared_strings)
        if len(texts):
            self._done.append(decode_column(texts))

    def _finish(self) -> SharedStrings:
        """Join what was read."""
        if not self._done:
            return SharedStrings(pl.Series([], dtype=pl.String), None)
        texts = pl.concat([texts for texts, _ in self._done], rechunk=True)
        if all(flags is None for _, flags in self._done):
            return SharedStrings(texts, None)
        none = pl.Series([False], dtype=pl.Boolean)
        flagged = [none.new_from_index(0, len(part)) if flags is None else flags for part, flags in self._done]
        return SharedStrings(texts, pl.concat(flagged))


def _plain_items(run: bytes, prefix: bytes, limits: Limits) -> pl.Series | None:
    """Give the texts of a run of whole items, None when one of them is not of the plainest shape."""
    if _LINE.encode() in run:
        return None
    if prefix:
        if run.count(b"<" + prefix) + run.count(b"</" + prefix) != run.count(b"<"):
            return None
        run = run.replace(b"<" + prefix, b"<").replace(b"</" + prefix, b"</")
    if b"<t/>" in run:
        run = run.replace(b"<t/>", b"<t></t>")
    beginning = next((item for item in (_ITEM, _PRESERVED_ITEM) if run.startswith(item.encode())), None)
    if beginning is None or not run.endswith(_END.encode()):
        return None
    try:
        text = pl.Series([run[len(beginning) : -len(_END)], b""], dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:  # no UTF-8
        return None
    for item in (_ITEM, _PRESERVED_ITEM):
        text = text.str.replace_all(_END + item, _LINE, literal=True)
    if text.str.contains("<", literal=True)[0]:
        return None
    texts = text[:1].str.split(_LINE).explode(empty_as_null=False)
    if (texts.str.len_bytes() > limits.cell_characters).any():
        return None
    return plain_text(texts)


class _ExactItems:
    """Collects the items that expat reads."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._path: list[str] = []
        self._item: list[str] | None = None
        self._length = 0
        self._taking = False
        self._texts: list[str] = []

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def between(self) -> bool:
        """Whether the next byte is expected right inside the table, before or after an item."""
        return self._path == ["sst"]

    def taken(self) -> list[str]:
        """Give the texts collected since the last call."""
        texts, self._texts = self._texts, []
        return texts

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
            self._texts.append("".join(self._item or []))
            self._item = None

    def text(self, characters: str) -> None:
        if self._taking and self._item is not None:
            self._length += len(characters)
            if self._length > self._limits.cell_characters:
                raise too_large("a shared string has too many characters", self._limits.cell_characters)
            self._item.append(characters)
