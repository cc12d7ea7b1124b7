"""`sheets` and `read_cells` show a workbook as it is."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from importer.errors import WorkbookError
from importer.excel import read_cells, sheets
from tests.workbooks import sheet_xml, write_workbook

FORMATS = ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm", "[h]:mm"]


def test_sheets_lists_every_sheet(tmp_path: Path) -> None:
    """One row per sheet, in order."""
    path = write_workbook(tmp_path / "a.xlsx", {"One": sheet_xml(""), "Two": sheet_xml("")})

    frame = sheets(path)

    assert frame.schema == {"name": pl.String, "kind": pl.String, "visible": pl.Boolean, "position": pl.Int32}
    assert frame.rows() == [("One", "worksheet", True, 0), ("Two", "worksheet", True, 1)]


def test_read_cells_shows_moments_in_iso(tmp_path: Path) -> None:
    """Days, moments and clock times are ISO 8601, durations seconds; a serial that is no day stays a serial."""
    cells = '<c s="1"><v>45351</v></c><c s="2"><v>45351.5</v></c><c s="3"><v>0.75</v></c><c s="4"><v>1.50001</v></c>'
    path = write_workbook(
        tmp_path / "a.xlsx", f'<row r="3">{cells}<c s="1"><v>60</v></c><c><v>1.50</v></c></row>', formats=FORMATS
    )

    frame = read_cells(path)

    assert frame.schema == {"row": pl.Int64, "column": pl.Int32, "kind": pl.String, "value": pl.String}
    assert frame.rows() == [
        (3, 0, "date", "2024-02-29"),
        (3, 1, "datetime", "2024-02-29T12:00:00"),
        (3, 2, "time", "18:00:00"),
        (3, 3, "duration", "129600.864"),
        (3, 4, "date", "60"),
        (3, 5, "number", "1.50"),
    ]


def test_read_cells_counts_from_1904_where_the_workbook_does(tmp_path: Path) -> None:
    """The date system of the workbook is that of its serials."""
    row = '<row r="1"><c s="1"><v>0</v></c></row>'
    path = write_workbook(tmp_path / "a.xlsx", row, formats=FORMATS, date_1904=True)

    assert read_cells(path)["value"].to_list() == ["1904-01-01"]


def test_a_sheet_is_chosen_by_name_as_excel_compares_names(tmp_path: Path) -> None:
    """Case does not matter; a name that is not there lists those that are."""
    row = '<row r="1"><c><v>2</v></c></row>'
    path = write_workbook(tmp_path / "a.xlsx", {"One": sheet_xml(""), "Größe": sheet_xml(row)})

    assert read_cells(path, "GRÖSSE")["value"].to_list() == ["2"]
    with pytest.raises(WorkbookError, match=r"'One'.*'Größe'") as caught:
        read_cells(path, "Three")
    assert caught.value.reason == "sheet_not_found"


def test_an_empty_sheet_is_an_empty_frame(tmp_path: Path) -> None:
    """No cell, no row, the same columns."""
    assert read_cells(write_workbook(tmp_path / "a.xlsx", "")).shape == (0, 4)
