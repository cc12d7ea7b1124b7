"""The exact scanner: expat reads the sheet part, every attribute and element of a cell is looked at.

It is the reference. Whatever else scans a sheet must yield the same cells, and what is not of the plainest shape
comes here.
"""

from __future__ import annotations

import re

from importer.errors import WorkbookError
from importer.excel.limits import Limits, too_large
from importer.excel.raw_cells import TAGS, XML_SPACE, RawCells, SheetCounts, Tag, from_lists
from importer.excel.safe_xml import SafeParser, local_name, main_names
from importer.excel.tags import STYLE, is_true, style_index

_NAMES = main_names(
    "worksheet", "dialogsheet", "sheetData", "row", "c", "v", "f", "is", "t", "r", "rPh", "cols", "col", "mergeCell"
)
_REFERENCE = re.compile(r"([A-Za-z]{1,4})([0-9]{1,10})", re.ASCII)
_ROW_NUMBER = re.compile(r"\s*\+?([0-9]{1,12})\s*", re.ASCII)
_MOST_MERGED = 1_000_000


class ExactScanner:
    """Takes the bytes of a sheet part in order and gives its raw cells.

    Raises `WorkbookError`: corrupt (no sound XML, rows out of order, a cell nowhere), too_large, unsafe_xml, encoding.
    """

    def __init__(self, part: str, limits: Limits, counts: SheetCounts) -> None:
        self.counts = counts
        self._part = part
        self._limits = limits
        self._parser = SafeParser(part, limits, start=self._start, end=self._end, text=self._text)
        self._skip = 0  # depth of the foreign element that is being passed over
        self._in_data = False
        self._row = 0  # 0 between rows
        self._next_column = 0
        self._columns_of: dict[str, int] = {}
        self._buffer: list[str] | None = None
        self._length = 0
        self._formula: str | None = None
        self._in_cell = self._in_inline = self._has_inline = self._phonetic = False
        self._row_began = 0  # how many cells there were when the present row began
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._tags: list[int] = []
        self._styles: list[int] = []
        self._texts: list[str] = []

    @property
    def between_rows(self) -> bool:
        """Whether the next byte is expected right inside `sheetData`, before or after a row."""
        return self._in_data and self._parser.depth == 2 and not self._skip

    def __len__(self) -> int:
        return len(self._rows)

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Scan the next bytes."""
        self._parser.feed(piece, last=last)

    def take(self) -> RawCells:
        """Give the cells of all rows that have ended since the last call."""
        kept = self._row_began if self._row else len(self._rows)
        lists = (self._rows, self._columns, self._tags, self._styles, self._texts)
        cells = from_lists(*(values[:kept] for values in lists))  # type: ignore[arg-type]  # a tuple of unlike lists
        for values in lists:
            del values[:kept]
        self._row_began = 0
        return cells

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skip:
            return
        local = _NAMES.get(name)
        if self._row:
            self._start_in_row(local, attributes)
        elif self._parser.depth == 1:
            if local not in {"worksheet", "dialogsheet"} and local_name(name) != "macrosheet":
                raise WorkbookError("corrupt", f"the workbook is damaged: its part {self._part} is no worksheet")
        elif local == "row" and self._in_data:
            self._start_row(attributes)
        elif local == "sheetData":
            self._in_data = True
        elif self._in_data:
            self._skip = self._parser.depth
        elif local == "col":
            self._note_columns(attributes)
        elif local == "mergeCell" and len(self.counts.merged) < _MOST_MERGED:
            self.counts.merged.append(attributes.get("ref", ""))

    def _start_in_row(self, local: str | None, attributes: dict[str, str]) -> None:
        if not self._in_cell:
            if local == "c":
                self._start_cell(attributes)
            else:
                self._skip = self._parser.depth
        elif local in {"v", "f"}:
            self._buffer, self._length = [], 0
        elif local == "t":
            if self._in_inline and not self._phonetic:
                self._buffer, self._length = [], 0
        elif local == "is":
            self._in_inline = True
        elif local == "rPh":
            self._phonetic = True
        elif local != "r":
            self._skip = self._parser.depth

    def _end(self, name: str) -> None:
        if self._skip:
            if self._parser.depth < self._skip:
                self._skip = 0
            return
        local = _NAMES.get(name)
        if self._row:
            self._end_in_row(local)
        elif local == "sheetData":
            self._in_data = False

    def _end_in_row(self, local: str | None) -> None:
        if local == "v":
            self._values.append(self._taken())
        elif local == "c":
            self._end_cell()
        elif local == "row":
            self._row = 0
        elif local == "f":
            self._formula = self._taken()
        elif local == "t":
            if self._in_inline and self._buffer is not None:
                self._inline.append(self._taken())
        elif local == "is":
            self._in_inline, self._has_inline = False, True
        elif local == "rPh":
            self._phonetic = False

    def _text(self, characters: str) -> None:
        if self._buffer is not None and not self._skip:
            self._length += len(characters)
            if self._length > self._limits.cell_characters:
                raise too_large("the text of a cell has too many characters", self._limits.cell_characters)
            self._buffer.append(characters)

    def _taken(self) -> str:
        text = "".join(self._buffer or ())
        self._buffer = None
        return text

    def _start_row(self, attributes: dict[str, str]) -> None:
        last = self.counts.last_row
        written = attributes.get("r")
        if written is None:
            number = last + 1
        else:
            match = _ROW_NUMBER.fullmatch(written)
            if match is None or (number := int(match.group(1))) == 0:
                raise WorkbookError("corrupt", f"the workbook is damaged: a row is numbered {written[:40]!r}")
            if number <= last:
                raise WorkbookError(
                    "corrupt",
                    f"the workbook is damaged: row {number} stands after row {last}, and rows must ascend; open it in "
                    "Excel, let it repair the file, and save it again",
                )
        if number > self._limits.rows:
            raise too_large(f"the sheet uses row {number:,}", self._limits.rows)
        self.counts.last_row = self._row = number
        self._next_column = 0
        self._row_began = len(self._rows)
        if is_true(attributes.get("hidden", "")):
            self.counts.hidden_rows += 1

    def _start_cell(self, attributes: dict[str, str]) -> None:
        self.counts.cells += 1
        if self.counts.cells > self._limits.cells:
            raise too_large("the sheet has too many cells", self._limits.cells)
        reference = attributes.get("r")
        self._misplaced = ""
        if reference is None:
            self._column = self._next_column
        else:
            self._column = self._place(reference)
        if self._column >= self._limits.columns:
            raise too_large(f"the sheet uses column {self._column + 1:,} in row {self._row}", self._limits.columns)
        self._next_column = self._column + 1
        self._in_cell = True
        self._type = attributes.get("t", "n")
        self._style = attributes.get("s", "0")
        self._values: list[str] = []
        self._inline: list[str] = []
        self._in_inline = self._has_inline = self._phonetic = False
        self._formula = None

    def _place(self, reference: str) -> int:
        """Give the column of a cell's own reference; remember when it names another row."""
        match = _REFERENCE.fullmatch(reference.strip(XML_SPACE))
        if match is None:
            raise WorkbookError(
                "corrupt",
                f"the workbook is damaged: a cell of row {self._row} says it stands at {reference[:40]!r}, and no cell "
                "has such a name",
            )
        letters, row = match.groups()
        if int(row) != self._row:
            self._misplaced = reference
        column = self._columns_of.get(letters)
        if column is None:
            column = 0
            for letter in letters.upper():
                column = column * 26 + ord(letter) - 64
            column -= 1
            if column < self._limits.columns:
                self._columns_of[letters] = column
        return column

    def _end_cell(self) -> None:
        self._in_cell = False
        if self._formula is not None:
            self.counts.formulas += 1
        tag = TAGS.get(self._type.strip(XML_SPACE), Tag.BROKEN)
        if self._has_inline and (tag is Tag.TEXT or not self._values):
            text: str | None = "".join(self._inline)
            tag = Tag.TEXT
        elif self._values:
            text = self._values[0]
            if tag is not Tag.TEXT:
                text = text.strip(XML_SPACE)
        else:
            text = None
        if self._formula is not None and (text is None or (text == "" and self._type != "str")):
            formula = self._formula.strip(XML_SPACE)
            text, tag = "=" + formula if formula else "", Tag.UNCALCULATED
        elif not text:
            return
        if len(self._values) > 1:
            text, tag = " | ".join(self._values), Tag.BROKEN
        if self._misplaced:
            text, tag = f"{text} (said to stand at {self._misplaced})", Tag.BROKEN
        self._rows.append(self._row)
        self._columns.append(self._column)
        self._tags.append(tag)
        self._styles.append(style_index(self._style))
        self._texts.append(text)

    def _note_columns(self, attributes: dict[str, str]) -> None:
        if not is_true(attributes.get("hidden", "")):
            return
        first, last = (STYLE.fullmatch(attributes.get(key, "")) for key in ("min", "max"))
        if first and last:
            width = min(int(last.group(1)), self._limits.columns) - int(first.group(1)) + 1
            self.counts.hidden_columns += max(width, 0)
