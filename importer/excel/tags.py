"""The few different tags of a sheet: what stands after the name of a cell or the number of a row, read once by expat.

A sheet of a million cells has a handful of them (` s="3" t="s">`), so the plain scanner looks each one up here; what it
gets is what the exact scanner would see, because the same parser reads it in the same surroundings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pyexpat import ExpatError, ParserCreate

from importer.excel.raw_cells import TAGS, XML_SPACE, Tag
from importer.excel.safe_xml import SEPARATOR, main_names

TRUE_WORDS = frozenset({"1", "true", "on"})
STYLE = re.compile(r"\s*\+?([0-9]{1,9})\s*", re.ASCII)
_NAMES = main_names("row", "c", "f")
_MOST_KEPT = 20_000
_LONGEST = 4_096  # no tag of a sheet comes near it


def style_index(written: str) -> int:
    """Read the index of a cell format; -1 for what is none."""
    match = STYLE.fullmatch(written)
    return -1 if match is None else int(match.group(1))


def is_true(written: str) -> bool:
    """Read a boolean attribute."""
    return written.strip(XML_SPACE).lower() in TRUE_WORDS


@dataclass(frozen=True)
class CellTag:
    """What the opening of a cell says."""

    tag: Tag
    style: int
    #: `t="inlineStr"`
    inline: bool
    #: whether the element is closed at once, so that it holds nothing
    closed: bool


@dataclass(frozen=True)
class RowTag:
    """What the opening of a row says."""

    hidden: bool
    closed: bool


class TagReader:
    """Reads the ends of tags in the surroundings of one sheet; `None` is for what the exact scanner should judge."""

    def __init__(self, head: bytes, prefix: str) -> None:
        self._head = head
        self._prefix = prefix
        self._cells: dict[str, CellTag | None] = {}
        self._rows: dict[str, RowTag | None] = {}

    def cell(self, end: str) -> CellTag | None:
        """Read what follows `<c r="A1"`, up to and with its ">"."""
        if end not in self._cells:
            attributes = self._attributes("c", f'<{self._prefix}row r="1"><{self._prefix}c r="A1"', end)
            self._forget(self._cells)
            self._cells[end] = None if attributes is None else self._cell(attributes, end)
        return self._cells[end]

    @staticmethod
    def _cell(attributes: dict[str, str], end: str) -> CellTag | None:
        word = attributes.get("t", "n").strip(XML_SPACE)
        if word not in TAGS:
            return None
        style = style_index(attributes.get("s", "0"))
        return CellTag(TAGS[word], style, word == "inlineStr", end.endswith("/>"))

    def row(self, end: str) -> RowTag | None:
        """Read what follows `<row r="1"`, up to and with its ">"."""
        if end not in self._rows:
            attributes = self._attributes("row", f'<{self._prefix}row r="1"', end)
            self._forget(self._rows)
            self._rows[end] = (
                None if attributes is None else RowTag(is_true(attributes.get("hidden", "")), end.endswith("/>"))
            )
        return self._rows[end]

    def formula(self, end: str) -> bool:
        """Say whether this may follow `<f`, up to and with its ">"."""
        before = f'<{self._prefix}row r="1"><{self._prefix}c r="A1"><{self._prefix}f'
        return self._attributes("f", before, end) is not None

    @staticmethod
    def _forget(kept: dict[str, CellTag | None] | dict[str, RowTag | None]) -> None:
        if len(kept) >= _MOST_KEPT:
            kept.clear()

    def _attributes(self, name: str, before: str, end: str) -> dict[str, str] | None:
        """Give the attributes of one element, None unless it is that element alone and without text in it."""
        if "xmlns" in end or not end.endswith(">") or len(end) > _LONGEST:
            return None
        started: list[tuple[str, dict[str, str]]] = []
        ended: list[str] = []
        texts: list[str] = []
        parser = ParserCreate(namespace_separator=SEPARATOR)
        closing = "" if end.endswith("/>") else f"</{self._prefix}{name}>"
        try:
            parser.Parse(self._head, False)
            parser.StartElementHandler = lambda name, attributes: started.append((name, attributes))
            parser.EndElementHandler = ended.append
            parser.CharacterDataHandler = texts.append
            parser.Parse((before + end + closing).encode(), False)
        except (ExpatError, ValueError):
            return None
        inner = started[-1:] if len(started) == before.count("<") else []
        if not inner or texts or len(ended) != 1 or _NAMES.get(inner[0][0]) != name:
            return None
        return inner[0][1]
