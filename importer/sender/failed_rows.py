"""A small workbook with the failed rows alone: titles as the sender wrote them, bad cells marked, ready to correct."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from importer.sender.marked import MOST_NOTES, Mark, Marked
from importer.sender.notes import AUTHOR
from importer.sender.stamp import ORIGIN_TITLE, STAMP_SHEET, Origin, Stamp
from importer.sender.template import write_stamp
from importer.sender.words import cut, sheet_name, storable

_FORMATS = {"date": "yyyy-mm-dd", "datetime": "yyyy-mm-dd hh:mm:ss", "time": "hh:mm:ss", "duration": "[h]:mm:ss"}
_BAD = "#FFC7CE"


@dataclass(frozen=True)
class FailedCell:
    """What stands in a cell of a failed row."""

    #: text number bool date datetime time duration, or anything else, which is written as text
    kind: str
    #: As the file writes it: a number or a serial by its digits.
    value: str


@dataclass(frozen=True, kw_only=True)
class FailedRows:
    """The failed rows of a sheet."""

    sheet: str
    date_1904: bool
    #: Titles by sheet column, in order.
    titles: dict[int, str]
    #: Cells by row of the sent sheet and sheet column, in order.
    rows: dict[int, dict[int, FailedCell]]
    marks: Sequence[Mark]
    origins: Sequence[Origin]
    stamp: Stamp
    #: What stands above the titles.
    line: str


def write_failed_rows(path: str | os.PathLike[str], failed: FailedRows) -> Marked:
    """Write the small workbook, over one that is there."""
    target = Path(path)
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(os.fspath(target), options | {"date_1904": failed.date_1904}) as book:
        sheet = book.add_worksheet(sheet_name(failed.sheet))
        notes = _Writer(book, sheet, failed).write()
        write_stamp(book, replace(failed.stamp, sheets=(STAMP_SHEET,)))
    return Marked(path=target, notes=notes, not_kept=())


class _Writer:
    #: Rows above the first failed one: a line of text, the titles.
    HEAD = 2

    def __init__(self, book: Workbook, sheet: Worksheet, failed: FailedRows) -> None:
        self.book, self.sheet, self.failed = book, sheet, failed
        self.places = {column: at for at, column in enumerate(failed.titles)}
        self.marks: dict[tuple[int, int], list[Mark]] = defaultdict(list)
        for mark in failed.marks:
            self.marks[mark.row, mark.column if mark.column in self.places else next(iter(self.places), 0)].append(mark)
        self.formats: dict[tuple[str, bool], Format] = {}

    def write(self) -> int:
        self.sheet.write_string(0, 0, self.failed.line, self.book.add_format({"italic": True, "font_color": "#595959"}))
        style = self.book.add_format(
            {
                "bold": True,
                "bg_color": "#1F4E79",
                "font_color": "white",
                "border": 1,
                "text_wrap": True,
                "valign": "vcenter",
            }
        )
        for column, at in self.places.items():
            title = self.failed.titles[column]
            self.sheet.set_column(at, at, min(max(len(title) + 4, 12), 40))
            self.sheet.write_string(1, at, title, style)
        origins = {origin.source_row: origin for origin in self.failed.origins}
        hidden = len(self.places)
        self.sheet.set_column(hidden, hidden, 3, None, {"hidden": True})
        self.sheet.write_string(1, hidden, ORIGIN_TITLE)
        noted = 0
        for at, (row, cells) in enumerate(self.failed.rows.items(), start=self.HEAD):
            for column in self.places:
                noted += self._cell(at, row, column, cells.get(column), room=noted < MOST_NOTES)
            self.sheet.write_string(at, hidden, str(origins[row]))
        self.sheet.freeze_panes(self.HEAD, 0)
        self.sheet.set_landscape()
        self.sheet.set_paper(9)
        self.sheet.fit_to_pages(1, 0)
        return noted

    def _cell(self, at: int, row: int, column: int, cell: FailedCell | None, *, room: bool) -> bool:
        marks = self.marks.get((row, column))
        place = self.places[column]
        self._value(at, place, cell, bad=bool(marks))
        if not marks or not room:
            return False
        note = "\n\n".join(mark.note for mark in marks)
        lines = sum(1 + len(line) // 42 for line in note.split("\n"))
        size = {"x_scale": 1.8, "y_scale": max(0.5, lines * 0.26), "color": "#FFF3F3", "author": AUTHOR}
        self.sheet.write_comment(at, place, note, size)
        return True

    def _value(self, at: int, place: int, cell: FailedCell | None, *, bad: bool) -> None:
        if cell is None:
            self.sheet.write_blank(at, place, None, self._format("", bad=bad))
        elif cell.kind == "bool":
            self.sheet.write_boolean(at, place, cell.value == "true", self._format("", bad=bad))
        elif (number := _number(cell)) is not None:
            self.sheet.write_number(at, place, number, self._format(_FORMATS.get(cell.kind, ""), bad=bad))
        else:
            # As text and marked as such, so that Excel does not take it for a formula when the cell is edited.
            self.sheet.write_string(at, place, cut(storable(cell.value), 32_767), self._format("@", bad=bad))

    def _format(self, code: str, *, bad: bool) -> Format:
        if (code, bad) not in self.formats:
            look: dict[str, object] = {"num_format": code} if code else {}
            look |= {"quote_prefix": True} if code == "@" else {}
            look |= {"bg_color": _BAD} if bad else {}
            self.formats[code, bad] = self.book.add_format(look)
        return self.formats[code, bad]


def _number(cell: FailedCell) -> float | None:
    """The number of a cell, when a workbook keeps it: a longer one goes as text, with all its digits."""
    if cell.kind not in ("number", *_FORMATS):
        return None
    try:
        number = float(cell.value)
    except ValueError:
        return None
    digits = cell.value.lstrip("+-0").replace(".", "")
    longer = digits.isdigit() and len(digits.rstrip("0")) > 15 and "." not in cell.value
    return None if longer or number in (float("inf"), float("-inf")) else number
