"""An empty workbook that a sender fills in: it says its rules where they are needed and refuses what it can.

```
sheet of the form    title, legend, header (required columns dark), notes, number formats, validation, dropdowns
How to fill in       every column in words, with an example
_rowlease            the stamp (very hidden);  _rowlease_lists: choices too long for a validation's own text
```
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from importer.sender.stamp import LISTS_SHEET, STAMP_SHEET, Stamp
from importer.sender.words import cut, sheet_name

#: A value of a rule: text, number, moment.
Value = str | bool | int | float | Decimal | dt.date | dt.datetime | dt.time | dt.timedelta

#: Excel's last row, where validation ends.
LAST_ROW = 1_048_576
#: A list of choices longer than this stands on a hidden sheet (Excel's limit for the list's own text).
_LIST_CHARACTERS = 255
#: Blank rows of an Excel table to begin with.
_TABLE_ROWS = 50
_GUIDE = "How to fill in"
_DARK, _LIGHT, _PALE, _LINE = "#1F4E79", "#DDEBF7", "#F7F9FC", "#9DB7D5"
_EPOCH = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - Excel's days know no zone


@dataclass(frozen=True, kw_only=True)
class TemplateColumn:
    """One column as the sender sees it."""

    title: str
    #: text integer decimal float boolean date datetime time duration
    type: str
    required: bool = False
    #: What goes in, in a few words: `a date`.
    words: str
    #: Each rule as a sentence.
    rules: tuple[str, ...] = ()
    #: A value that is right, as it is shown.
    example: str = ""
    minimum: Value | None = None
    maximum: Value | None = None
    #: What may be chosen; the cell gets a dropdown.
    choices: tuple[Value, ...] = ()
    max_length: int | None = None
    #: Places behind the decimal point, where they are declared.
    scale: int | None = None

    @property
    def number_format(self) -> str:
        """How Excel shows the column's cells."""
        if self.type == "decimal" and self.scale:
            return f"#,##0.{'0' * self.scale}"
        return {
            "text": "@", "integer": "0", "decimal": "General", "float": "General", "boolean": "General",
            "date": "yyyy-mm-dd", "datetime": "yyyy-mm-dd hh:mm", "time": "hh:mm", "duration": "[h]:mm:ss",
        }[self.type]  # fmt: skip

    @property
    def note(self) -> str:
        """What the note at the column's title says."""
        lines = [f"{self.words[:1].upper()}{self.words[1:]}.", *self.rules]
        if self.example:
            lines.append(f"Example: {self.example}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Template:
    """A template as plain values."""

    title: str
    description: str
    #: Whom to ask.
    owners: tuple[str, ...]
    sheet: str
    #: Row of the header where the form declares one.
    header_row: int | None
    #: How many rows the header has; titles are joined with " / ".
    header_rows: int
    columns: tuple[TemplateColumn, ...]
    stamp: Stamp
    #: Name of the Excel table to which the form is confined.
    table: str | None = None


def write_template(path: str | os.PathLike[str], template: Template) -> None:
    """Write the template to a file, over one that is there."""
    with xlsxwriter.Workbook(os.fspath(path), {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        book.set_properties({"title": template.title, "comments": template.description})
        sheet = book.add_worksheet(sheet_name(template.sheet))
        _Sheet(book, sheet, template).write()
        _write_guide(book, template)
        write_stamp(book, template.stamp)


def write_stamp(book: Workbook, stamp: Stamp) -> None:
    """Add the stamp's sheet to a workbook that is being written."""
    sheet = book.add_worksheet(STAMP_SHEET)
    for at, (name, value) in enumerate(stamp.rows()):
        sheet.write_string(at, 0, name)
        sheet.write_string(at, 1, value)
    sheet.very_hidden()


class _Sheet:
    """The sheet that is filled in."""

    def __init__(self, book: Workbook, sheet: Worksheet, template: Template) -> None:
        self.book, self.sheet, self.template = book, sheet, template
        #: Rows above the header: for a title and a legend where the form leaves room.
        self.room = 3 if template.header_row is None else template.header_row - 1
        #: Sheet row of the header's last row, from 1.
        self.header = self.room + template.header_rows
        self._heads: list[Format] = []
        self._lists: Worksheet | None = None
        self._listed = 0

    def write(self) -> None:
        if self.room >= 1:
            style = self.book.add_format({"bold": True, "font_size": 15, "font_color": _DARK})
            self.sheet.write_string(0, 0, self.template.title, style)
        if self.room >= 2:
            legend = (
                "Dark titles are required. Point at a title to see its rules; the sheet “How to fill in” has them all."
            )
            self.sheet.write_string(1, 0, legend, self.book.add_format({"italic": True, "font_color": "#595959"}))
        for at, column in enumerate(self.template.columns):
            self._column(at, column)
        if self.template.table is not None:
            self._table(self.template.table)
        self.sheet.freeze_panes(self.header, 0)
        self.sheet.set_row(self.header - 1, 32)
        self.sheet.set_landscape()
        self.sheet.set_paper(9)
        self.sheet.fit_to_pages(1, 0)
        self.sheet.repeat_rows(self.header - self.template.header_rows, self.header - 1)
        self.sheet.set_selection(self.header, 0, self.header, 0)

    def _column(self, at: int, column: TemplateColumn) -> None:
        left = column.type in ("text", "boolean")
        cells = self.book.add_format({"num_format": column.number_format, "align": "left" if left else "right"})
        widest = max(len(part) for part in (*_words_of(column.title), column.example, column.number_format))
        self.sheet.set_column(at, at, min(max(widest + 4, 11), 42), cells)
        look = {"bg_color": _DARK, "font_color": "white"} if column.required else {"bg_color": _LIGHT}
        style = self.book.add_format(
            {"bold": True, "text_wrap": True, "valign": "vcenter", "border": 1, "border_color": _LINE, **look}
        )
        self._heads.append(style)
        parts = _title_parts(column.title, self.template.header_rows)
        for row, part in enumerate(parts, start=self.header - len(parts)):
            self.sheet.write_string(row, at, part, style)
        lines = column.note.count("\n") + 1 + len(column.note) // 38
        self.sheet.write_comment(
            self.header - 1, at, column.note, {"x_scale": 2, "y_scale": max(0.5, lines * 0.24), "color": "#FFFDE7"}
        )
        validation = self._validation(column)
        if validation:
            self.sheet.data_validation(self.header, at, LAST_ROW - 1, at, {**validation, **_messages(column)})

    def _table(self, name: str) -> None:
        """Let the titles and some rows be an Excel table, which grows with what is filled in below it."""
        columns = [
            {"header": column.title, "header_format": self._heads[at]}
            for at, column in enumerate(self.template.columns)
        ]
        options = {"name": name, "columns": columns, "style": "Table Style Light 1", "autofilter": False}
        self.sheet.add_table(self.header - 1, 0, self.header - 1 + _TABLE_ROWS, len(columns) - 1, options)

    def _validation(self, column: TemplateColumn) -> dict[str, Any] | None:
        if column.choices:
            return {"validate": "list", "source": self._source(column.choices)}
        if column.type == "boolean":
            return {"validate": "list", "source": ["TRUE", "FALSE"]}
        if column.type == "text":
            most = column.max_length
            return {"validate": "length", "criteria": "<=", "value": most} if most and most <= 32_767 else None
        return _bounds(column)

    def _source(self, choices: Sequence[Value]) -> list[str] | str:
        texts = [str(choice) for choice in choices]
        plain = all(isinstance(choice, str) for choice in choices) and not any("," in text for text in texts)
        if plain and len(",".join(texts)) <= _LIST_CHARACTERS:
            return texts
        if self._lists is None:
            self._lists = self.book.add_worksheet(LISTS_SHEET)
            self._lists.hide()
        at = self._listed
        self._listed += 1
        for row, choice in enumerate(choices):
            write_value(self.book, self._lists, row, at, choice)
        letters = xlsxwriter.utility.xl_col_to_name(at, col_abs=True)
        return f"='{LISTS_SHEET}'!{letters}$1:{letters}${len(choices)}"


def write_value(book: Workbook, sheet: Worksheet, row: int, column: int, value: Value) -> None:
    """Write one value as what it is, never as a formula."""
    match value:
        case str():
            sheet.write_string(row, column, value)
        case bool():
            sheet.write_boolean(row, column, value)
        case int() | float() | Decimal():
            sheet.write_number(row, column, float(value))
        case _:
            kind = {dt.datetime: "datetime", dt.date: "date", dt.time: "time"}.get(type(value), "duration")
            shown = TemplateColumn(title="", type=kind, words="").number_format
            sheet.write_datetime(row, column, value, book.add_format({"num_format": shown}))


def _bounds(column: TemplateColumn) -> dict[str, Any] | None:
    """A validation of numbers and moments: their bounds, else that they are one at all."""
    kind = {"integer": "integer", "decimal": "decimal", "float": "decimal", "date": "date", "datetime": "date"}.get(
        column.type, "time"
    )
    least, most = (_number(value) for value in (column.minimum, column.maximum))
    if column.type in ("time", "duration"):
        kind = "decimal"  # Excel's own kind `time` refuses 24 hours and more
        least = 0 if least is None and column.type == "time" else least
        most = 0.999999999 if most is None and column.type == "time" else most
    if kind == "date" and least is None:
        least = 1
    if kind in ("integer", "decimal") and least is None and most is None:
        least = -999_999_999_999_999
    if least is not None and most is not None:
        return {"validate": kind, "criteria": "between", "minimum": least, "maximum": most}
    if least is not None:
        return {"validate": kind, "criteria": ">=", "value": least}
    return {"validate": kind, "criteria": "<=", "value": most}


def _number(value: Value | None) -> float | int | None:
    """The number that stands for a bound in Excel: days for moments."""
    match value:
        case None | str():
            return None
        case dt.datetime():
            return (value - _EPOCH) / dt.timedelta(days=1)
        case dt.date():
            return (dt.datetime.combine(value, dt.time()) - _EPOCH).days
        case dt.time():
            return dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second) / dt.timedelta(days=1)
        case dt.timedelta():
            return value / dt.timedelta(days=1)
        case Decimal():
            return float(value)
        case _:
            return value


def _messages(column: TemplateColumn) -> dict[str, Any]:
    """What Excel says at the cell and when it refuses one; its limits are 32 and 255 characters."""
    return {
        "ignore_blank": True,
        "input_title": cut(column.title, 32),
        "input_message": cut(column.note, 255),
        "error_title": cut(column.title, 32),
        "error_message": cut("\n".join((f"Here goes {column.words}.", *column.rules)), 255),
    }


def _write_guide(book: Workbook, template: Template) -> None:
    sheet = book.add_worksheet(_guide_name(template.sheet))
    sheet.hide_gridlines(2)
    plain = book.add_format({"text_wrap": True, "valign": "top"})
    sheet.write_string(0, 0, template.title, book.add_format({"bold": True, "font_size": 15, "font_color": _DARK}))
    row = 1
    for line in _introduction(template):
        sheet.merge_range(row, 0, row, 4, "", plain)
        sheet.write_string(row, 0, line, plain)
        sheet.set_row(row, 15 * (1 + len(line) // 110))
        row += 1
    row += 1
    head = book.add_format({"bold": True, "bg_color": _DARK, "font_color": "white", "border": 1, "border_color": _LINE})
    cell = book.add_format({"text_wrap": True, "valign": "top", "border": 1, "border_color": _LINE})
    bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "border": 1, "border_color": _LINE})
    for at, (title, width) in enumerate(
        (("Column", 24), ("Required", 10), ("What goes in", 32), ("Rules", 52), ("Example", 22))
    ):
        sheet.set_column(at, at, width)
        sheet.write_string(row, at, title, head)
    for column in template.columns:
        row += 1
        texts = (
            column.title, "yes" if column.required else "", column.words, "\n".join(column.rules), column.example,
        )  # fmt: skip
        for at, text in enumerate(texts):
            sheet.write_string(row, at, text, bold if at == 0 else cell)
        lines = (
            sum(1 + len(rule) // 52 for rule in column.rules),
            1 + len(column.words) // 32,
            1 + len(column.title) // 24,
        )
        sheet.set_row(row, 16 * max(1, *lines))
    sheet.set_landscape()
    sheet.set_paper(9)
    sheet.fit_to_pages(1, 0)


def _introduction(template: Template) -> list[str]:
    lines = [template.description] if template.description else []
    lines.append(
        f"Fill in the sheet “{sheet_name(template.sheet)}”, one row for each entry, below the titles. "
        "Leave the titles as they are; columns may stand in any order, and columns of your own are ignored."
    )
    if template.owners:
        lines.append(f"Questions: {', '.join(template.owners)}")
    return lines


def _guide_name(taken: str) -> str:
    return _GUIDE if sheet_name(taken).casefold() != _GUIDE.casefold() else f"{_GUIDE} (2)"


def guide_sheets(sheet: str) -> tuple[str, ...]:
    """Names of the sheets that a template has beside the one to fill in."""
    return (_guide_name(sheet), STAMP_SHEET, LISTS_SHEET)


def _title_parts(title: str, rows: int) -> list[str]:
    parts = title.split(" / ", rows - 1) if rows > 1 else [title]
    return [""] * (rows - len(parts)) + parts


def _words_of(title: str) -> list[str]:
    half = len(title) // 2 + 1
    return [title] if len(title) <= 16 else [*title.split(), title[:half]]
