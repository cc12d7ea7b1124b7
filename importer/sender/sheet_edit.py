"""A sheet's part edited while it streams by: looks of marked cells, origins of failed rows, and where the notes are.

Only rows that are marked are taken apart; every other byte passes through. Memory is one block and one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from importer.errors import WorkbookError
from importer.sender.package_edit import OFFICE, STRICT, attributes, inline_text, require_utf8

_ROW = re.compile(rb"<(?:\w+:)?row(?=[\s/>])[^>]*>")
_ROW_END = re.compile(rb"</(?:\w+:)?row\s*>")
_NUMBER = re.compile(rb"""\sr\s*=\s*["']([0-9]+)["']""")
_DATA = re.compile(rb"<(\w+:)?sheetData\b")
_CELL = re.compile(rb"<(\w+:)?c(?=[\s/>])([^>]*?)(/>|>.*?</(?:\w+:)?c\s*>)", re.DOTALL)
_REFERENCE = re.compile(r"([A-Z]+)([0-9]+)")
#: What the reference to the notes stands before (ECMA-376 part 1, 18.3.1.99).
_AFTER_NOTES = re.compile(
    rb"<(?:\w+:)?(?:legacyDrawingHF|drawingHF|picture|oleObjects|controls|webPublishItems|tableParts)\b|<mc:AlternateContent\b"
)


def letters(column: int) -> str:
    """The letters of a sheet column counted from 0."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def column_number(name: str) -> int:
    """The sheet column, counted from 0, of its letters."""
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 64
    return number - 1


@dataclass(frozen=True, kw_only=True)
class SheetEdit:
    """What is to be done to a sheet."""

    #: Marked sheet columns (from 0) by sheet row.
    marked: Mapping[int, frozenset[int]]
    #: Look of a bad cell by the look it had.
    bad: Mapping[int, int]
    #: Sheet column of origins, none when there is no room.
    origin_column: int | None
    #: Text in the column of origins, by row (its title too).
    origins: Mapping[int, str] = field(default_factory=dict)
    #: Id of the relationship to the drawing of the notes, when the sheet had none.
    notes: str | None = None
    #: Whether the workbook was saved as "Strict Open XML".
    strict: bool = False


@dataclass(frozen=True)
class _Row:
    """A row that is to be taken apart."""

    number: int
    #: Its start tag.
    tag: bytes
    #: Its cells.
    inside: bytes

    @property
    def cells(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Sheet column, attributes, and the rest of the element, of each cell."""
        column = -1
        for found in _CELL.finditer(self.inside):
            reference = _REFERENCE.fullmatch(attributes(found[2]).get("r", ""))
            column = column_number(reference[1]) if reference else column + 1
            yield column, found[2], found[3]


def looks_used(blocks: Iterable[bytes], marked: Mapping[int, frozenset[int]]) -> set[int]:
    """The looks that marked cells have now."""
    rows = (row for _, row in _split(blocks, set(marked)) if row is not None)
    return {
        int(attributes(tag).get("s", "0"))
        for row in rows
        for column, tag, _ in row.cells
        if column in marked[row.number]
    }


def edited(blocks: Iterable[bytes], edit: SheetEdit) -> Iterator[bytes]:
    """The sheet's part with the edit done, in pieces."""
    head_done = False
    last = b""
    for before, row in _split(blocks, set(edit.marked) | set(edit.origins)):
        yield last
        last = before
        if not head_done and _DATA.search(before):
            last, head_done = _head_of(before, edit), True
        if row is not None:
            prefix = _prefix(row.tag)
            yield last
            last = _open(row.tag) + _edited_row(row, edit, prefix) + f"</{prefix}row>".encode()
    yield _tail_of(last, edit)


def _split(blocks: Iterable[bytes], wanted: set[int]) -> Iterator[tuple[bytes, _Row | None]]:
    """The part in pieces: what stands before a wanted row, and the row; none with the piece after the last one.

    The first piece holds all that stands before the rows, the last one all that stands behind them.
    """
    rest = b""
    number = 0
    for block in blocks:
        if not number and not rest:
            require_utf8(block, "of the sheet")
        piece = rest + block
        close = max(piece.rfind(b"</row>"), piece.rfind(b":row>"))
        end = piece.find(b">", close) + 1 if close >= 0 else 0
        piece, rest = piece[:end], piece[end:]
        at = 0
        for found in _ROW.finditer(piece):
            its = _NUMBER.search(found[0])
            number = int(its[1]) if its else number + 1
            if number not in wanted:
                continue
            before = piece[at : found.start()]
            inside, at = b"", found.end()
            if not found[0].endswith(b"/>"):
                stop = _ROW_END.search(piece, found.end())
                if stop is None:
                    raise WorkbookError("corrupt", f"row {number} of the sheet does not end")
                inside, at = piece[found.end() : stop.start()], stop.end()
            yield before, _Row(number, found[0], inside)
        if piece[at:]:
            yield piece[at:], None
    yield rest, None


def _prefix(tag: bytes) -> str:
    found = re.match(rb"</?(\w+:)", tag)
    return found[1].decode() if found else ""


def _open(tag: bytes) -> bytes:
    """A row's start tag that holds cells; its spans, which may not tell the truth any more, go."""
    tag = tag[:-2].rstrip() + b">" if tag.endswith(b"/>") else tag
    return re.sub(rb'\sspans\s*=\s*["\'][^"\']*["\']', b"", tag)


def _edited_row(row: _Row, edit: SheetEdit, prefix: str) -> bytes:
    at = row.number
    marked = edit.marked.get(at, frozenset())
    cells: dict[int, bytes] = {}
    for column, as_it_was, rest in row.cells:
        tag = as_it_was
        if column in marked:
            look = edit.bad.get(int(attributes(tag).get("s", "0")), edit.bad[0])
            tag = re.sub(rb'\ss\s*=\s*["\'][^"\']*["\']', b"", tag) + f' s="{look}"'.encode()
        if "r" not in attributes(tag):
            tag = f' r="{letters(column)}{at}"'.encode() + tag
        cells[column] = f"<{prefix}c".encode() + tag + rest
    for column in marked - set(cells):
        cells[column] = f'<{prefix}c r="{letters(column)}{at}" s="{edit.bad[0]}"/>'.encode()
    if edit.origin_column is not None and at in edit.origins:
        origin = text_cell(f"{letters(edit.origin_column)}{at}", edit.origins[at], prefix=prefix)
        cells[edit.origin_column] = origin.encode()
    return b"".join(cells[column] for column in sorted(cells))


def text_cell(reference: str, text: str, *, look: int | None = None, prefix: str = "") -> str:
    """A cell that holds a text, whatever it looks like."""
    style = "" if look is None else f' s="{look}"'
    inside = inline_text(text).replace("<t ", f"<{prefix}t ").replace("</t>", f"</{prefix}t>")
    return f'<{prefix}c r="{reference}"{style} t="inlineStr"><{prefix}is>{inside}</{prefix}is></{prefix}c>'


def _head_of(head: bytes, edit: SheetEdit) -> bytes:
    """What stands before the rows, with the column of origins hidden."""
    column = edit.origin_column
    if column is None:
        return head
    data = _DATA.search(head)
    assert data is not None  # the caller looked
    p = (data[1] or b"").decode()
    hidden = f'<{p}col min="{column + 1}" max="{column + 1}" width="3" customWidth="1" hidden="1"/>'
    cols = re.search(rb"<(?:\w+:)?cols\b[^>]*>(.*?)</(?:\w+:)?cols\s*>", head[: data.start()], re.DOTALL)
    if cols is None:
        return head[: data.start()] + f"<{p}cols>{hidden}</{p}cols>".encode() + head[data.start() :]
    kept: list[tuple[int, str]] = [(column + 1, hidden)]
    for found in re.findall(rb"<(?:\w+:)?col\b[^>]*?/?>", cols[1]):
        its = attributes(found)
        low, high = int(its["min"]), int(its["max"])
        for start, end in ((low, min(high, column)), (max(low, column + 2), high)):
            if start <= end:
                its |= {"min": str(start), "max": str(end)}
                kept.append((start, f"<{p}col " + " ".join(f'{name}="{value}"' for name, value in its.items()) + "/>"))
    inner = "".join(text for _, text in sorted(kept)).encode()
    return head[: cols.start(1)] + inner + head[cols.end(1) :]


def _tail_of(tail: bytes, edit: SheetEdit) -> bytes:
    """What stands after the rows, with the reference to the notes."""
    if edit.notes is None:
        return tail
    end = tail.rindex(b"</")
    prefix = _prefix(tail[end:])
    found = _AFTER_NOTES.search(tail, max(tail.rfind(b"sheetData>"), tail.rfind(b"sheetData/>"), 0))
    at = found.start() if found else end
    extensions = list(re.finditer(f"<{prefix}extLst\\b".encode(), tail))
    if not found and extensions and re.search(rb"</(?:\w+:)?extLst\s*>\s*$", tail[:end]):
        at = extensions[-1].start()
    base = STRICT if edit.strict else OFFICE
    reference = f'<{prefix}legacyDrawing xmlns:rel="{base}" rel:id="{edit.notes}"/>'
    return tail[:at] + reference.encode() + tail[at:]
