"""The template: what a sender sees, and what becomes of it when it comes back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import openpyxl
import pytest
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

import importer as im
from importer.excel import open_workbook
from importer.forms.plain_words import example, rules
from importer.forms.stamped import stamp_of
from tests.pure.sender.samples import FORM, SOFFICE, converted

HEADER = 4


def test_a_template_has_the_titles_notes_formats_and_dropdowns_of_its_form(tmp_path: Path) -> None:
    """Each column has its title, a note with its rules, its number format, and a dropdown where it has choices."""
    sheet = _sheet(FORM.template(tmp_path / "t.xlsx"))

    titles = [cell.value for cell in sheet[HEADER] if cell.value]
    assert titles == [column.title for column in FORM.columns]
    assert "3 capital letters, then 4 digits" in getattr(sheet.cell(HEADER, 1).comment, "text", "")
    assert sheet.column_dimensions["B"].width > 8
    assert _validations(sheet)["E"].formula1 == '"dry,rain,snow"'
    assert _validations(sheet)["F"].formula1 == "'_rowlease_lists'!$A$1:$A$60"
    assert _validations(sheet)["C"].type == "whole"


def test_required_titles_look_different(tmp_path: Path) -> None:
    """A required column is seen without reading its note."""
    sheet = _sheet(FORM.template(tmp_path / "t.xlsx"))

    required, optional = sheet.cell(HEADER, 1).fill.fgColor.rgb, sheet.cell(HEADER, 3).fill.fgColor.rgb
    assert required != optional


def test_an_empty_template_is_read_by_its_form(tmp_path: Path) -> None:
    """What we hand out we take: no row, no fault, and none of our own sheets is named as not read."""
    report = im.check(FORM.template(tmp_path / "t.xlsx"), FORM)

    assert (report.rows, report.is_clean) == (0, True)
    assert report.left_out.other_sheets == ()
    assert report.left_out.older_template == ()


def test_the_stamp_names_form_and_version(tmp_path: Path) -> None:
    """The hidden stamp says which form, in which version, the template is of."""
    with open_workbook(FORM.template(tmp_path / "t.xlsx", version=7)) as workbook:
        stamp = stamp_of(workbook)

    assert stamp is not None
    assert (stamp.kind, stamp.form, stamp.version, stamp.digest) == ("template", "site_report", 7, FORM.digest)
    assert im.Form.from_dict(stamp.definition) == FORM


def test_an_older_template_that_still_fits_is_taken_and_said(tmp_path: Path) -> None:
    """A form that changed what the sender must know says so in what was left out."""
    path = FORM.template(tmp_path / "t.xlsx")
    crew = dataclasses.replace(FORM.column("crew"), maximum=200)
    later = dataclasses.replace(FORM, columns=tuple(crew if c.name == "crew" else c for c in FORM.columns))

    report = im.check(path, later)

    assert report.left_out.older_template == ('"Crew size" has a new rule: From 0 to 200',)


def test_an_older_template_that_does_not_fit_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """A required column that came later is named as new, and where to get the present template."""
    path = FORM.template(tmp_path / "t.xlsx")
    firm = dataclasses.replace(FORM.column("remark"), name="firm", title="Firm", required=True)
    later = dataclasses.replace(FORM, columns=(*FORM.columns, firm))

    with pytest.raises(im.WorkbookError) as caught:
        im.check(path, later)

    assert caught.value.reason == "missing_column"
    assert 'the column "Firm" is new and required' in str(caught.value)
    assert "rowlease template" in str(caught.value)


def test_examples_keep_the_rules_of_their_column() -> None:
    """An example made from a pattern is one that the pattern takes; choices give their first."""
    assert example(FORM.column("site_code")) == "ABC1234"
    assert example(FORM.column("weather")) == "dry"
    assert "From 0 to 500." in rules(FORM.column("crew"), FORM)


@pytest.mark.parametrize("header_row", [1, 2, 6])
def test_the_header_stands_where_the_form_wants_it(tmp_path: Path, header_row: int) -> None:
    """A form that declares its header row gets a template that it can read."""
    form = dataclasses.replace(FORM, header_row=header_row)

    sheet = _sheet(form.template(tmp_path / "t.xlsx"))

    assert sheet.cell(header_row, 1).value == "Site code"
    assert im.check(tmp_path / "t.xlsx", form).is_clean


def test_a_header_of_two_rows_is_written_as_it_is_read(tmp_path: Path) -> None:
    """A group and its columns stand in two rows, and the form reads both."""
    titles = {"cost": "Amount / Net", "remark": "Amount / Remark", "crew": "Crew size"}
    columns = tuple(dataclasses.replace(FORM.column(name), title=title) for name, title in titles.items())
    form = dataclasses.replace(FORM, columns=columns, header_rows=2)
    path = form.template(tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(path)
    book["Report"].append([10.5, "fine", 4])
    book.save(path)

    report = im.check(path, form)

    assert report.is_clean
    assert report.accepted["remark"].to_list() == ["fine"]


def test_a_form_of_an_excel_table_gets_one(tmp_path: Path) -> None:
    """What stands in the table is read, a note below it is not."""
    form = dataclasses.replace(FORM, table_range="Reports")
    path = form.template(tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(path)
    sheet = book["Report"]
    values: list[str | int] = ["ABC1234", "2026-03-01", 4]
    for column, value in enumerate(values, start=1):
        sheet.cell(HEADER + 1, column).value = value
    sheet.cell(HEADER + 60, 1).value = "a note"
    book.save(path)

    report = im.check(path, form)

    assert (report.rows, report.is_clean, report.left_out.rows_below) == (1, True, 1)


@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_keeps_dropdowns_and_notes(tmp_path: Path) -> None:
    """Another application opens the template without repair and keeps what guides the sender."""
    (tmp_path / "out").mkdir()

    sheet = _sheet(converted(FORM.template(tmp_path / "t.xlsx"), tmp_path / "out"))

    assert sheet.cell(HEADER, 1).comment is not None
    assert {"C", "D", "E", "F"} <= set(_validations(sheet))


def _sheet(path: Path) -> Worksheet:
    return openpyxl.load_workbook(path)["Report"]


def _validations(sheet: Worksheet) -> dict[str, DataValidation]:
    found: list[DataValidation] = sheet.data_validations.dataValidation
    return {str(each.sqref)[0]: each for each in found}
