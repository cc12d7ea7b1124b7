"""The sender's own workbook with its bad cells marked: coloured, each with a note, a list of all of them, a stamp."""

from __future__ import annotations

import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

from importer.errors import WorkbookError
from importer.sender.looks import Looks
from importer.sender.notes import add_notes
from importer.sender.package_edit import DECLARATION, MAIN, OFFICE, STRICT, Package, attributes
from importer.sender.sheet_edit import SheetEdit, edited, letters, looks_used, text_cell
from importer.sender.stamp import ORIGIN_TITLE, STAMP_SHEET, Origin, Stamp
from importer.sender.words import cut, storable

_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_SHEET = re.compile(rb"<(?:\w+:)?sheet\b[^>]*>")
_LAST_COLUMN = 16_383
#: Notes in one sheet, and lines in the list: enough to work with, and no burden for Excel.
MOST_NOTES = 10_000
MOST_LISTED = 50_000


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One bad cell."""

    row: int
    #: Sheet column from 0; none when the whole row is refused.
    column: int | None
    #: The column's title, for the list.
    title: str
    rule: str
    #: What stands in the cell, as shown.
    value: str
    #: What is expected there, in words.
    expected: str

    @property
    def note(self) -> str:
        """What the note at the cell says."""
        found = f"\nFound: {cut(self.value, 200)}" if self.value else ""
        stop = "" if self.expected.endswith(("?", ".")) else "."
        return storable(cut(f"{self.expected[:1].upper()}{self.expected[1:]}{stop}{found}", 1_000))


@dataclass(frozen=True, kw_only=True)
class Marking:
    """All that is marked in a workbook."""

    #: Name of the sheet, as the workbook spells it.
    sheet: str
    header_row: int
    #: The first sheet column that no row uses.
    free_column: int
    #: In sheet order.
    marks: Sequence[Mark]
    origins: Sequence[Origin]
    stamp: Stamp
    #: Sheets that we added to it before, whose place ours take.
    own_sheets: Sequence[str] = ()
    #: Lines above the list of faults: file, form, counts.
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Marked:
    """What became of the workbook."""

    path: Path
    #: Bad cells that have a note; all are coloured.
    notes: int
    #: What the workbook had and has no more, as sentences.
    not_kept: tuple[str, ...]


def mark_workbook(source: str | os.PathLike[str], target: str | os.PathLike[str], marking: Marking) -> Marked:
    """Write a copy of a workbook with its bad cells marked.

    Raises:
        WorkbookError: the package is not as the marks say (it was changed since), or cannot be edited.
    """
    try:
        package = Package(Path(source))
    except zipfile.BadZipFile as error:
        raise WorkbookError("corrupt", f"{Path(source).name} is no sound package") from error
    try:
        return _Marker(package, marking).write(Path(target))
    finally:
        package.close()


class _Marker:
    def __init__(self, package: Package, marking: Marking) -> None:
        self.package, self.marking = package, marking
        self.main = next(
            (part for kind, part in package.relationships("").values() if kind == "officeDocument"), "xl/workbook.xml"
        )
        self.sheet_part = package.stored_name(self._part_of(marking.sheet))
        self.cells: dict[tuple[int, int], list[Mark]] = defaultdict(list)
        for mark in marking.marks:
            self.cells[mark.row, mark.column or 0].append(mark)

    def write(self, target: Path) -> Marked:
        marked: dict[int, set[int]] = defaultdict(set)
        for row, column in self.cells:
            marked[row].add(column)
        rows = {row: frozenset(columns) for row, columns in marked.items()}
        looks = self._looks(looks_used(self.package.blocks(self.sheet_part), rows))
        noted = dict(list(self.cells.items())[:MOST_NOTES])
        notes = {cell: "\n\n".join(mark.note for mark in marks) for cell, marks in noted.items()}
        room = self.marking.free_column <= _LAST_COLUMN
        titles = {self.marking.header_row: ORIGIN_TITLE} if room else {}
        edit = SheetEdit(
            marked=rows,
            bad=looks.bad,
            origin_column=self.marking.free_column if room else None,
            origins={**titles, **{origin.source_row: str(origin) for origin in self.marking.origins}} if room else {},
            notes=add_notes(self.package, self.sheet_part, notes) if notes else None,
            strict=self.package.is_strict,
        )
        list_name = self._place("Faults", self._list(looks), state="visible")
        own = replace(self.marking.stamp, sheets=(list_name, STAMP_SHEET))
        self._place(STAMP_SHEET, _sheet(_stamp_rows(own)), state="veryHidden")
        not_kept = self._without_signature()
        self.package.write(target, {self.sheet_part: edited(self.package.blocks(self.sheet_part), edit)})
        return Marked(path=target, notes=len(notes), not_kept=not_kept)

    def _looks(self, used: set[int]) -> Looks:
        styles = next((part for kind, part in self.package.relationships(self.main).values() if kind == "styles"), None)
        there = styles is not None and self.package.has(styles)
        looks = Looks(self.package.read(styles) if styles and there else None, used)
        if styles is None or not there:
            styles = "xl/styles.xml"
            self.package.relate(self.main, "styles", styles)
            self.package.declare(
                part=styles, content_type="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"
            )
        self.package.put(styles, looks.styles)
        return looks

    def _sheets(self) -> list[dict[str, str]]:
        return [attributes(tag) for tag in _SHEET.findall(self.package.read(self.main))]

    def _part_of(self, name: str) -> str:
        related = self.package.relationships(self.main)
        for its in self._sheets():
            key = next((value for key, value in its.items() if key.rpartition(":")[2] == "id"), "")
            if its.get("name") == name and key in related:
                return related[key][1]
        raise WorkbookError("sheet_not_found", f"the workbook has no sheet {name!r}")

    def _place(self, wanted: str, content: bytes, *, state: str) -> str:
        """Put a sheet of ours in the place of the one it had before, else behind all others; return its name."""
        old: list[str] = [name for name in self.marking.own_sheets if name.startswith(wanted)]
        if wanted == STAMP_SHEET:
            old.append(wanted)
        there = {its.get("name", "") for its in self._sheets()}
        for name in old:
            if name in there:
                self.package.put(self.package.stored_name(self._part_of(name)), content)
                return name
        free = self._free_sheet_name(wanted)
        self._add_sheet(free, content, state=state)
        return free

    def _free_sheet_name(self, wanted: str) -> str:
        taken = {its.get("name", "").casefold() for its in self._sheets()}
        names = [wanted, *(f"{wanted} ({n})" for n in range(2, len(taken) + 3))]
        return next(name for name in names if name.casefold() not in taken)

    def _add_sheet(self, name: str, content: bytes, *, state: str) -> None:
        part = self.package.free_name("xl/worksheets/rowlease{}.xml")
        self.package.put(part, content)
        self.package.declare(part=part, content_type=_SHEET_TYPE)
        key = self.package.relate(self.main, "worksheet", part)
        number = max(int(its.get("sheetId", "0")) for its in self._sheets()) + 1
        text = self.package.read(self.main)
        end = re.search(rb"</(\w+:)?sheets\s*>", text)
        if end is None:
            raise WorkbookError("corrupt", "the workbook has no list of sheets")
        base = STRICT if self.package.is_strict else OFFICE
        item = (
            f'<{(end[1] or b"").decode()}sheet xmlns:rel="{base}" name={quoteattr(name)} sheetId="{number}" '
            f'state="{state}" rel:id="{key}"/>'
        )
        self.package.put(self.main, text[: end.start()] + item.encode() + text[end.start() :])

    def _list(self, looks: Looks) -> bytes:
        """The sheet that lists all bad cells, each with a link to it."""
        head = ("Row", "Column", "What is wrong", "What stands there", "What is expected", "Cell")
        title, *lines = self.marking.lines
        rows: list[list[tuple[str | int, int | None]]] = [[(title, looks.title)]]
        rows += [[(line, None)] for line in lines]
        rows.append([])
        first = len(rows) + 1
        rows.append([(title, looks.head) for title in head])
        links: list[str] = []
        place = self.marking.sheet.replace("'", "''")
        for mark in self.marking.marks[:MOST_LISTED]:
            cell = f"{letters(mark.column or 0)}{mark.row}"
            where = quoteattr(f"'{place}'!{cell}")
            links.append(f'<hyperlink ref="F{len(rows) + 1}" location={where} display="{cell}"/>')
            texts = (mark.title, mark.rule.replace("_", " "), mark.value, mark.expected)
            rows.append([(mark.row, looks.text), *((storable(text), looks.text) for text in texts), (cell, looks.link)])
        more = len(self.marking.marks) - MOST_LISTED
        if more > 0:
            rows.append([(f"and {more:,} more; they are coloured in the sheet", None)])
        return _sheet(rows, widths=(8, 22, 18, 34, 62, 10), links=links, frozen=first, tab="FFC00000")

    def _without_signature(self) -> tuple[str, ...]:
        signed = any(
            kind.endswith("digital-signature/origin") or kind == "origin"
            for kind, _ in self.package.relationships("").values()
        )
        return ("the workbook's digital signature: it does not hold for a changed workbook",) if signed else ()


def _stamp_rows(stamp: Stamp) -> list[list[tuple[str | int, int | None]]]:
    return [[(name, None), (value, None)] for name, value in stamp.rows()]


def _sheet(
    rows: Sequence[Sequence[tuple[str | int, int | None]]],
    *,
    widths: Sequence[int] = (),
    links: Sequence[str] = (),
    frozen: int = 0,
    tab: str | None = None,
) -> bytes:
    """A worksheet part with texts and whole numbers, never formulas."""
    made = [DECLARATION.decode(), f'<worksheet xmlns="{MAIN}">']
    if tab:
        made.append(f'<sheetPr><tabColor rgb="{tab}"/><pageSetUpPr fitToPage="1"/></sheetPr>')
    if frozen:
        pane = f'<pane ySplit="{frozen}" topLeftCell="A{frozen + 1}" activePane="bottomLeft" state="frozen"/>'
        made.append(f'<sheetViews><sheetView showGridLines="0" workbookViewId="0">{pane}</sheetView></sheetViews>')
    if widths:
        cols = (f'<col min="{at}" max="{at}" width="{width}" customWidth="1"/>' for at, width in enumerate(widths, 1))
        made.append(f"<cols>{''.join(cols)}</cols>")
    made.append("<sheetData>")
    for number, cells in enumerate(rows, start=1):
        inside = "".join(_cell(f"{letters(at)}{number}", value, look) for at, (value, look) in enumerate(cells))
        made.append(f'<row r="{number}">{inside}</row>')
    made.append("</sheetData>")
    if links:
        made.append(f"<hyperlinks>{''.join(links)}</hyperlinks>")
    if frozen:
        made.append('<pageMargins left="0.5" right="0.5" top="0.6" bottom="0.6" header="0.3" footer="0.3"/>')
        made.append('<pageSetup paperSize="9" orientation="landscape" fitToHeight="0"/>')
    made.append("</worksheet>")
    return "".join(made).encode()


def _cell(reference: str, value: str | int, look: int | None) -> str:
    if isinstance(value, int):
        style = "" if look is None else f' s="{look}"'
        return f'<c r="{reference}"{style}><v>{value}</v></c>'
    return text_cell(reference, cut(value, 32_000), look=look)
