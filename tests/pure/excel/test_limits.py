"""A file made to do harm is refused by a limit, before what it asks for is built."""

from __future__ import annotations

import dataclasses
import struct
import zipfile
from pathlib import Path

import pytest

from importer.excel import Limits
from tests.pure.excel.reading import read, refused
from tests.workbooks import parts, sheet_xml, write_workbook, zip_parts

CELL = "<c><v>1</v></c>"
SMALL = {
    # the limit set low, the rows that pass it, and what the message must say
    "part_bytes": ({"part_bytes": 1_000}, f"<row>{CELL * 100}</row>", "unpacks to"),
    "total_bytes": ({"total_bytes": 1_000}, f"<row>{CELL * 100}</row>", "unpacks to"),
    "ratio": ({"ratio": 10, "ratio_from_bytes": 1_000}, f"<row>{CELL * 5_000}</row>", "more than any real sheet"),
    "entries": ({"entries": 3}, "", "entries"),
    "name_characters": ({"name_characters": 5}, "", "name"),
    "sheets": ({"sheets": 0}, "", "sheets"),
    "rows": ({"rows": 9}, '<row r="10"/>', "row 10"),
    "rows without numbers": ({"rows": 9}, "<row/>" * 10, "row 10"),
    "columns": ({"columns": 26}, '<row r="1"><c r="AA1"/></row>', "column 27"),
    "columns without names": ({"columns": 26}, f"<row>{'<c/>' * 27}</row>", "column 27"),
    "cells": ({"cells": 9}, f"<row>{'<c/>' * 10}</row>", "cells"),
    "cell_characters": ({"cell_characters": 9}, '<row><c t="str"><v>0123456789</v></c></row>', "characters"),
    "nesting": ({"nesting": 9}, "<row>" + "<a>" * 9 + "</a>" * 9 + "</row>", "nests"),
    "shared_strings": ({"shared_strings": 1}, "", "shared strings"),
    "cell_formats": ({"cell_formats": 1}, "", "cell formats"),
    "tag_bytes": ({"tag_bytes": 1_000}, f'<row r="1"><c a="{"x" * 9_000}"/></row>', "tag"),
}


@pytest.mark.parametrize(("changes", "rows", "says"), SMALL.values(), ids=SMALL.keys())
def test_each_limit_refuses_what_passes_it(tmp_path: Path, changes: dict[str, int], rows: str, says: str) -> None:
    """What is beyond a limit is `too_large`, and the message says what was too much."""
    row = f'{rows}<row r="100"><c t="s"><v>0</v></c></row>' if "rows" not in changes else rows
    path = write_workbook(tmp_path / "a.xlsx", row, strings=["a", "b"], formats=["0"])

    error = refused(path, limits=dataclasses.replace(Limits(), **changes))

    assert error.reason == "too_large"
    assert says in str(error)


def test_a_document_type_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    """No entity is ever expanded, because no part with a document type is read at all."""
    bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    row = '<row r="1"><c t="s"><v>0</v></c></row>'
    for part in ("xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml", "xl/workbook.xml", "_rels/.rels"):
        made = parts(row, strings=["&b;"])
        made[part] = str(made[part]).replace("?>\n", "?>\n" + bomb)
        assert refused(zip_parts(tmp_path / "a.xlsx", made)).reason == "unsafe_xml"


def test_an_archive_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    """200 MB of one repeated cell come from some 200 kB: no real sheet is like that."""
    path = write_workbook(tmp_path / "a.xlsx", "<row>" + "<c/>" * 50_000_000 + "</row>")

    error = refused(path)

    assert error.reason == "too_large"
    assert path.stat().st_size < 1_000_000


def test_an_archive_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    """Inflating stops at the size the archive declares."""
    path = write_workbook(tmp_path / "a.xlsx", f"<row>{CELL * 1000}</row>")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    at = content.find(struct.pack("<I", sizes["xl/worksheets/sheet1.xml"]), content.find(b"PK\x01\x02"))
    struct.pack_into("<I", content, at, 100)
    path.write_bytes(content)

    error = refused(path)

    assert error.reason == "corrupt"
    assert "more than the archive says" in str(error)


def test_entries_that_share_bytes_are_refused(tmp_path: Path) -> None:
    """Many entries over the same bytes unpack to much more than the file holds."""
    path = write_workbook(tmp_path / "a.xlsx", f"<row>{CELL}</row>")
    content = bytearray(path.read_bytes())
    first = content.find(b"PK\x01\x02")
    second = content.find(b"PK\x01\x02", first + 1)
    content[second + 42 : second + 46] = content[first + 42 : first + 46]
    path.write_bytes(content)

    error = refused(path)

    assert error.reason == "too_large"
    assert "overlaps" in str(error)


def test_a_directory_of_millions_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """The number of entries stands at the end of the file and is looked at first."""
    path = write_workbook(tmp_path / "a.xlsx", "")
    content = bytearray(path.read_bytes())
    struct.pack_into("<H", content, content.rfind(b"PK\x05\x06") + 10, 60_000)
    path.write_bytes(content)

    assert refused(path).reason == "too_large"


def test_real_shapes_pass_the_defaults(tmp_path: Path) -> None:
    """A long text, many blank styled cells and rows without cells are ordinary."""
    rows = (
        '<row r="1"><c t="str"><v>' + "x" * 32_767 + "</v></c></row>" + '<row r="2">' + '<c s="1"/>' * 16_384 + "</row>"
    )
    part = sheet_xml(rows + "".join(f'<row r="{at}" ht="15"/>' for at in range(3, 1_000)))

    assert [len(value) for *_, value in read(write_workbook(tmp_path / "a.xlsx", {"S": part}))] == [32_767]
