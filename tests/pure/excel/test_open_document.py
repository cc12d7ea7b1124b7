"""OpenDocument spreadsheets give the same kinds and values as xlsx: what the file says, nothing guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer import WorkbookError, read_cells, sheets
from importer.excel import Limits, open_workbook
from tests.workbooks import zip_parts

MIMETYPE = "application/vnd.oasis.opendocument.spreadsheet"
_NAMES = {
    "office": "office:1.0",
    "table": "table:1.0",
    "text": "text:1.0",
    "style": "style:1.0",
    "number": "datastyle:1.0",
    "dc": "dc",
}
HEAD = (
    "<office:document-content "
    + " ".join(f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}"' for prefix, name in _NAMES.items())
    + ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0">'
)
STYLES = (
    "<office:automatic-styles>"
    '<number:time-style style:name="N1" number:truncate-on-overflow="false"/>'
    '<style:style style:name="ce1" style:family="table-cell" style:data-style-name="N1"/>'
    '<style:style style:name="off" style:family="table"><style:table-properties table:display="false"/></style:style>'
    "</office:automatic-styles>"
)


def document(path: Path, rows: str, *, more: str = "", mimetype: str = MIMETYPE, **parts: str) -> Path:
    """Write an ods around the rows of its first sheet."""
    content = (
        f'{HEAD}{STYLES}<office:body><office:spreadsheet><table:table table:name="Data">{rows}</table:table>{more}'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    return zip_parts(path, {"mimetype": mimetype, "content.xml": content, **parts})


def row(*cells: str, **attributes: str) -> str:
    """Give a row."""
    written = "".join(f' table:{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f"<table:table-row{written}>{''.join(cells)}</table:table-row>"


def cell(attributes: str = "", inner: str = "") -> str:
    """Give a cell."""
    return f"<table:table-cell {attributes}>{inner}</table:table-cell>"


def p(text: str) -> str:
    """Give a paragraph."""
    return f"<text:p>{text}</text:p>"


ONE = 'office:value-type="float" office:value="1"'

KINDS = {
    "number": (cell('office:value-type="float" office:value="1.50"', p("1,5")), ("number", "1.50")),
    "percentage": (cell('office:value-type="percentage" office:value="0.15"', p("15%")), ("number", "0.15")),
    "currency": (cell('office:value-type="currency" office:value="3"', p("3 €")), ("number", "3")),
    "text": (cell('office:value-type="string"', p("a") + p("b")), ("text", "a\nb")),
    "spaces": (
        cell('office:value-type="string"', p('x<text:s text:c="2"/>y<text:tab/>z<text:line-break/>')),
        ("text", "x  y\tz\n"),
    ),
    "spans": (cell('office:value-type="string"', p("<text:span>bo</text:span>ld")), ("text", "bold")),
    "string value": (cell('office:value-type="string" office:string-value="meant"', p("shown")), ("text", "meant")),
    "day": (cell('office:value-type="date" office:date-value="2024-02-29"', p("29.2.")), ("date", "2024-02-29")),
    "moment": (
        cell('office:value-type="date" office:date-value="2024-02-29T12:30:01"', p("x")),
        ("datetime", "2024-02-29T12:30:01"),
    ),
    "clock": (cell('office:value-type="time" office:time-value="PT12H30M00S"', p("x")), ("time", "12:30:00")),
    "elapsed": (
        cell('table:style-name="ce1" office:value-type="time" office:time-value="PT00H01M30S"', p("x")),
        ("duration", "90"),
    ),
    "36 hours": (cell('office:value-type="time" office:time-value="PT36H00M00S"', p("x")), ("duration", "129600")),
    "truth": (cell('office:value-type="boolean" office:boolean-value="true"', p("WAHR")), ("bool", "true")),
    "truth as a formula": (
        cell('table:formula="of:=TRUE()" office:value-type="float" office:value="1"', p("TRUE")),
        ("bool", "true"),
    ),
    "error": (
        cell('table:formula="of:=1/0" office:value-type="string" calcext:value-type="error"', p("#DIV/0!")),
        ("error", "#DIV/0!"),
    ),
    "the word of an error": (cell('office:value-type="string"', p("#N/A")), ("text", "#N/A")),
    "calculated": (
        cell('table:formula="of:=[.A1]" office:value-type="float" office:value="7"', p("7")),
        ("number", "7"),
    ),
    "never calculated": (cell('table:formula="of:=[.A1]+1"'), ("uncalculated", "=[.A1]+1")),
    "comment": (
        cell('office:value-type="string"', f"<office:annotation>{p('by the way')}</office:annotation>{p('said')}"),
        ("text", "said"),
    ),
    "no number": (cell('office:value-type="float" office:value="many"', p("many")), ("broken", "many")),
    "no day": (cell('office:value-type="date" office:date-value="29.2.2024"', p("x")), ("broken", "29.2.2024")),
}


@pytest.mark.parametrize(("written", "expected"), KINDS.values(), ids=KINDS.keys())
def test_a_cell_has_the_kind_the_file_says(tmp_path: Path, written: str, expected: tuple[str, str]) -> None:
    """A comment is no text, a shown text is no value, an empty formula is no blank."""
    path = document(tmp_path / "a.ods", row(cell(), written))

    assert read_cells(path).rows() == [(1, 1, *expected)]


@pytest.mark.parametrize(
    "blank",
    [cell(), cell('office:value-type="string"', p("")), cell('table:formula="of:=&quot;&quot;"', "<text:p/>")],
)
def test_a_cell_without_content_is_blank(tmp_path: Path, blank: str) -> None:
    """A calculated "" is blank as well."""
    assert read_cells(document(tmp_path / "a.ods", row(blank))).is_empty()


def test_repeats_cost_only_what_they_hold(tmp_path: Path) -> None:
    """A million blank rows are nothing; filled ones stand in every place they say."""
    filled = cell('office:value-type="float" office:value="1" table:number-columns-repeated="2"', p("1"))
    rows = (
        row(filled, cell('table:number-columns-repeated="16382"'), number_rows_repeated="3")
        + row(cell('table:number-columns-repeated="16384"'), number_rows_repeated="1000")
        + row(filled)
        + row(cell('table:number-columns-repeated="16384"'), number_rows_repeated="1047572")
    )
    path = document(tmp_path / "a.ods", rows)

    assert read_cells(path)["row"].to_list() == [1, 1, 2, 2, 3, 3, 1004, 1004]


@pytest.mark.parametrize(
    "rows",
    [
        row(cell('office:value-type="float" office:value="1"'), number_rows_repeated="99999999"),
        row(cell('office:value-type="float" office:value="1" table:number-columns-repeated="99999"')),
        row(
            cell('office:value-type="float" office:value="1" table:number-columns-repeated="500"'),
            number_rows_repeated="1000000",
        ),
    ],
)
def test_repeats_without_end_are_refused(tmp_path: Path, rows: str) -> None:
    """Before anything of that size is built."""
    with pytest.raises(WorkbookError) as refusal:
        read_cells(document(tmp_path / "a.ods", rows))

    assert refusal.value.reason == "too_large"


def test_sheets_and_what_stands_beside_the_cells(tmp_path: Path) -> None:
    """Hidden sheets, hidden rows, merged ranges, formulas; a table within a cell belongs to no sheet."""
    merged = cell(
        'office:value-type="string" table:number-columns-spanned="3" table:number-rows-spanned="2"',
        p("m") + "<table:table><table:table-row><table:table-cell/></table:table-row></table:table>",
    )
    rows = row(merged) + row(
        cell('table:formula="of:=1" office:value-type="float" office:value="1"'), visibility="collapse"
    )
    path = document(tmp_path / "a.ods", rows, more='<table:table table:name="Off" table:style-name="off"/>')

    with open_workbook(path) as workbook:
        list(workbook.chunks(workbook.sheets[0]))
        notes = workbook.notes(workbook.sheets[0])

    assert sheets(path).select("name", "visible").rows() == [("Data", True), ("Off", False)]
    assert (notes.merged, notes.formulas, notes.hidden_rows) == (("A1:C2",), 1, 1)


def test_a_password_and_a_document_type_are_refused(tmp_path: Path) -> None:
    """Each with its reason."""
    locked = document(tmp_path / "a.ods", "", **{"META-INF/manifest.xml": "<manifest:encryption-data/>"})
    hostile = zip_parts(tmp_path / "b.ods", {"mimetype": MIMETYPE, "content.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x/>'})

    for path, reason in [(locked, "encrypted"), (hostile, "unsafe_xml")]:
        with pytest.raises(WorkbookError) as refusal:
            read_cells(path)
        assert refusal.value.reason == reason


def test_limits_hold(tmp_path: Path) -> None:
    """Cells and characters are counted as in every format."""
    path = document(tmp_path / "a.ods", row(*[cell('office:value-type="string"', p("abc"))] * 5))

    for limits in (Limits(cells=4), Limits(columns=4), Limits(cell_characters=2)):
        with pytest.raises(WorkbookError) as refusal, open_workbook(path, limits=limits) as workbook:
            list(workbook.chunks(workbook.sheets[0]))
        assert refusal.value.reason == "too_large"
