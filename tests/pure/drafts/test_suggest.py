"""Suggestions: which heading is which column, and where nothing is proposed."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest

import importer as im
from importer.forms.nearness import nearness

FORM = im.Form.from_dict(
    {
        "name": "site_report",
        "table": "site_reports",
        "columns": [
            {"name": "site_code", "title": "Site code", "type": "text", "pattern": "^[A-Z]{3}[0-9]{4}$"},
            {"name": "day", "title": "Date", "type": "date"},
            {"name": "crew", "title": "Crew size", "type": "integer"},
            {"name": "quantity", "title": "Quantity", "type": "decimal"},
        ],
    }
)


def test_headings_are_matched_as_people_read_them(tmp_path: Path) -> None:
    """Case, accents, word order, underscores and short forms make no difference; the values speak too."""
    path = _workbook(
        tmp_path, ["CODE_SITE", "daté", "size of crew", "Qty", "Weather"], ["ABC1234", "2026-03-01", 4, 1.5, "dry"]
    )

    suggestion = im.suggest(path, FORM)

    assert suggestion.aliases == {"site_code": "CODE_SITE", "day": "daté", "crew": "size of crew", "quantity": "Qty"}
    assert suggestion.left == ("Weather",)


def test_nothing_is_proposed_below_the_bar(tmp_path: Path) -> None:
    """A heading that is another word is left alone, and the reason names the nearest."""
    path = _workbook(tmp_path, ["Colour", "Date"], ["red", "2026-03-01"])

    suggestion = im.suggest(path, FORM)

    assert suggestion.aliases == {"day": "Date"}
    assert all(pair.heading is None and "nearest is" in pair.why for pair in suggestion.pairs if pair.column != "day")


def test_two_headings_that_are_alike_are_not_guessed(tmp_path: Path) -> None:
    """Where two headings are as near, neither is proposed."""
    path = _workbook(tmp_path, ["Crew size 1", "Crew size 2"], [4, 5])

    assert "crew" not in im.suggest(path, FORM).aliases


def test_values_that_do_not_fit_count_against_a_heading(tmp_path: Path) -> None:
    """The same words over text do not make a column of dates."""
    fits = im.suggest(_workbook(tmp_path, ["Datum"], ["2026-03-01"]), FORM).frame.filter(column="day")["confidence"][0]
    not_so = im.suggest(_workbook(tmp_path, ["Datum"], ["soon"]), FORM).frame.filter(column="day")["confidence"][0]

    assert fits > not_so


def test_a_suggestion_is_written_as_a_form_that_reads_the_sheet(tmp_path: Path) -> None:
    """The reviewable file is a form, its columns answering to the proposed headings."""
    path = _workbook(tmp_path, ["CODE_SITE", "Date", "size of crew"], ["ABC1234", "2026-03-01", 4])

    written = im.Form.from_file(im.suggest(path, FORM).write(tmp_path / "proposed.yaml"))

    assert im.check(path, written).accepted["site_code"].to_list() == ["ABC1234"]
    assert "0." in (tmp_path / "proposed.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Site code", "SITE  CODE", 1, 1),
        ("Größe", "grosse", 0.6, 1),
        ("siteCode", "site_code", 1, 1),
        ("Total cost", "Cost", 0.7, 0.9),
        ("Colour", "Date", 0, 0.59),
        ("Start", "End", 0, 0.59),
        ("", "Date", 0, 0),
    ],
)
def test_how_near_titles_are(one: str, other: str, least: float, most: float) -> None:
    """Nearness is symmetric and within these bounds."""
    assert least <= nearness(one, other) <= most
    assert nearness(one, other) == pytest.approx(nearness(other, one))


def test_a_form_is_drafted_from_a_workbook(tmp_path: Path) -> None:
    """Names, types, required columns and choices come from the sheet; and the draft reads that very sheet."""
    rows: list[list[object]] = [
        [f"ABC{n:04d}", n, n / 4, ["dry", "rain"][n % 2], None if n % 5 else "late"] for n in range(40)
    ]
    path = _workbook(tmp_path, ["Site code", "Crew", "Cost (EUR)", "Weather", "Remark"], *rows)

    draft = im.form_from(path, name="report")

    columns = {column.name: column for column in draft.form.columns}
    assert list(columns) == ["site_code", "crew", "cost_eur", "weather", "remark"]
    assert [column.type for column in draft.form.columns] == ["text", "integer", "decimal", "text", "text"]
    assert columns["weather"].choices == ("dry", "rain")
    assert [column.required for column in draft.form.columns] == [True, True, True, True, False]
    assert im.check(path, draft.form).is_clean
    assert any("perhaps the key: Site code" in remark for remark in draft.remarks)


def test_a_draft_is_written_for_review(tmp_path: Path) -> None:
    """The file is a form, with the remarks above it."""
    path = _workbook(tmp_path, ["A", "B"], ["x", 1], ["y", "two"])
    draft = im.form_from(path)

    assert im.Form.from_file(draft.write(tmp_path / "draft.yaml")) == draft.form
    assert "mixed" in (tmp_path / "draft.yaml").read_text(encoding="utf-8")


def test_a_missing_column_names_the_nearest_heading(tmp_path: Path) -> None:
    """Whoever misspelt a title is told which one is near."""
    form = im.Form.from_dict(
        {
            "name": "a",
            "table": "a",
            "columns": [
                {"name": "d", "title": "Delivery date", "type": "date", "required": True},
                {"name": "n", "title": "Number", "type": "integer"},
            ],
        }
    )
    path = _workbook(tmp_path, ["Number", "Date of delivery"], [1, "2026-03-01"])

    with pytest.raises(im.WorkbookError) as caught:
        im.check(path, form)

    assert caught.value.reason == "missing_column"
    assert 'nearest to "Delivery date" is "Date of delivery"' in str(caught.value)


def _workbook(folder: Path, titles: list[str], *rows: list[object]) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(titles)
    for row in rows:
        sheet.append(row)
    book.save(folder / "sample.xlsx")
    return folder / "sample.xlsx"
