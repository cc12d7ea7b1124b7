"""Drafts that people review: which heading is which column, and a form from a workbook."""

from __future__ import annotations

import os

from importer.batch.door import database_of
from importer.db import Database
from importer.drafts import DraftForm, Suggestion, Wanted, draft_form, wanted_by
from importer.drafts import suggest as suggest_for
from importer.errors import TargetError
from importer.forms import Form
from importer.target import columns_as_form


def suggest(
    path: str | os.PathLike[str], table_or_form: Form | str, *, db: Database | None = None, sheet: str | None = None
) -> Suggestion:
    """Propose which heading of a workbook is which column of a form, or of a table of the database, for review.

    Each pair has a confidence from 0 to 1, of the titles and of a sample of the values. Below 0.6, or where two are as
    near, none is proposed. `suggestion.write(path)` writes a form with the proposed headings as aliases.

    Raises:
        WorkbookError: the workbook cannot be read, or has no row that looks like a header.
        TargetError: there is no such table, or it has no column that a form could fill.

    Example:
        >>> im.suggest("march.xlsx", form).write("forms/march.yaml")  # doctest: +SKIP
    """
    if isinstance(table_or_form, Form):
        return suggest_for(path, table_or_form, wanted_by(table_or_form), sheet=sheet)
    with database_of(db) as database, database.connection() as conn:
        columns = columns_as_form(conn, table_or_form)
    if not columns:
        raise TargetError(table_or_form, ["there is no such table with a column that a form could fill"])
    form = Form.from_dict({"name": table_or_form.rpartition(".")[2], "table": table_or_form, "columns": columns})
    return suggest_for(path, form, [Wanted(column=column) for column in form.columns], sheet=sheet)


def form_from(
    path: str | os.PathLike[str], *, name: str | None = None, table: str | None = None, sheet: str | None = None
) -> DraftForm:
    """Draft a form from a workbook: its headings, types as a sample suggests, required and choices where they show.

    The draft says what in it is a guess; `draft.write(path)` writes it for review.

    Raises:
        WorkbookError: the workbook cannot be read, or has no row that looks like a header.
    """
    return draft_form(path, name=name, table=table, sheet=sheet)
