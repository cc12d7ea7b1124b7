"""OpenDocument spreadsheets (ods, ots) by the same parser, bounds and blocks as the others.

Here the file says itself what a cell is (OpenDocument 1.3 part 3, 19.385 office:value-type): numbers are taken as
written, days and moments are ISO 8601, and a time is an ISO duration, which becomes the serial (days) that the kinds
TIME and DURATION carry. An error is what LibreOffice marks as one (`calcext:value-type="error"`); a formula without
any value was never calculated. A comment in a cell is no text of the cell.

Repeated rows and cells are counted, and laid out only where they hold something, so the million blank rows at the end
of every sheet cost nothing and a repeated filled cell costs what it holds, up to the limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import polars as pl

from importer.errors import WorkbookError
from importer.excel.archive import Archive
from importer.excel.blocks import blocks_of
from importer.excel.book import Workbook
from importer.excel.cells import Chunk, Kind, Sheet, SheetNotes
from importer.excel.chunking import Block, chunks_of
from importer.excel.limits import Limits, too_large
from importer.excel.safe_xml import SEPARATOR, SafeParser, parse

_SPACE = "urn:oasis:names:tc:opendocument:xmlns:"
_TABLE = f"{_SPACE}table:1.0{SEPARATOR}"
_OFFICE = f"{_SPACE}office:1.0{SEPARATOR}"
_TEXT = f"{_SPACE}text:1.0{SEPARATOR}"
_NUMBERS = f"{_SPACE}datastyle:1.0{SEPARATOR}"
_STYLE = f"{_SPACE}style:1.0{SEPARATOR}"
_CALCEXT = f"urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0{SEPARATOR}"
_CONTENT = "content.xml"
_STYLES = "styles.xml"
_MANIFEST = "META-INF/manifest.xml"
_MIMETYPE = "application/vnd.oasis.opendocument.spreadsheet"
_FORMATS = {_MIMETYPE: "ods", f"{_MIMETYPE}-template": "ots"}
_PERIOD = re.compile(
    r"(-)?P(?:([0-9]{1,9})D)?T?(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:[.,][0-9]{1,9})?)S)?", re.ASCII
)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?", re.ASCII)
#: how LibreOffice writes a truth value that was not formatted as one
_TRUTHS = {"of:=TRUE()": "true", "of:=FALSE()": "false"}
_UNSTORABLE = re.compile("[\x00]")
_ENOUGH_CELLS = 131_072
_SECONDS_A_DAY = 86_400
#: cells that one row may stand for by being repeated: a filled column down to the end of the grid
_MOST_REPEATED = 1_048_576


def is_open_document(archive: Archive) -> bool:
    """Whether a zip archive says that it is an OpenDocument file of any kind."""
    return "mimetype" in archive and archive.read("mimetype").startswith(b"application/vnd.oasis.opendocument.")


class OpenDocumentWorkbook(Workbook):
    """An open ods or ots."""

    def __init__(self, file: BinaryIO, archive: Archive, path: Path, limits: Limits) -> None:
        mimetype = archive.read("mimetype").decode("ascii", "replace").strip()
        if mimetype not in _FORMATS or _CONTENT not in archive:
            raise WorkbookError("not_a_spreadsheet", f"{path.name} is an OpenDocument file, but no spreadsheet")
        if _MANIFEST in archive and b"encryption-data" in archive.read(_MANIFEST):
            raise WorkbookError(
                "encrypted", f"{path.name} is protected by a password; open it, remove the password, save it again"
            )
        sheets = _sheets(archive, limits)
        if not sheets:
            raise WorkbookError("corrupt", f"{path.name} is damaged: it holds no sheet; open it and save it again")
        super().__init__(path, format=_FORMATS[mimetype], sheets=sheets)
        self._file = file
        self._archive = archive
        self._limits = limits
        self._elapsed = _elapsed_styles(archive, limits)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def merged(self, sheet: Sheet) -> tuple[str, ...]:
        """Give the merged ranges of a sheet; reads it once for them."""
        reader = _SheetReader(sheet.position, self._limits, self._elapsed)
        for _ in self._blocks(reader):
            pass
        return tuple(reader.merged)

    def _read(self, sheet: Sheet, rows: int) -> Iterator[Chunk]:
        reader = _SheetReader(sheet.position, self._limits, self._elapsed)
        yield from chunks_of(self._blocks(reader), rows=rows, date_1904=False)
        self._notes[sheet.position] = SheetNotes(
            formulas=reader.formulas,
            hidden_rows=reader.hidden_rows,
            hidden_columns=reader.hidden_columns,
            merged=tuple(reader.merged),
        )

    def _blocks(self, reader: _SheetReader) -> Iterator[Block]:
        parser = SafeParser(_CONTENT, self._limits, start=reader.start, end=reader.end, text=reader.text)
        for piece in self._archive.pieces_ahead(_CONTENT):
            parser.feed(piece)
            if len(reader) >= _ENOUGH_CELLS:
                yield from blocks_of(reader.taken())
        parser.feed(b"", last=True)
        yield from blocks_of(reader.taken())


def _sheets(archive: Archive, limits: Limits) -> tuple[Sheet, ...]:
    """List the tables; one is hidden where its style does not display it."""
    hidden_styles: set[str] = set()
    style = ""
    depth = 0
    found: list[tuple[str, str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal style, depth
        if name == f"{_STYLE}style":
            style = attributes.get(f"{_STYLE}name", "")
        elif name == f"{_STYLE}table-properties" and attributes.get(f"{_TABLE}display") == "false":
            hidden_styles.add(style)
        elif name == f"{_TABLE}table":
            if depth == 0:
                found.append((attributes.get(f"{_TABLE}name", ""), attributes.get(f"{_TABLE}style-name", "")))
            depth += 1
            if len(found) > limits.sheets:
                raise too_large("the workbook has too many sheets", limits.sheets)

    def end(name: str) -> None:
        nonlocal depth
        if name == f"{_TABLE}table":
            depth -= 1

    parse(_CONTENT, archive.pieces_ahead(_CONTENT), limits, start=start, end=end)
    return tuple(
        Sheet(name=name, kind="worksheet", visible=style not in hidden_styles, position=position)
        for position, (name, style) in enumerate(found)
    )


def _is_elapsed(name: str, attributes: dict[str, str]) -> bool:
    """Whether an element is a style of times that go beyond a day."""
    return name == f"{_NUMBERS}time-style" and attributes.get(f"{_NUMBERS}truncate-on-overflow") == "false"


def _elapsed_styles(archive: Archive, limits: Limits) -> frozenset[str]:
    """Read which of the common styles show an elapsed time (others stand beside the sheets)."""
    found: set[str] = set()

    def start(name: str, attributes: dict[str, str]) -> None:
        if _is_elapsed(name, attributes):
            found.add(attributes.get(f"{_STYLE}name", ""))

    def end(_: str) -> None:
        """Nothing ends that matters."""

    if _STYLES in archive:
        pieces = archive.pieces(_STYLES, most_bytes=limits.description_bytes)
        parse(_STYLES, pieces, limits, start=start, end=end)
    return frozenset(found)


@dataclass
class _Cell:
    """The cell that is being read."""

    attributes: dict[str, str]
    repeated: int
    #: paragraphs, and whether one is open
    paragraphs: list[str] = field(default_factory=list)
    open: bool = False


class _SheetReader:
    """Collects the cells of one table; what stands in other tables, in comments and in drawings is passed over."""

    def __init__(self, position: int, limits: Limits, elapsed: frozenset[str]) -> None:
        self.formulas = self.hidden_rows = self.hidden_columns = 0
        self.merged: list[str] = []
        self._wanted = position
        self._limits = limits
        self._table = -1
        self._depth = 0
        self._skip = 0
        self._row = 0
        self._row_times = 1
        self._column = 0
        self._columns = 0
        self._cell: _Cell | None = None
        self._length = 0
        self._count = 0
        self._in_row: list[tuple[int, int, str]] = []
        self._elapsed = set(elapsed)
        self._style_of: dict[str, str] = {}
        self._cells: list[tuple[int, int, int, str]] = []

    def __len__(self) -> int:
        return len(self._cells)

    def taken(self) -> pl.DataFrame:
        """Give the cells of rows that ended since the last call."""
        cells, self._cells = self._cells, []
        schema = {"row": pl.Int32, "column": pl.Int32, "kind": pl.UInt8, "value": pl.String}
        return pl.DataFrame(cells, schema=schema, orient="row")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skip:
            self._skip += 1
        elif name == f"{_TABLE}table":
            self._depth += 1
            self._table += self._depth == 1
            if self._depth > 1:
                self._skip, self._depth = 1, self._depth - 1
        elif self._depth == 0:
            self._note_style(name, attributes)
        elif self._table != self._wanted:
            return
        elif self._cell is not None:
            self._start_in_cell(name, attributes)
        elif name == f"{_TABLE}table-row":
            self._row_times = _times(attributes.get(f"{_TABLE}number-rows-repeated"))
            if attributes.get(f"{_TABLE}visibility", "visible") != "visible":
                self.hidden_rows += self._row_times
            self._column, self._in_row = 0, []
        elif name == f"{_TABLE}table-column":
            times = _times(attributes.get(f"{_TABLE}number-columns-repeated"))
            if attributes.get(f"{_TABLE}visibility", "visible") != "visible":
                self.hidden_columns += min(times, self._limits.columns)
        elif name in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
            self._cell = _Cell(attributes, _times(attributes.get(f"{_TABLE}number-columns-repeated")))
            self._length = 0

    def _start_in_cell(self, name: str, attributes: dict[str, str]) -> None:
        cell = self._cell
        if cell is None:
            return
        if name == f"{_TEXT}p" and not cell.open:
            cell.paragraphs.append("")
            cell.open = True
        elif not cell.open:
            self._skip = 1  # a comment, a drawing
        elif name == f"{_TEXT}s":
            self.text(" " * min(_times(attributes.get(f"{_TEXT}c")), self._limits.cell_characters))
        elif name == f"{_TEXT}tab":
            self.text("\t")
        elif name == f"{_TEXT}line-break":
            self.text("\n")
        elif name.startswith(_OFFICE):
            self._skip = 1  # a comment within the text

    def end(self, name: str) -> None:
        if self._skip:
            self._skip -= 1
        elif name == f"{_TABLE}table":
            self._depth -= 1
        elif self._depth == 0 or self._table != self._wanted:
            return
        elif self._cell is not None:
            if name == f"{_TEXT}p":
                self._cell.open = False
            elif name in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
                cell, self._cell = self._cell, None
                self._end_cell(cell)
        elif name == f"{_TABLE}table-row":
            self._end_row()

    def text(self, characters: str) -> None:
        if self._cell is not None and self._cell.open and not self._skip:
            self._length += len(characters)
            if self._length > self._limits.cell_characters:
                raise too_large("the text of a cell has too many characters", self._limits.cell_characters)
            self._cell.paragraphs[-1] += characters

    def _note_style(self, name: str, attributes: dict[str, str]) -> None:
        """Remember which cell styles show an elapsed time."""
        if name == f"{_STYLE}style":
            data_style = attributes.get(f"{_STYLE}data-style-name")
            if data_style is not None:
                self._style_of[attributes.get(f"{_STYLE}name", "")] = data_style
        elif _is_elapsed(name, attributes):
            self._elapsed.add(attributes.get(f"{_STYLE}name", ""))

    def _end_cell(self, cell: _Cell) -> None:
        if f"{_TABLE}formula" in cell.attributes:
            self.formulas += cell.repeated
        self._note_merged(cell.attributes)
        found = self._judged(cell)
        first, self._column = self._column, self._column + cell.repeated
        if found is None:
            return
        if self._column > self._limits.columns:
            raise too_large(f"the sheet uses column {self._column:,} in row {self._row + 1}", self._limits.columns)
        self._in_row.extend((column, *found) for column in range(first, self._column))

    def _end_row(self) -> None:
        first, self._row = self._row + 1, self._row + self._row_times
        if not self._in_row:
            return
        if self._row > self._limits.rows:
            raise too_large(f"the sheet uses row {self._row:,}", self._limits.rows)
        filled = len(self._in_row) * self._row_times
        self._count += filled
        if self._count > self._limits.cells:
            raise too_large("the sheet has too many cells", self._limits.cells)
        if filled > max(_MOST_REPEATED, len(self._in_row)):
            raise too_large("the sheet repeats a row with too many cells", _MOST_REPEATED)
        for row in range(first, self._row + 1):
            self._cells.extend((row, column, kind, value) for column, kind, value in self._in_row)

    def _note_merged(self, attributes: dict[str, str]) -> None:
        wide = _times(attributes.get(f"{_TABLE}number-columns-spanned"))
        high = _times(attributes.get(f"{_TABLE}number-rows-spanned"))
        if wide > 1 or high > 1:
            last = f"{_letters(self._column + wide - 1)}{self._row + high}"
            self.merged.append(f"{_letters(self._column)}{self._row + 1}:{last}")

    def _judged(self, cell: _Cell) -> tuple[int, str] | None:
        """Give kind and value, None for a blank cell."""
        attributes, text = cell.attributes, "\n".join(cell.paragraphs)
        if attributes.get(f"{_CALCEXT}value-type") == "error":
            return Kind.ERROR, text
        kind = attributes.get(f"{_OFFICE}value-type")
        if kind is None:
            formula = attributes.get(f"{_TABLE}formula")
            if formula is not None and not cell.paragraphs:  # a calculated "" has an empty paragraph
                return Kind.UNCALCULATED, formula[max(formula.find("="), 0) :]
            return _texts(text)
        if kind == "string":
            return _texts(attributes.get(f"{_OFFICE}string-value", text))
        if kind == "time":
            return self._time(attributes, text)
        if kind == "float" and attributes.get(f"{_TABLE}formula") in _TRUTHS:
            return Kind.BOOL, _TRUTHS[attributes[f"{_TABLE}formula"]]
        return _valued(kind, attributes, text)

    def _time(self, attributes: dict[str, str], text: str) -> tuple[int, str]:
        written = attributes.get(f"{_OFFICE}time-value", "").strip()
        seconds = _seconds(written)
        if seconds is None:
            return Kind.BROKEN, written or text
        style = self._style_of.get(attributes.get(f"{_TABLE}style-name", ""), "")
        elapsed = style in self._elapsed or not 0 <= seconds < _SECONDS_A_DAY
        return (Kind.DURATION if elapsed else Kind.TIME), format((seconds / _SECONDS_A_DAY).normalize(), "f")


def _valued(kind: str, attributes: dict[str, str], text: str) -> tuple[int, str]:
    """Judge a number, a moment or a truth value by the attribute that holds it."""
    if kind in {"float", "percentage", "currency"}:
        written = attributes.get(f"{_OFFICE}value", "").strip()
        found = Kind.NUMBER if _NUMBER.fullmatch(written) else Kind.BROKEN
    elif kind == "date":
        written = attributes.get(f"{_OFFICE}date-value", "").strip().removesuffix("Z")
        match = _MOMENT.fullmatch(written)
        found = Kind.BROKEN if match is None else Kind.DATETIME if match.group(1) else Kind.DATE
    elif kind == "boolean":
        written = attributes.get(f"{_OFFICE}boolean-value", "").strip().lower()
        found = Kind.BOOL if written in {"true", "false"} else Kind.BROKEN
    else:
        return Kind.BROKEN, text or kind
    return found, written or text


def _texts(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    if _UNSTORABLE.search(text):
        return Kind.UNSTORABLE, text.replace("\x00", "_x0000_")
    return Kind.TEXT, text


def _times(written: str | None) -> int:
    """Read how often something is repeated; 1 for what is no number."""
    return max(int(written), 1) if written is not None and written.isascii() and written.isdigit() else 1


def _seconds(period: str) -> Decimal | None:
    """Read an ISO 8601 duration without years and months."""
    match = _PERIOD.fullmatch(period)
    if match is None or not any(match.groups()[1:]):
        return None
    sign, days, hours, minutes, seconds = match.groups()
    total = (
        Decimal(days or 0) * _SECONDS_A_DAY
        + Decimal(hours or 0) * 3600
        + Decimal(minutes or 0) * 60
        + Decimal((seconds or "0").replace(",", "."))
    )
    return -total if sign else total


def _letters(column: int) -> str:
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
