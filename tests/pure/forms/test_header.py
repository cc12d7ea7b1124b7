"""The header: found by titles, compared as people read them, and refused with what was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.errors import WorkbookError
from importer.forms.header import Header, find_header
from importer.forms.labels import column_letter, normal_title
from tests.pure.forms.handmade import BLANK, Cell, chunk, form, number, text

COLUMNS = (
    {"name": "site", "title": "Site code", "type": "text", "required": True, "aliases": ["Site"]},
    {"name": "crew", "title": "Crew size", "type": "integer"},
)


def _header(rows: dict[int, list[Cell]], **options: object) -> Header:
    return find_header([chunk(rows)], form(*COLUMNS, **options))


def _refused(rows: dict[int, list[Cell]], **options: object) -> WorkbookError:
    with pytest.raises(WorkbookError) as refused:
        _header(rows, **options)
    return refused.value


@pytest.mark.parametrize(
    "title",
    [
        "Site code",
        "SITE CODE",
        "  site\n code ",
        "Site\u00a0code",
        "Ｓｉｔｅ　ｃｏｄｅ",
        "site\u200b code",
        "site",
        "Site",
        "sitE",
    ],
)
def test_a_title_is_found_however_it_is_written(title: str) -> None:
    """Case, spaces, line breaks, no-break spaces and full width do not matter; title, name and alias all count."""
    header = _header({1: [text("Crew size"), text(title)]})

    assert header.columns == {"site": 1, "crew": 0}


def test_the_header_is_the_row_with_most_of_the_titles() -> None:
    """Titles and notes above it do not mislead, not even one that holds a title of the form."""
    rows = {1: [text("Report")], 3: [text("Site"), text("Berlin")], 7: [BLANK, text("Site"), text("Crew size")]}

    header = _header({**rows, 8: [BLANK, text("A"), number(3)]})

    assert (header.row, header.columns) == (7, {"site": 1, "crew": 2})


def test_of_two_equal_rows_the_upper_one_is_the_header() -> None:
    """A header printed again on each page is data that will be reported."""
    titles = [text("Site"), text("Crew size")]

    assert _header({5: titles, 45: titles}).row == 5


def test_the_header_may_be_row_50_and_no_later() -> None:
    """The search ends at sheet row 50, counted as Excel does."""
    titles = [text("Site")]

    assert _header({50: titles}).row == 50
    error = _refused({2: [text("Berlin")], 51: titles})
    assert error.reason == "no_header"
    assert "first 50 rows" in str(error)
    assert "Berlin" in str(error)
    assert "Site code" in str(error)


def test_an_empty_sheet_has_no_header() -> None:
    """The refusal says what was expected."""
    assert _refused({}).reason == "no_header"
    assert "Site code" in str(_refused({}))


def test_a_declared_header_row_is_taken_at_its_word() -> None:
    """Another row that looks better is not looked at; a blank one is no header."""
    rows = {1: [text("Site"), text("Crew size")], 4: [text("Crew size"), text("Site code")]}

    assert _header(rows, header_row=4).columns == {"site": 1, "crew": 0}
    error = _refused(rows, header_row=3)
    assert (error.reason, "row 3" in str(error)) == ("no_header", True)


def test_a_title_that_is_a_number_or_a_day_is_read_as_shown() -> None:
    """A column titled 2024 is found by "2024"."""
    header = find_header([chunk({1: [number("2.024E3")]})], form({"name": "y", "title": "2024", "type": "integer"}))

    assert header.columns == {"y": 0}


def test_a_missing_required_column_is_named_with_what_was_found() -> None:
    """Title and name of the form, and the titles of the sheet."""
    error = _refused({1: [text("Plant"), text("Crew size")]})

    assert error.reason == "missing_column"
    for word in ("Site code", "site", "Plant", "Crew size"):
        assert word in str(error)


def test_a_column_that_is_there_twice_is_refused() -> None:
    """Also when one goes by its title and the other by an alias: which one counts is not known."""
    error = _refused({1: [text("Site code"), text("Crew size"), text("Site")]})

    assert error.reason == "duplicate_column"
    assert "Site code in column A" in str(error)
    assert "Site in column C" in str(error)


def test_titles_the_form_does_not_know_are_named_or_refused() -> None:
    """By default they are left out, with `unknown_columns: refuse` the sheet is."""
    rows = {1: [text("Site"), text("Remark"), text("Remark")]}

    header = _header(rows)
    error = _refused(rows, unknown_columns="refuse")

    assert header.unknown == {1: "Remark", 2: "Remark"}
    assert header.absent == ("crew",)
    assert (error.reason, "Remark" in str(error)) == ("unexpected_column", True)


def test_a_form_without_required_columns_needs_one_title_at_least() -> None:
    """A sheet that shares no title with the form is not read as a table of blanks."""
    with pytest.raises(WorkbookError) as refused:
        find_header([chunk({1: [text("A"), text("B")]})], form({"name": "c", "type": "text"}, header_row=1))

    assert refused.value.reason == "no_header"


@given(st.text(max_size=20))
def test_a_title_compares_equal_to_itself_in_any_case_and_width(title: str) -> None:
    """What is compared is stable: comparing it again changes nothing, nor do spaces about it."""
    once = normal_title(title)

    assert normal_title(once) == once
    assert normal_title(f"\u00a0 {title}\n") == once


@given(st.integers(0, 16_383))
def test_letters_of_columns_count_as_excel_does(at: int) -> None:
    """A, Z, AA ... XFD: the letters read back as the number."""
    value = 0
    for letter in column_letter(at):
        value = value * 26 + ord(letter) - ord("A") + 1

    assert value == at + 1
    assert column_letter(16_383) == "XFD"
