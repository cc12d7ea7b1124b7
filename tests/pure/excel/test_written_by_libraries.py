"""Workbooks that openpyxl and XlsxWriter write come back as they were."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import polars as pl
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st

from importer.excel import read_cells

Value = str | int | float | bool | dt.date | dt.datetime
#: what XML can hold and no library changes: openpyxl refuses control characters, XlsxWriter writes them escaped
TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Co", "Cn"), include_characters="\t\n"), min_size=1
).filter(lambda text: not text.startswith("=") and "_x" not in text and text not in {"TRUE", "FALSE"})
VALUES = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(10**14), 10**14),
    st.floats(-1e14, 1e14).map(lambda value: float(f"{value:.15g}")),  # the libraries write 16 digits
    st.dates(dt.date(1900, 3, 1), dt.date(9999, 12, 31)),
    st.datetimes(dt.datetime(1900, 3, 1), dt.datetime(9999, 12, 30)).map(lambda at: at.replace(microsecond=0)),  # noqa: DTZ001
)
GRIDS = st.lists(st.lists(st.one_of(st.none(), VALUES), max_size=8), max_size=12)


def _with_openpyxl(path: Path, grid: list[list[Value | None]]) -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    for row, cells in enumerate(grid, 1):
        for column, value in enumerate(cells, 1):
            cell = sheet.cell(row, column)
            cell.value = value
            if isinstance(value, str):
                cell.data_type = "s"  # or "#N/A" would become an error
    workbook.save(path)
    workbook.close()


def _with_openpyxl_streamed(path: Path, grid: list[list[Value | None]]) -> None:
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet("Sheet")
    for cells in grid:
        sheet.append([value if not str(value).startswith("#") else f" {value}" for value in cells])
    workbook.save(path)
    workbook.close()


def _with_xlsxwriter(path: Path, grid: list[list[Value | None]]) -> None:
    _xlsxwriter(path, grid, {})


def _with_xlsxwriter_streamed(path: Path, grid: list[list[Value | None]]) -> None:
    _xlsxwriter(path, grid, {"constant_memory": True})


def _xlsxwriter(path: Path, grid: list[list[Value | None]], options: dict[str, bool]) -> None:
    with xlsxwriter.Workbook(path, options) as workbook:
        day, moment = (
            workbook.add_format({"num_format": "yyyy-mm-dd"}),
            workbook.add_format({"num_format": "d/m/yy h:mm:ss"}),
        )
        sheet = workbook.add_worksheet()
        for row, cells in enumerate(grid):
            for column, value in enumerate(cells):
                match value:
                    case None:
                        pass
                    case str():
                        sheet.write_string(row, column, value)
                    case bool():
                        sheet.write_boolean(row, column, value)
                    case dt.datetime():
                        sheet.write_datetime(row, column, value, moment)
                    case dt.date():
                        sheet.write_datetime(row, column, value, day)
                    case _:
                        sheet.write_number(row, column, value)


def _expected(value: Value) -> tuple[str, Value]:
    match value:
        case str():
            return "text", value
        case bool():
            return "bool", value
        case dt.datetime():
            return "datetime", value
        case dt.date():
            return "date", value
        case _:
            return "number", float(value)


def _meant(kind: str, value: str) -> tuple[str, Value]:
    match kind:
        case "bool":
            return kind, value == "true"
        case "datetime":
            return kind, dt.datetime.fromisoformat(value)
        case "date":
            return kind, dt.date.fromisoformat(value)
        case "number":
            return kind, float(value)
        case _:
            return kind, value


@pytest.mark.parametrize("write", [_with_openpyxl, _with_xlsxwriter, _with_xlsxwriter_streamed])
@given(grid=GRIDS)
@settings(max_examples=15, deadline=None)
def test_what_a_library_wrote_is_read(
    write: Callable[[Path, list[list[Value | None]]], None], grid: list[list[Value | None]]
) -> None:
    """Text, numbers, booleans, days and moments come back with their kind, in their place."""
    expected = {
        (row, column): _expected(value)
        for row, cells in enumerate(grid, 1)
        for column, value in enumerate(cells)
        if value is not None
    }

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.xlsx"
        write(path, grid)
        found = {(row, column): _meant(kind, value) for row, column, kind, value in read_cells(path).rows()}

    assert found == expected


def test_a_streamed_sheet_of_openpyxl_is_read(tmp_path: Path) -> None:
    """Inline strings, and rows whose cells have no style."""
    path = tmp_path / "a.xlsx"
    _with_openpyxl_streamed(path, [["code", "day"], ["A1", dt.date(2024, 2, 29)], [None, 1.5]])

    assert read_cells(path).select(pl.exclude("kind")).rows() == [
        (1, 0, "code"),
        (1, 1, "day"),
        (2, 0, "A1"),
        (2, 1, "2024-02-29"),
        (3, 1, "1.5"),
    ]


def test_formulas_of_openpyxl_were_never_calculated(tmp_path: Path) -> None:
    """A formula of openpyxl has no result; XlsxWriter writes 0 unless it is told one."""
    path = tmp_path / "a.xlsx"
    workbook = openpyxl.Workbook()
    assert workbook.active is not None
    workbook.active["A1"] = "=1+1"
    workbook.save(path)
    workbook.close()

    assert read_cells(path).rows() == [(1, 0, "uncalculated", "=1+1")]


def test_control_characters_of_xlsxwriter_come_back(tmp_path: Path) -> None:
    """XlsxWriter writes them as `_xHHHH_`, and what looks like an escape is escaped itself."""
    path = tmp_path / "a.xlsx"
    texts = ["a\rb", "_x000D_", "\x0b", "line\nbreak", "_x005F_"]
    with xlsxwriter.Workbook(path) as workbook:
        workbook.add_worksheet().write_column(0, 0, texts)

    assert read_cells(path)["value"].to_list() == texts
