"""A believable workbook for the demo: daily site reports, with the mistakes people make in them.

The sheet `Report` has a title above the header, a column the form does not know, and a row of totals at its end; a
second sheet holds notes. Among good rows stand rows with exactly one bad cell each (`BAD_CELLS`), in every way a cell
can be bad that a workbook alone can show: what only PostgreSQL refuses (`database`) is not here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.cell import Cell, WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.worksheet._write_only import WriteOnlyWorksheet

#: The table the demo fills, and the only one it ever drops.
TABLE = "rowlease_demo.site_reports"

#: What a valid report is; `forms/site_report.yaml` is the same form for a table of its own.
FORM: dict[str, Any] = {
    "name": "demo_site_report",
    "description": "Daily report of a construction site",
    "table": TABLE,
    "sheet": "Report",
    "columns": [
        {"name": "site_code", "title": "Site code", "type": "text", "required": True, "pattern": r"^[A-Z]{3}\d{4}$"},
        {
            "name": "day",
            "title": "Date",
            "type": "date",
            "required": True,
            "min": "2020-01-01",
            "formats": ["%d/%m/%Y"],
        },
        {"name": "shift", "title": "Shift", "type": "text", "choices": ["early", "late", "night"]},
        {"name": "foreman", "title": "Foreman", "type": "text", "max_length": 40},
        {"name": "crew", "title": "Crew size", "type": "integer", "min": 0, "max": 500},
        {"name": "hours", "title": "Hours", "type": "decimal", "precision": 6, "scale": 2, "min": 0},
        {"name": "cost", "title": "Cost", "type": "decimal", "precision": 12, "scale": 2},
        {"name": "began", "title": "Began", "type": "time"},
        {"name": "note_no", "title": "Delivery note", "type": "text", "unique": True},
        {"name": "approved", "title": "Approved", "type": "boolean"},
    ],
    "key": ["site_code", "day"],
}

TITLES = tuple(column["title"] for column in FORM["columns"])
HEADER_ROW = 4
FIRST_DAY = date(2026, 1, 1)
DAYS = 250

_SHIFTS = ("early", "late", "night")
_FOREMEN = ("A. Brandt", "C. Díaz", "E. Fournier", "G. Håkansson", "I. Jovanović", "M. Öztürk", "王 芳", "S. O'Neill")


@dataclass(frozen=True, kw_only=True)
class BadCell:
    """One mistake: which column, what stands in the cell, and the rule it breaks."""

    #: Name of the form's column.
    column: str
    #: The value; a formula begins with "=".
    value: object
    #: Rule code of the fault.
    rule: str
    #: Cell type to force: "e" for an error, "n" for a number that is none.
    cell_type: str | None = None


def _bad(rule: str, column: str, *values: object, cell_type: str | None = None) -> list[BadCell]:
    return [BadCell(column=column, value=value, rule=rule, cell_type=cell_type) for value in values]


#: Every mistake of the workbook, in sheet order; each stands in a row that is good otherwise.
BAD_CELLS: tuple[BadCell, ...] = (
    *_bad("pattern", "site_code", "muc0001", "MUC-12", "see mail"),
    *_bad("required", "site_code", None, "   "),
    *_bad("required", "day", None),
    *_bad("bad_date", "day", 45_000, "30/02/2026", "31.12.2026", "tomorrow"),
    *_bad("range", "day", date(2019, 12, 31)),
    *_bad("choice", "shift", "Early", "midday", "nite"),
    *_bad("length", "foreman", "to be named by the subcontractor before the start of work"),
    *_bad("type", "crew", "twelve", 7.5, "12 people"),
    *_bad("range", "crew", -1, 501),
    *_bad("type", "hours", "8h", "1,5"),
    *_bad("precision", "hours", 7.125),
    *_bad("range", "hours", -8),
    *_bad("precision", "cost", 12_345_678_901.5, 0.333333333333333),
    *_bad("cell_error", "cost", "#N/A", "#REF!", "#DIV/0!", cell_type="e"),
    *_bad("no_cached_value", "cost", "=F5*48.5", "=SUM(F5:F9)"),
    *_bad("bad_cell", "cost", "12..50", cell_type="n"),
    *_bad("bad_date", "began", "25:00", 1.5),
    *_bad("bad_character", "foreman", "G. H_x0000_kansson"),
    *_bad("unique", "note_no", "DN-000001", "DN-000002"),
    *_bad("type", "approved", "maybe", 2),
)

#: The row of totals breaks three rules: it has no site code that is one, no date, and a formula nobody calculated.
TOTALS_FAULTS = {"site_code": "pattern", "day": "required", "cost": "no_cached_value"}


@dataclass(frozen=True, kw_only=True)
class Written:
    """What stands in a workbook that was written."""

    path: Path
    #: Data rows, the row of totals included.
    rows: int
    #: Rows with at least one bad cell, the row of totals included.
    bad_rows: int
    #: Sum of the costs of the good rows, exact.
    cost: Decimal


def write_workbook(path: Path, *, rows: int = 30_000, exported_at: datetime) -> Written:
    """Write a workbook with `rows` reports, the bad ones among them, and the row of totals.

    The same arguments write the same cells; `exported_at` stands in the title, so that workbooks of two moments are
    two contents.
    """
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet("Report")
    for column, width in zip("ABCDEFGHIJK", (11, 12, 8, 18, 10, 8, 12, 10, 14, 10, 24), strict=True):
        sheet.column_dimensions[column].width = width
    sheet.freeze_panes = f"A{HEADER_ROW + 1}"
    bold = Font(bold=True)
    sheet.append([_cell(sheet, "Daily site reports", font=Font(bold=True, size=14))])
    sheet.append([f"Exported {exported_at:%Y-%m-%d %H:%M:%S.%f}"])
    sheet.append([])
    sheet.append([_cell(sheet, title, font=bold) for title in (*TITLES, "Remarks")])
    cost = Decimal(0)
    for report, is_bad in _reports(sheet, rows):
        sheet.append(report)
        if not is_bad:
            cost += Decimal(str(report[6]))
    last = HEADER_ROW + rows
    totals: list[object] = ["Total", None, None, None, None, None, f"=SUM(G{HEADER_ROW + 1}:G{last})"]
    sheet.append([_cell(sheet, value, font=bold) for value in totals])
    notes = workbook.create_sheet("Notes")
    notes.append(["Costs are in euros. Ask the site office about missing delivery notes."])
    workbook.save(path)
    return Written(path=path, rows=rows + 1, bad_rows=len(BAD_CELLS) + 1, cost=cost)


def _reports(sheet: WriteOnlyWorksheet, rows: int) -> Iterator[tuple[list[object], bool]]:
    """Yield each report as a row of cells and whether it is bad; the bad ones are spread evenly from the hundredth."""
    first = min(100, rows // 2)
    stride = max(1, (rows - first) // len(BAD_CELLS))
    bad_at = {first + number * stride: bad for number, bad in enumerate(BAD_CELLS)}
    names = [column["name"] for column in FORM["columns"]]
    for index in range(rows):
        report = _report(index)
        bad = bad_at.get(index)
        if bad is not None:
            report[names.index(bad.column)] = _cell(sheet, bad.value, cell_type=bad.cell_type)
            report.append("please check")
        yield report, bad is not None


def _report(index: int) -> list[object]:
    site, day = divmod(index, DAYS)
    crew = 4 + index * 7 % 23
    hours = crew * 8 - index % 4 * 0.25
    return [
        f"{('MUC', 'LYS', 'GOT', 'IST')[site % 4]}{1000 + site:04d}",
        FIRST_DAY + timedelta(days=day),
        _SHIFTS[index % 3] if index % 11 else None,
        _FOREMEN[site % len(_FOREMEN)],
        crew,
        hours,
        round(hours * 48.5 + index % 100 / 100, 2),
        time(6 + index % 3, index * 5 % 60),
        f"DN-{index:06d}" if index % 5 else None,
        index % 7 != 0,
    ]


def _cell(sheet: WriteOnlyWorksheet, value: object, *, font: Font | None = None, cell_type: str | None = None) -> Cell:
    plain = None if cell_type else value
    cell: Cell = WriteOnlyCell(sheet, value=plain)  # type: ignore[arg-type]  # the stubs leave out dates
    if cell_type:
        # Past the checks of openpyxl, which would not write what Excel itself would not.
        for name, forced in (("_value", value), ("data_type", cell_type)):
            setattr(cell, name, forced)
    if font is not None:
        cell.font = font
    return cell
