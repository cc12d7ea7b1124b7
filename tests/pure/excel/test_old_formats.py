"""xls and xlsb are read in a process of their own.

What the library cannot tell is said, and what breaks it is refused.
"""

from __future__ import annotations

import struct
from pathlib import Path

import psutil
import pytest

from importer import WorkbookError, read_cells, sheets
from importer.excel import Limits, open_workbook
from tests.workbooks import OFFICE, PACKAGE, relationships_xml, zip_parts

#: Written by LibreOffice: texts, numbers, days, moments, clock times, elapsed times, truth, errors, a hidden sheet.
XLS = Path(__file__).parent / "files" / "old.xls"


def test_an_xls_gives_kinds_and_values() -> None:
    """Errors are errors, days are days by their number format, a text of digits stays one."""
    cells = {(row, column): (kind, value) for row, column, kind, value in read_cells(XLS).rows()}

    assert [cells[2, column] for column in range(10)] == [
        ("text", "a\nb"),
        ("number", "1.5"),
        ("date", "2024-02-29"),
        ("datetime", "2024-02-29T12:30:01"),
        ("time", "12:30:00"),
        ("duration", "129600"),
        ("bool", "true"),
        ("error", "#DIV/0!"),
        ("number", "3"),
        ("number", "0.15"),
    ]
    assert cells[3, 1] == ("text", "00123")
    assert sheets(XLS).select("name", "visible").rows() == [("Data", True), ("Hidden", False)]


def test_what_stands_beside_the_cells_of_an_xls() -> None:
    """Hidden rows, merged ranges, and that formulas cannot be told from values."""
    with open_workbook(XLS) as workbook:
        list(workbook.chunks(workbook.sheets[0]))
        notes = workbook.notes(workbook.sheets[0])

    assert (notes.hidden_rows, notes.merged) == (1, ("A5:C6",))
    assert "formulas cannot be told" in notes.remarks[0]


def _record(kind: int, content: bytes = b"") -> bytes:
    """Give a record of an xlsb (MS-XLSB 2.1.4): type and size in seven bits a byte."""

    def varied(number: int) -> bytes:
        out = b""
        while number > 127:
            out += bytes([number & 127 | 128])
            number >>= 7
        return out + bytes([number])

    return varied(kind) + varied(len(content)) + content


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def _cell(kind: int, column: int, content: bytes) -> bytes:
    return _record(kind, struct.pack("<II", column, 0) + content)


def _row(number: int) -> bytes:
    return _record(0, struct.pack("<I", number) + bytes(13))


def xlsb(path: Path, cells: bytes, *, last_row: int = 2) -> Path:
    """Write an xlsb around the records of its sheet data."""
    sheet = (
        _record(129)
        + _record(148, struct.pack("<IIII", 0, last_row, 0, 3))
        + _record(145)
        + cells
        + _record(146)
        + _record(130)
    )
    book = _record(131) + _record(143) + _record(156, struct.pack("<II", 0, 1) + _wide("rId1") + _wide("Data"))
    return zip_parts(
        path,
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
            "_rels/.rels": relationships_xml({"r": (f"{OFFICE}/officeDocument", "xl/workbook.bin")}),
            "xl/workbook.bin": book + _record(144) + _record(132),
            "xl/_rels/workbook.bin.rels": relationships_xml({"rId1": (f"{OFFICE}/worksheet", "worksheets/sheet1.bin")}),
            "xl/worksheets/sheet1.bin": sheet,
        },
    )


def test_an_xlsb_gives_what_its_library_can_tell(tmp_path: Path) -> None:
    """Texts, numbers and truth with their rows; that errors come as blanks is said."""
    cells = (
        _row(0)
        + _cell(6, 0, _wide("00123"))
        + _cell(5, 1, struct.pack("<d", 12.5))
        + _row(2)
        + _cell(4, 0, b"\x01")
        + _cell(5, 1, struct.pack("<d", 7))
        + _cell(3, 2, b"\x2a")
    )
    path = xlsb(tmp_path / "a.xlsb", cells)

    with open_workbook(path) as workbook:
        list(workbook.chunks(workbook.sheets[0]))
        remarks = workbook.notes(workbook.sheets[0]).remarks

    assert read_cells(path).rows() == [
        (1, 0, "text", "00123"),
        (1, 1, "number", "12.5"),
        (3, 0, "bool", "true"),
        (3, 1, "number", "7"),
    ]
    assert "error" in remarks[0]


def test_a_stray_cell_that_breaks_the_library_refuses_the_workbook_only(tmp_path: Path) -> None:
    """The library asks for a grid up to that cell; its process ends, this one says what to do."""
    far = _row(1_048_575) + _cell(5, 16_383, struct.pack("<d", 1))
    path = xlsb(tmp_path / "a.xlsb", _row(0) + _cell(5, 0, struct.pack("<d", 1)) + far, last_row=1_048_575)

    with pytest.raises(WorkbookError, match="more memory") as refusal:
        read_cells(path)

    assert refusal.value.reason == "too_large"


def test_memory_is_bounded_by_a_limit() -> None:
    """A library that may have next to nothing cannot read anything."""
    with pytest.raises(WorkbookError) as refusal, open_workbook(XLS, limits=Limits(child_bytes=4096)) as workbook:
        list(workbook.chunks(workbook.sheets[0]))

    assert refusal.value.reason == "too_large"


def test_no_process_is_left_behind() -> None:
    """Closing ends it, also when the cells were never read."""
    before = {child.pid for child in psutil.Process().children()}

    with open_workbook(XLS) as workbook:
        during = {child.pid for child in psutil.Process().children()} - before
        assert workbook.format == "xls"

    assert len(during) == 1
    assert not any(psutil.pid_exists(pid) for pid in during)
