"""A text that is no moment is told what is wrong with it: not its order when that is plain."""

from __future__ import annotations

import pytest

from importer.excel import Kind
from importer.forms.form import FormColumn, Locale
from importer.forms.misfits import Judge, Misfit


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2024-02-30", "there is no such moment"),
        ("0000-01-01", "there is no such moment"),
        ("2024-02-29T24:00:00", "no such moment"),
        ("03/04/2024", "which part of this text is the day"),
        ("next week", "of text only 2024-02-29 is read"),
    ],
)
def test_a_text_in_a_date_column_is_told_what_is_wrong(text: str, says: str) -> None:
    """2024-02-30 needs no declared format, it needs another day."""
    judge = Judge(FormColumn(name="day", title="Day", type="date"), Locale())

    found = judge(Kind.TEXT, text)

    assert isinstance(found, Misfit)
    assert (found.rule, says in found.message) == ("bad_date", True)
