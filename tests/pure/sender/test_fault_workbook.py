"""The fault workbook: the sender's own with its bad cells marked, and the small one with the failed rows alone."""

from __future__ import annotations

import zipfile
from pathlib import Path

import openpyxl
import polars as pl
import pytest

import importer as im
from importer.excel import open_workbook
from importer.forms.stamped import origins, stamp_of
from tests.pure.sender.samples import FORM, SOFFICE, converted, write_report
from tests.workbooks import sheet_xml, write_workbook

BAD = "FFFFC7CE"
SMALL_FORM = im.Form.from_dict(
    {
        "name": "few",
        "table": "few",
        "columns": [
            {"name": "a", "title": "A", "type": "text", "required": True},
            {"name": "b", "title": "B", "type": "integer"},
        ],
    }
)


def test_bad_cells_are_coloured_and_noted_and_no_other(tmp_path: Path) -> None:
    """Exactly the cells with a fault are coloured, each with a note that says what is expected and what was found."""
    report = _marked(tmp_path)

    sheet = openpyxl.load_workbook(tmp_path / "marked.xlsx")["Report"]
    coloured = {(c.row, c.coordinate[0]) for row in sheet.iter_rows() for c in row if c.fill.fgColor.rgb == BAD}
    assert coloured == {(4, "B"), (4, "E"), (9, "B"), (9, "E")}
    assert report.faults.height == len(coloured)
    assert "DD/MM/YYYY" in sheet["B4"].comment.text
    assert "Found: yesterday" in sheet["B4"].comment.text
    assert 'did you mean "rain"?' in sheet["E9"].comment.text


def test_every_other_part_stays_byte_for_byte(tmp_path: Path) -> None:
    """Charts, drawings, other sheets, shared strings and themes are the sender's own, untouched."""
    _marked(tmp_path)

    before, after = _parts(tmp_path / "march.xlsx"), _parts(tmp_path / "marked.xlsx")
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed == {
        "[Content_Types].xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml",
        "xl/worksheets/sheet1.xml", "xl/comments1.xml", "xl/drawings/vmlDrawing1.vml",
    }  # fmt: skip


def test_looks_formulas_merges_notes_and_filters_of_the_sheet_are_kept(tmp_path: Path) -> None:
    """The marked sheet differs from the sent one by colour and note only."""
    _marked(tmp_path)

    before = openpyxl.load_workbook(tmp_path / "march.xlsx")["Report"]
    after = openpyxl.load_workbook(tmp_path / "marked.xlsx")["Report"]
    assert [[c.value for c in row[:7]] for row in after.iter_rows()] == [
        [c.value for c in r] for r in before.iter_rows()
    ]
    assert after["D4"].number_format == before["D4"].number_format
    assert after["B5"].number_format == before["B5"].number_format
    assert str(after.merged_cells) == str(before.merged_cells)
    assert after.auto_filter.ref == before.auto_filter.ref
    assert after["A3"].comment.text.startswith("ask the office")
    assert after.column_dimensions["A"].width == before.column_dimensions["A"].width


def test_the_list_of_faults_links_to_each_cell_and_holds_no_formula(tmp_path: Path) -> None:
    """The sheet Faults has a line with a link for each bad cell; texts that look like formulas are texts."""
    report = im.check(write_report(tmp_path / "march.xlsx"), FORM)
    odd = report.faults.with_columns(value=pl.lit("=cmd|'/c calc'!A1"))
    report = im.CheckReport(**{**vars(report), "faults": odd})

    report.workbook(tmp_path / "marked.xlsx")

    listed = openpyxl.load_workbook(tmp_path / "marked.xlsx")["Faults"]
    rows = list(listed.iter_rows(min_row=6, values_only=False))
    assert [getattr(row[5].hyperlink, "location", None) for row in rows] == [
        "'Report'!B4",
        "'Report'!E4",
        "'Report'!B9",
        "'Report'!E9",
    ]
    assert all(row[3].data_type != "f" and str(row[3].value).startswith("=cmd") for row in rows)
    assert b"<f>" not in _parts(tmp_path / "marked.xlsx")["xl/worksheets/rowlease1.xml"]


def test_the_identity_is_hidden_in_the_workbook(tmp_path: Path) -> None:
    """The stamp names the form, and each failed row carries where it stood; neither is a column or sheet left out."""
    _marked(tmp_path)

    with open_workbook(tmp_path / "marked.xlsx") as workbook:
        stamp = stamp_of(workbook)
        rows = origins(workbook, workbook.sheets[0])
    again = im.check(tmp_path / "marked.xlsx", FORM)
    assert stamp is not None
    assert (stamp.kind, stamp.form) == ("faults", "site_report")
    assert {row: origin.source_row for row, origin in rows.items()} == {4: 4, 9: 9}
    assert again.left_out.unknown_columns == ('G "own"',)
    assert again.left_out.other_sheets == ("Chart",)
    assert openpyxl.load_workbook(tmp_path / "marked.xlsx")["Report"].column_dimensions["H"].hidden


def test_a_marked_workbook_has_the_same_rows_and_faults(tmp_path: Path) -> None:
    """Sent back as it is, it reads as the original did."""
    report = _marked(tmp_path)

    again = im.check(tmp_path / "marked.xlsx", FORM)

    assert again.accepted.equals(report.accepted)
    assert again.faults.equals(report.faults)


def test_a_marked_workbook_can_be_marked_again(tmp_path: Path) -> None:
    """A second round finds the column of origins and does not add another."""
    _marked(tmp_path)

    im.check(tmp_path / "marked.xlsx", FORM).workbook(tmp_path / "again.xlsx")

    again = im.check(tmp_path / "again.xlsx", FORM)
    assert again.left_out.unknown_columns == ('G "own"',)
    assert again.faults.height == 4
    assert im.sheets(tmp_path / "again.xlsx")["name"].to_list() == ["Report", "Chart", "Faults", "_rowlease"]


def test_a_template_that_was_filled_in_gets_the_stamp_of_its_faults(tmp_path: Path) -> None:
    """There is one stamp in a workbook, the newest; the guidance stays."""
    path = FORM.template(tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(path)
    book["Report"].append(["ABC1234", "tomorrow"])
    book.save(path)

    im.check(path, FORM).workbook(tmp_path / "marked.xlsx")

    with open_workbook(tmp_path / "marked.xlsx") as workbook:
        stamp = stamp_of(workbook)
        names = [sheet.name for sheet in workbook.sheets]
    assert stamp is not None
    assert stamp.kind == "faults"
    assert sorted(names) == ["Faults", "How to fill in", "Report", "_rowlease", "_rowlease_lists"]


def test_only_the_failed_rows(tmp_path: Path) -> None:
    """The small workbook has the titles and cells of the failed rows, typed as they were, and reads the same faults."""
    report = im.check(write_report(tmp_path / "march.xlsx"), FORM)

    report.workbook(tmp_path / "small.xlsx", only_failed=True)

    again = im.check(tmp_path / "small.xlsx", FORM)
    assert again.rows == 2
    assert again.faults.select("column", "rule", "value").equals(report.faults.select("column", "rule", "value"))
    sheet = openpyxl.load_workbook(tmp_path / "small.xlsx")["Report"]
    assert [cell.value for cell in sheet[3]][:6] == ["ABC1004", "yesterday", 4, 14.5, "rian", "=1+1"]
    assert sheet["F3"].data_type == "s"
    assert sheet["B3"].comment is not None


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_rows_and_cells_that_the_file_leaves_out_are_marked_too(tmp_path: Path) -> None:
    """A required cell that is not in the file at all, rows without numbers, cells without references."""
    rows = (
        '<row><c t="inlineStr"><is><t>A</t></is></c><c t="inlineStr"><is><t>B</t></is></c></row>'
        '<row><c t="inlineStr"><is><t>x</t></is></c><c><v>1</v></c></row>'
        '<row spans="2:2"><c r="B3"><v>1.5</v></c></row>'
    )
    path = write_workbook(tmp_path / "bare.xlsx", rows)

    im.check(path, SMALL_FORM).workbook(tmp_path / "marked.xlsx")

    sheet = openpyxl.load_workbook(tmp_path / "marked.xlsx")["Sheet1"]
    assert [sheet["A3"].fill.fgColor.rgb, sheet["B3"].fill.fgColor.rgb] == [BAD, BAD]
    assert sheet["A3"].comment is not None
    assert sheet["A1"].value == "A"


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_a_column_element_that_spans_the_sheet_is_split(tmp_path: Path) -> None:
    """The hidden column is cut out of a range of columns; overlapping ranges would be a broken file."""
    rows = '<row r="1"><c r="A1" t="inlineStr"><is><t>A</t></is></c></row><row r="2"><c r="A2"><v>3.5</v></c></row>'
    wide = sheet_xml(rows, before='<cols><col min="1" max="16384" width="12"/></cols>')
    path = write_workbook(tmp_path / "wide.xlsx", {"Sheet1": wide})
    form = im.Form.from_dict({"name": "a", "table": "a", "columns": [{"name": "a", "title": "A", "type": "integer"}]})

    im.check(path, form).workbook(tmp_path / "marked.xlsx")

    dimensions = openpyxl.load_workbook(tmp_path / "marked.xlsx")["Sheet1"].column_dimensions
    assert dimensions["B"].hidden
    assert (dimensions["A"].min, dimensions["A"].max) == (1, 1)
    assert (dimensions["C"].min, dimensions["C"].max, dimensions["C"].width) == (3, 16384, 12)


def test_a_workbook_that_moved_is_an_error(tmp_path: Path) -> None:
    """The marks are for the very file that was checked."""
    report = im.check(write_report(tmp_path / "march.xlsx"), FORM)
    (tmp_path / "march.xlsx").unlink()

    with pytest.raises(im.WorkbookError):
        report.workbook(tmp_path / "marked.xlsx")

    assert not (tmp_path / "marked.xlsx").exists()


@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_opens_both_and_keeps_the_notes(tmp_path: Path) -> None:
    """Another application opens what we wrote without repair: notes, colours and charts are there."""
    _marked(tmp_path)
    im.check(tmp_path / "march.xlsx", FORM).workbook(tmp_path / "small.xlsx", only_failed=True)
    (tmp_path / "out").mkdir()

    marked = openpyxl.load_workbook(converted(tmp_path / "marked.xlsx", tmp_path / "out"))
    small = openpyxl.load_workbook(converted(tmp_path / "small.xlsx", tmp_path / "out"))

    assert marked["Report"]["B4"].comment is not None
    assert marked["Report"]["A3"].comment is not None
    assert marked["Report"]["B4"].fill.fgColor.rgb == BAD
    assert marked["Faults"].max_row == 9
    assert any("chart" in name for name in _parts(tmp_path / "out" / "marked.xlsx"))
    assert small["Report"]["B3"].comment is not None


def _marked(folder: Path) -> im.CheckReport:
    report = im.check(write_report(folder / "march.xlsx"), FORM)
    report.workbook(folder / "marked.xlsx")
    return report


def _parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as package:
        return {name: package.read(name) for name in package.namelist()}
