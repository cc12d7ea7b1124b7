"""Where in a workbook a form is read: sheet, Excel table, header of two rows, merged cells. With real workbooks."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from importer.errors import WorkbookError
from importer.excel import open_workbook
from importer.forms import Form, LeftOut, read_rows
from tests.pure.forms.handmade import form

CREW = (
    {"name": "site", "title": "Site", "type": "text", "required": True},
    {"name": "size", "title": "Crew / Size", "type": "integer"},
    {"name": "hours", "title": "crew/HOURS", "type": "integer"},
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a workbook with a two-row header and merged cells in one sheet, an Excel table in another."""
    path = tmp_path_factory.mktemp("place") / "crews.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        crews = workbook.add_worksheet("Crews")
        crews.write("A1", "All crews")
        crews.merge_range("A3:A4", "Site")
        crews.merge_range("B3:C3", "Crew")
        crews.write_row("B4", ["Size", "Hours"])
        crews.merge_range("A5:A7", "North")
        for row in (4, 5, 6):
            crews.write_row(row, 1, [row, 8])
        crews.write("A8", "South")
        crews.merge_range("B8:C8", 5)
        crews.merge_range("A9:A10", "West")
        crews.write("B9", 1)
        data = workbook.add_worksheet("Data")
        data.write("A2", "above")
        data.write("H6", "beside")
        data.write("A12", "below")
        titles = [{"header": "Code", "total_string": "Total"}, {"header": "Qty", "total_function": "sum"}]
        options = {"name": "Reports", "total_row": True, "data": [["a", 1], ["b", 2]], "columns": titles}
        data.add_table("B4:C7", options)
        workbook.add_chartsheet("Chart").set_chart(_chart(workbook))
    return path


def _chart(workbook: xlsxwriter.Workbook) -> object:
    chart = workbook.add_chart({"type": "line"})
    chart.add_series({"values": "=Crews!$B$5:$B$7"})
    return chart


def _read(path: Path, read_as: Form, chunk_rows: int = 50_000) -> tuple[list[tuple[object, ...]], list[int], LeftOut]:
    """Give accepted rows, rows with faults, and what was left out."""
    with open_workbook(path) as workbook:
        reading = read_rows(workbook, read_as, chunk_rows=chunk_rows)
        parts = list(reading)
    accepted = [row for part in parts for row in part.accepted.rows()]
    return accepted, [row for part in parts for row in part.faults["source_row"]], reading.left_out


@pytest.mark.parametrize("where", [{}, {"header_row": 3}], ids=["found", "declared"])
def test_a_header_of_two_rows_joins_groups_with_their_columns(path: Path, where: dict[str, int]) -> None:
    """A heading merged over several columns goes before each of them; one merged downwards stands alone."""
    accepted, faulty, left_out = _read(path, form(*CREW, header_rows=2, **where))

    assert accepted == [(5, "North", 4, 8), (8, "South", 5, None), (9, "West", 1, None)]
    assert faulty == [6, 7]
    assert left_out.rows_above == (1,)


@pytest.mark.parametrize("chunk_rows", [1, 2, 50_000])
def test_merged_cells_are_filled_where_the_form_says_so(path: Path, chunk_rows: int) -> None:
    """Down and across, over the borders of chunks; a row that has nothing of its own does not come to be."""
    accepted, faulty, left_out = _read(path, form(*CREW, header_rows=2, merged="fill"), chunk_rows)

    assert accepted == [
        (5, "North", 4, 8),
        (6, "North", 5, 8),
        (7, "North", 6, 8),
        (8, "South", 5, 5),
        (9, "West", 1, None),
    ]
    assert faulty == []
    assert "each cell with the value of the first" in str(left_out)


@pytest.mark.parametrize("options", [{}, {"sheet": "data"}, {"sheet": 1}], ids=str)
def test_a_table_is_read_by_its_name_and_nothing_about_it(path: Path, options: dict[str, object]) -> None:
    """Rows above and below, the totals row and columns beside are left out, and said to be."""
    table = form({"name": "code", "type": "text"}, {"name": "qty", "type": "integer"}, table_range="REPORTS", **options)

    accepted, _, left_out = _read(path, table)

    assert accepted == [(5, "a", 1), (6, "b", 2)]
    assert (left_out.rows_above, left_out.rows_below, left_out.columns_beside) == ((2,), 2, ("H",))


@pytest.mark.parametrize(
    ("options", "reason", "named"),
    [
        ({"sheet": "Crew"}, "sheet_not_found", ("Crew", "Crews", "Data")),
        ({"sheet": 9}, "sheet_not_found", ("position 9", "Crews")),
        ({"sheet": "chart"}, "sheet_not_found", ("Chart", "chart")),
        ({"table_range": "Stock"}, "sheet_not_found", ("Stock", "Reports", "Data")),
        ({"table_range": "Reports", "sheet": "Crews"}, "sheet_not_found", ("Reports", "Crews")),
    ],
    ids=str,
)
def test_a_place_that_is_not_there_is_refused_naming_those_that_are(
    path: Path, options: dict[str, object], reason: str, named: tuple[str, ...]
) -> None:
    """The message holds what was looked for and what there is."""
    with open_workbook(path) as workbook, pytest.raises(WorkbookError) as refused:
        read_rows(workbook, form({"name": "c", "type": "text"}, **options))

    assert refused.value.reason == reason
    assert all(word in str(refused.value) for word in named)


def test_sheets_are_named_as_excel_compares_names(path: Path) -> None:
    """Case does not matter, and a position counts all sheets from 0."""
    code = form({"name": "code", "type": "text"}, sheet="DATA", header_row=4)

    by_name, by_position = (
        _read(path, Form.from_dict({**code.to_dict(), "sheet": sheet}))[0] for sheet in ("dATA ", 1)
    )

    assert by_name == by_position
    assert by_name[0] == (5, "a")


def test_the_first_visible_worksheet_is_the_default(tmp_path: Path) -> None:
    """Hidden sheets and charts before it are passed over, and named as not read."""
    file = tmp_path / "hidden.xlsx"
    with xlsxwriter.Workbook(file) as workbook:
        hidden, shown = workbook.add_worksheet("Lists"), workbook.add_worksheet("Report")
        hidden.hide()
        shown.activate()
        shown.set_first_sheet()
        shown.write_column("A1", ["c", "x"])

    accepted, _, left_out = _read(file, form({"name": "c", "type": "text"}))

    assert accepted == [(2, "x")]
    assert left_out.other_sheets == ("Lists",)
