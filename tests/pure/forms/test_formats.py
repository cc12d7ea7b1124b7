"""A form reads every format alike: merged cells are filled, and what a format cannot tell is said in the report."""

from __future__ import annotations

from pathlib import Path

from importer import check
from importer.forms import Form
from tests.pure.excel.test_old_formats import XLS
from tests.pure.excel.test_open_document import ONE, cell, document, p, row

FORM = {
    "name": "counts",
    "table": "counts",
    "columns": [
        {"name": "site", "title": "Site", "type": "text", "required": True},
        {"name": "count", "title": "Count", "type": "integer"},
    ],
}


def text(words: str, more: str = "") -> str:
    """Give a cell of text."""
    return cell(f'office:value-type="string" {more}', p(words))


def test_merged_cells_of_an_ods_are_filled_where_the_form_says_so(tmp_path: Path) -> None:
    """As those of an xlsx; without it the second row has no site."""
    rows = (
        row(text("Site"), text("Count"))
        + row(text("north", 'table:number-rows-spanned="2"'), cell(ONE))
        + row("<table:covered-table-cell/>", cell(ONE))
    )
    path = document(tmp_path / "a.ods", rows)

    filled = check(path, Form.from_dict({**FORM, "merged": "fill"}))
    first = check(path, Form.from_dict(FORM))

    assert filled.accepted["site"].to_list() == ["north", "north"]
    assert first.faults.select("source_row", "rule").rows() == [(3, "required")]


def test_what_a_format_cannot_tell_is_said() -> None:
    """In the report, beside what was left out."""
    columns = [{"name": "a", "title": "text", "type": "text"}]

    report = check(XLS, Form.from_dict({**FORM, "columns": columns}))

    assert "formulas cannot be told from values" in str(report.left_out)
    assert "formulas cannot be told from values" in str(report.left_out.to_dict()["remarks"])
