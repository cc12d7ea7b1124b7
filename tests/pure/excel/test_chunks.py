"""Rows come in chunks of bounded size, whatever the sheet says of its size."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer.excel import Kind, open_workbook
from importer.excel.chunking import MOST_PLACES
from tests.pure.excel.reading import read, refused
from tests.workbooks import parts, sheet_xml, write_workbook, zip_parts


def _name(column: int) -> str:
    """Give the letters of a column from 0."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def test_chunks_hold_at_most_the_rows_asked_for(tmp_path: Path) -> None:
    """Filled rows are dealt out in order; blank rows take no place."""
    rows = "".join(f'<row r="{2 * at}"><c r="A{2 * at}"><v>{at}</v></c></row><row/>' for at in range(1, 26))
    path = write_workbook(tmp_path / "a.xlsx", rows)

    with open_workbook(path) as workbook:
        chunks = list(workbook.chunks(workbook.sheets[0], rows=10))

    assert [len(chunk.rows) for chunk in chunks] == [10, 10, 5]
    assert [row for chunk in chunks for row in chunk.rows] == [2 * at for at in range(1, 26)]


def test_columns_are_those_filled_in_the_chunk(tmp_path: Path) -> None:
    """A column with no cell in a chunk is not in it; a blank cell has a null value."""
    rows = '<row r="1"><c r="A1"><v>1</v></c><c r="B1" s="0"/></row><row r="2"><c r="C2"><v>2</v></c></row>'
    path = write_workbook(tmp_path / "a.xlsx", rows)

    with open_workbook(path) as workbook:
        (chunk,) = workbook.chunks(workbook.sheets[0])

    assert sorted(chunk.columns) == [0, 2]
    assert chunk.columns[0].kind.to_list() == [Kind.NUMBER, Kind.BLANK]
    assert chunk.columns[0].value.to_list() == ["1", None]


def test_cells_scattered_over_the_grid_make_no_grid(tmp_path: Path) -> None:
    """One cell in each of many rows, each in another column: rows times columns stays bounded in every chunk."""
    count = 6_000
    rows = "".join(f'<row r="{at}"><c r="{_name(at % 5_000)}{at}"><v>{at}</v></c></row>' for at in range(1, count + 1))
    path = write_workbook(tmp_path / "a.xlsx", rows)

    with open_workbook(path) as workbook:
        chunks = list(workbook.chunks(workbook.sheets[0]))

    assert all(len(chunk.rows) * len(chunk.columns) <= MOST_PLACES for chunk in chunks)
    assert sum(len(chunk.rows) for chunk in chunks) == count


def test_the_declared_range_is_not_believed(tmp_path: Path) -> None:
    """A dimension of the whole grid, or of one cell, changes nothing, and neither do stray cells at the far corner."""
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    for dimension in ("A1:XFD1048576", "A1", "nonsense"):
        part = sheet_xml(rows, before=f'<dimension ref="{dimension}"/>')
        path = write_workbook(tmp_path / "a.xlsx", {"S": part})
        assert read(path) == [(1, 0, "number", "1"), (1_048_576, 16_383, "number", "2")]


def test_a_break_in_the_sheet_comes_after_the_chunks_before_it(tmp_path: Path) -> None:
    """Chunks before the break are yielded, then the workbook is refused."""
    rows = "".join(f'<row r="{at}"><c r="A{at}"><v>{at}</v></c></row>' for at in range(1, 200_001))
    made = parts(rows)
    made["xl/worksheets/sheet1.xml"] = str(made["xl/worksheets/sheet1.xml"])[:-200_000]
    path = zip_parts(tmp_path / "a.xlsx", made)

    with open_workbook(path) as workbook:
        chunks = workbook.chunks(workbook.sheets[0])
        first = next(chunks)

    assert len(first.rows) == 50_000
    assert refused(path).reason == "corrupt"


def test_what_stands_beside_the_cells_is_noted(tmp_path: Path) -> None:
    """Formulas, hidden rows and columns, and merged ranges are counted once the sheet was read to its end."""
    part = sheet_xml(
        '<row r="1" hidden="1"><c r="A1"><f>1+1</f><v>2</v></c></row><row r="2" hidden="true"/><row r="3" hidden="0"/>',
        before='<cols><col min="2" max="3" hidden="1"/><col min="4" max="4"/></cols>',
        after='<mergeCells count="1"><mergeCell ref="A5:C5"/></mergeCells>',
    )
    path = write_workbook(tmp_path / "a.xlsx", {"S": part})

    with open_workbook(path) as workbook:
        (sheet,) = workbook.sheets
        with pytest.raises(ValueError, match="not run to the end"):
            workbook.notes(sheet)
        list(workbook.chunks(sheet))
        notes = workbook.notes(sheet)

    assert (notes.formulas, notes.hidden_rows, notes.hidden_columns, notes.merged) == (1, 2, 2, ("A5:C5",))


def test_a_chart_sheet_has_no_rows(tmp_path: Path) -> None:
    """A sheet that holds no cells yields no chunk."""
    made = parts({"Chart": "<chartsheet/>"})
    made["xl/_rels/workbook.xml.rels"] = str(made["xl/_rels/workbook.xml.rels"]).replace("/worksheet", "/chartsheet", 1)

    assert read(zip_parts(tmp_path / "a.xlsx", made)) == []
