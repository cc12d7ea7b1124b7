"""Areas of a sheet that stand beside its cells: merged ranges and Excel tables, found without reading the cells.

Merged ranges come after the rows in the part of a sheet, so `merged_references` inflates the part once and looks for
them, which takes a fraction of the time that reading the cells does. Other formats know no tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from importer.excel.archive import Archive, open_binary
from importer.excel.limits import Limits, too_large
from importer.excel.package import Package, read_package, read_relationships
from importer.excel.safe_xml import local_name, parse
from importer.excel.strings import decode_escapes

_AREA = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6})(?::\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6}))?")
_BEGIN = re.compile(rb"<(?:[\w.-]+:)?mergeCells[\s/>]")
_END = re.compile(rb"</(?:[\w.-]+:)?mergeCells\s*>")
_REF = re.compile(rb"<(?:[\w.-]+:)?mergeCell\s[^<>]*?\bref\s*=\s*[\"']([^\"'<>]{2,40})[\"']")
#: Bytes kept of a piece, so that a tag cut by the border of two pieces is found.
_OVERLAP = 512


@dataclass(frozen=True, kw_only=True)
class Area:
    """A rectangle of cells, its borders included."""

    #: sheet rows, from 1
    first_row: int
    last_row: int
    #: sheet columns, from 0
    first_column: int
    last_column: int


@dataclass(frozen=True, kw_only=True)
class Table:
    """An Excel table (Insert, Table)."""

    #: the name that formulas call it by
    name: str
    #: position of its sheet
    sheet: int
    #: all of it, header and totals included
    area: Area
    #: rows of the header, 0 or 1
    header_rows: int
    #: rows of totals at its end
    totals_rows: int


def read_area(ref: str) -> Area | None:
    """Read a reference as `A1:C3` or `B2`; none when it is not one."""
    found = _AREA.fullmatch(ref.strip())
    if not found:
        return None
    left, top, right, bottom = found.groups()
    columns = sorted((_column(left), _column(right or left)))
    rows = sorted((int(top), int(bottom or top)))
    return Area(first_row=rows[0], last_row=rows[1], first_column=columns[0], last_column=columns[1])


def merged_references(archive: Archive, part: str, limits: Limits) -> tuple[str, ...]:
    """Find the merged ranges of a sheet part, as written, in the order of the file."""
    if not part:
        return ()
    pieces = archive.pieces(part)
    first = next(pieces, b"")
    whole = _chained(first, pieces)
    return tuple(_refs_by_parser(part, whole, limits) if b"\x00" in first[:4] else _refs(part, whole, limits))


def tables(path: str | Path, *, limits: Limits | None = None) -> tuple[Table, ...]:
    """Find the Excel tables of a workbook, by the order of its sheets."""
    limits = limits or Limits()
    with open_binary(Path(path)) as file:
        archive = Archive(file, limits)
        package = read_package(archive, limits, Path(path).name)
        return tuple(_tables(archive, package, limits))


def _tables(archive: Archive, package: Package, limits: Limits) -> Iterator[Table]:
    for position, part in enumerate(package.sheet_parts):
        if not part:
            continue
        for relationship in read_relationships(archive, part, limits).values():
            if relationship.kind == "table" and relationship.part in archive:
                table = _read_table(archive, relationship.part, position, limits)
                if table is not None:
                    yield table


def _read_table(archive: Archive, part: str, position: int, limits: Limits) -> Table | None:
    found: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "table" and not found:
            found.update(attributes)

    parse(part, iter([archive.read(part)]), limits, start=start, end=_ignore)
    area = read_area(found.get("ref", ""))
    if area is None:
        return None
    return Table(
        name=decode_escapes(found.get("displayName") or found.get("name", ""))[0],
        sheet=position,
        area=area,
        header_rows=_count(found.get("headerRowCount"), default=1),
        totals_rows=_count(found.get("totalsRowCount"), default=0),
    )


def _count(written: str | None, *, default: int) -> int:
    return int(written) if written and written.isascii() and written.isdecimal() and len(written) < 8 else default


def _column(letters: str) -> int:
    index = 0
    for letter in letters.upper():
        index = index * 26 + ord(letter) - ord("A") + 1
    return index - 1


def _chained(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _refs(part: str, pieces: Iterable[bytes], limits: Limits) -> list[str]:
    """Find the references in the bytes of a part: `<` cannot stand in XML text, so a tag found is a tag."""
    kept = b""
    begun = False
    for piece in pieces:
        looked_at = max(0, len(kept) - _OVERLAP)
        kept += piece
        if not begun:
            # The plain search first: it is many times faster than the expression.
            begin = _BEGIN.search(kept) if b"mergeCells" in kept else None
            begun = begin is not None
            looked_at, kept = (0, kept[begin.start() :]) if begin else (0, kept[-_OVERLAP:])
        if begun and _END.search(kept, looked_at):
            break
        if len(kept) > limits.description_bytes:
            raise too_large(f"the part {part} lists too many merged ranges (bytes)", limits.description_bytes)
    if not begun:
        return []
    end = _END.search(kept)
    return [ref.decode("ascii", "replace") for ref in _REF.findall(kept[: end.start()] if end else kept)]


def _refs_by_parser(part: str, pieces: Iterable[bytes], limits: Limits) -> list[str]:
    """Find them in a part written in UTF-16."""
    refs: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "mergeCell":
            refs.append(attributes.get("ref", ""))

    parse(part, pieces, limits, start=start, end=_ignore)
    return refs


def _ignore(_: str) -> None:
    """Do nothing at the end of an element."""
