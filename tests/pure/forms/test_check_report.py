"""The report of a check: counts, and a face for notebook and terminal that is safe to show."""

from __future__ import annotations

import json

from importer.excel.cells import Kind
from importer.forms import LeftOut
from tests.pure.forms.handmade import checked, chunk, form, number, text

FORM = form({"name": "site", "type": "text", "required": True, "max_length": 4}, {"name": "n", "type": "integer"})
HEADER = [text("site"), text("n"), text("<b>remark</b>")]


def test_counts_add_up() -> None:
    """Rows are accepted or failed; faults are counted by rule, the most frequent first."""
    rows = {2: [text("A"), number(1)], 3: [text("toolong"), text("x")], 4: [text("B"), text("y")]}

    report = checked(FORM, chunk({1: HEADER, **rows}))

    assert report.counts == {"rows": 3, "accepted": 1, "failed": 2, "fault:type": 2, "fault:length": 1}
    assert not report.is_clean


def test_what_a_stranger_wrote_is_escaped_in_a_notebook() -> None:
    """Cells, titles and sheet names show as letters, never as markup."""
    rows = {2: [text("<script>alert(1)</script>"), (Kind.ERROR, "#N/A")]}

    page = checked(FORM, chunk({1: HEADER, **rows}))._repr_html_()

    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;remark" in page


def test_a_report_reads_well_in_a_terminal() -> None:
    """Title with counts, first faults, how many more, and what was left out."""
    rows = {row: [text("toolong"), number(1)] for row in range(2, 20)}

    shown = repr(checked(FORM, chunk({1: HEADER, **rows})))

    assert "18 rows, 0 accepted, 18 failed" in shown
    assert "length 18" in shown
    assert "8 more faults" in shown
    assert 'C "<b>remark</b>"' in shown


def test_a_clean_report_shows_no_faults() -> None:
    """Counts alone, and no table of faults."""
    report = checked(FORM, chunk({1: HEADER, 2: [text("A"), number(1)]}))

    assert report.is_clean
    assert "message" not in repr(report)
    assert "accepted" in report._repr_html_()


def test_what_was_left_out_is_said_in_sentences_and_kept_as_data() -> None:
    """One sentence for each thing, none for what there is nothing of; the data are JSON."""
    left_out = LeftOut(rows_above=(1, 2), other_sheets=("Notes",), formulas=3, merged=("A1:B1",))

    assert str(left_out).count("\n") == 3
    assert "Notes" in str(left_out)
    assert json.loads(json.dumps(left_out.to_dict())) == {
        "rows_above": [1, 2], "other_sheets": ["Notes"], "formulas": 3, "merged": ["A1:B1"]
    }  # fmt: skip
    assert str(LeftOut()) == "nothing was left out"
