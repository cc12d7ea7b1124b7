"""What the tests of the sender room share: a form, and a workbook with faults, made as a person would."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
from pathlib import Path

import xlsxwriter

import importer as im

FORM = im.Form.from_dict(
    {
        "name": "site_report",
        "description": "Daily report of a construction site.",
        "owners": ["controlling@example.com"],
        "table": "site_reports",
        "sheet": "Report",
        "columns": [
            {
                "name": "site_code",
                "title": "Site code",
                "type": "text",
                "required": True,
                "pattern": "^[A-Z]{3}\\d{4}$",
            },
            {"name": "day", "title": "Date", "type": "date", "required": True, "formats": ["%d/%m/%Y"]},
            {"name": "crew", "title": "Crew size", "type": "integer", "min": 0, "max": 500},
            {"name": "cost", "title": "Cost", "type": "decimal", "precision": 12, "scale": 2},
            {"name": "weather", "title": "Weather", "type": "text", "choices": ["dry", "rain", "snow"]},
            {"name": "city", "title": "City", "type": "text", "choices": [f"City {n}, north" for n in range(60)]},
            {"name": "done", "title": "Done", "type": "boolean"},
            {"name": "remark", "title": "Remark", "type": "text"},
        ],
    }
)
HEADER_ROW = 3
SOFFICE = shutil.which("soffice")


def write_report(path: Path, *, rows: int = 12, bad: tuple[int, ...] = (4, 9)) -> Path:
    """Write a workbook as a sender has it: title, colours, a note, a formula, a chart, a merged range, filters.

    `bad` are sheet rows whose date is no date, whose weather is misspelt, and whose remark looks like a formula.
    """
    with xlsxwriter.Workbook(path, {"strings_to_formulas": False}) as book:
        sheet = book.add_worksheet("Report")
        day, money = book.add_format({"num_format": "dd.mm.yyyy"}), book.add_format({"num_format": "#,##0.00"})
        head = book.add_format({"bold": True, "bg_color": "#C6E0B4", "border": 1})
        sheet.merge_range(0, 0, 0, 5, "March", book.add_format({"bold": True, "align": "center"}))
        for at, title in enumerate(("Site code", "Date", "Crew size", "Cost", "Weather", "Remark", "own")):
            sheet.write(HEADER_ROW - 1, at, title, head)
        sheet.write_comment(HEADER_ROW - 1, 0, "ask the office")
        sheet.set_column(0, 0, 31)
        for number in range(HEADER_ROW + 1, HEADER_ROW + 1 + rows):
            row, wrong = number - 1, number in bad
            sheet.write(row, 0, f"ABC{1000 + number}")
            if wrong:
                sheet.write_string(row, 1, "yesterday")
            else:
                sheet.write_datetime(row, 1, dt.datetime(2026, 3, 1 + number % 28), day)  # noqa: DTZ001 - cells know no zone
            sheet.write(row, 2, number)
            sheet.write(row, 3, 10.5 + number, money)
            sheet.write(row, 4, "rian" if wrong else "dry")
            sheet.write_string(row, 5, "=1+1" if wrong else "fine")
            sheet.write_formula(row, 6, f"=C{number}*2", None, 2 * number)
        sheet.autofilter(HEADER_ROW - 1, 0, HEADER_ROW - 1 + rows, 6)
        other = book.add_worksheet("Chart")
        chart = book.add_chart({"type": "column"})
        chart.add_series({"values": f"=Report!$C${HEADER_ROW + 1}:$C${HEADER_ROW + rows}"})
        other.insert_chart("B2", chart)
    return path


def converted(path: Path, folder: Path) -> Path:
    """Let LibreOffice open a workbook and save it again."""
    assert SOFFICE is not None
    profile = f"-env:UserInstallation=file://{folder / 'profile'}"
    call = [SOFFICE, profile, "--headless", "--convert-to", "xlsx", "--outdir", str(folder), str(path)]
    subprocess.run(call, check=True, capture_output=True, timeout=120)
    return folder / path.name
