"""Merged ranges and Excel tables, found without reading cells."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from importer.excel import open_workbook
from importer.excel.ranges import Area, Table, read_area, tables
from tests.workbooks import parts, sheet_xml, write_workbook, zip_parts


@pytest.mark.parametrize("ref", ["B2:D5", "$B$2:$D$5", "d5:b2", " B2:D5 "])
def test_an_area_is_read_however_it_is_written(ref: str) -> None:
    """Dollars, case and the order of corners do not matter."""
    assert read_area(ref) == Area(first_row=2, last_row=5, first_column=1, last_column=3)


@pytest.mark.parametrize("ref", ["", "B", "2", "B0", "AAAA1", "Sheet!A1", "A1:B2:C3"])
def test_what_is_no_area_is_none(ref: str) -> None:
    """A reference of another kind is left alone."""
    assert read_area(ref) is None


@given(st.integers(1, 1_048_576), st.integers(0, 16_383))
def test_one_cell_is_an_area_of_itself(row: int, column: int) -> None:
    """Letters and numbers are read as XlsxWriter writes them."""
    ref = xlsxwriter.utility.xl_rowcol_to_cell(row - 1, column)

    assert read_area(ref) == Area(first_row=row, last_row=row, first_column=column, last_column=column)


def areas(path: Path, position: int) -> tuple[Area | None, ...]:
    """Give the merged areas of a sheet."""
    with open_workbook(path) as workbook:
        return tuple(read_area(reference) for reference in workbook.merged(workbook.sheets[position]))


def test_merged_ranges_are_found_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Also when there are many, so that their list lies across pieces."""
    path = tmp_path / "merged.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        workbook.add_worksheet()
        for row in range(0, 60_000, 2):
            sheet.merge_range(row, 0, row + 1, 1, "x")

    found = areas(path, 0)

    assert len(found) == 30_000
    assert found[0] == Area(first_row=1, last_row=2, first_column=0, last_column=1)
    assert found[-1] == Area(first_row=59_999, last_row=60_000, first_column=0, last_column=1)
    assert areas(path, 1) == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_merged_ranges_are_found_in_any_encoding_and_with_prefixes(tmp_path: Path, encoding: str) -> None:
    """A prefix, other attributes, quotes of either kind; and text that only looks like a tag is none."""
    rows = '<row r="1"><c r="A1" t="inlineStr"><is><t>&lt;mergeCells&gt;mergeCell ref="A9:B9"</t></is></c></row>'
    merged = "<mergeCells count='2'><mergeCell other='1' ref='B2:C3'/><mergeCell ref = \"D4:E4\" /></mergeCells>"
    sheet = sheet_xml(rows, after=merged).replace("UTF-8", encoding.upper())
    made = parts("")
    name = next(name for name in made if name.endswith("sheet1.xml"))
    path = tmp_path / "encoded.xlsx"
    zip_parts(path, {**made, name: sheet.encode(encoding)})

    assert [area.first_row for area in areas(path, 0) if area] == [2, 4]


def test_a_sheet_without_merged_ranges_has_none(tmp_path: Path) -> None:
    """The word alone in a cell makes no range."""
    path = tmp_path / "plain.xlsx"
    write_workbook(path, '<row r="1"><c r="A1" t="inlineStr"><is><t>mergeCells</t></is></c></row>')

    assert areas(path, 0) == ()


def test_tables_are_found_with_their_sheet_header_and_totals(tmp_path: Path) -> None:
    """Each Excel table by its name, in the order of the sheets."""
    path = tmp_path / "tables.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        workbook.add_worksheet("Empty")
        sheet = workbook.add_worksheet("Data")
        sheet.add_table("B3:C8", {"name": "Reports", "total_row": True})
        sheet.add_table("F1:G2", {"name": "Bare", "header_row": False})

    area = Area(first_row=3, last_row=8, first_column=1, last_column=2)
    bare = Area(first_row=1, last_row=2, first_column=5, last_column=6)
    assert tables(path) == (
        Table(name="Reports", sheet=1, area=area, header_rows=1, totals_rows=1),
        Table(name="Bare", sheet=1, area=bare, header_rows=0, totals_rows=0),
    )
