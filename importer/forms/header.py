"""Which column of a sheet is whose: the header row, and the titles in it.

Titles are matched as `labels.normal_title` compares them, against title, name and aliases of each column. The header is
the declared row, or else the row among the first 50 of the sheet that bears most of the form's columns (the upper one
of two equals). A header of two rows reads as the titles of both joined with " / ", the upper one spread over the
columns it is merged with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from importer.errors import WorkbookError
from importer.excel.cells import Chunk, Column, Kind
from importer.excel.ranges import Area
from importer.forms.form import Form, FormColumn
from importer.forms.labels import column_letter, listed, normal_title
from importer.forms.merged import headings
from importer.forms.nearness import nearest_heading
from importer.forms.shown import shown
from importer.sender import ORIGIN_TITLE

#: Sheet rows in which an undeclared header is looked for.
HEADER_WITHIN = 50

#: Titles by sheet row, then by sheet column.
Titles = Mapping[int, Mapping[int, str]]


@dataclass(frozen=True, kw_only=True)
class Header:
    """A form's columns as found in a sheet."""

    #: Last sheet row of the header; data begin below it.
    row: int
    #: First sheet row of the header: the same unless it has two.
    first_row: int
    #: Sheet column (from 0) by form column name; absent columns are not in it.
    columns: dict[str, int]
    #: Titles that no column of the form answers to, by sheet column.
    unknown: dict[int, str] = field(default_factory=dict)
    #: Optional columns of the form that the sheet does not have.
    absent: tuple[str, ...] = ()
    #: Sheet columns that we put there (origins of failed rows).
    own: tuple[int, ...] = ()


def last_header_row(form: Form, table: Area | None) -> int:
    """The sheet row by which the header must have come."""
    if table is not None:
        return table.first_row
    return (form.header_row or HEADER_WITHIN) + form.header_rows - 1


def find_header(head: Sequence[Chunk], form: Form, *, merged: Sequence[Area] = (), table: Area | None = None) -> Header:
    """Find the header among the first chunks of a sheet.

    *head*: all chunks up to `last_header_row`. *merged*: merged ranges, needed for two rows. *table*: the Excel table
    to which the form is confined.
    Raises: WorkbookError(no_header, missing_column, duplicate_column, unexpected_column).
    """
    owners = {normal_title(label): column for column in form.columns for label in column.labels}
    declared = form.header_row if table is None else table.first_row
    titles = _titles(head, declared or 1, last_header_row(form, table), table)
    if declared is not None:
        found = _joined(titles, declared, form, merged)
        if not found:
            raise WorkbookError(
                "no_header", f"row {declared} of the sheet should be the header, but it is blank; {_expected(form)}"
            )
        return _mapped(declared, found, owners, form)
    rows = sorted({row - above for row in titles for above in range(form.header_rows) if row > above})
    candidates = {row: _joined(titles, row, form, merged) for row in rows if row <= HEADER_WITHIN}
    row = _best_row(candidates, owners, form)
    return _mapped(row, candidates[row], owners, form)


def _joined(titles: Titles, row: int, form: Form, merged: Sequence[Area]) -> Mapping[int, str]:
    """The titles of a header that begins in this row."""
    if form.header_rows == 1:
        return titles.get(row, {})
    upper, lower = headings(titles, row, merged), headings(titles, row + 1, merged)
    pairs = {at: [part for part in (upper.get(at), lower.get(at)) if part] for at in sorted({*upper, *lower})}
    return {at: " / ".join(parts) for at, parts in pairs.items()}


def _best_row(candidates: Titles, owners: dict[str, FormColumn], form: Form) -> int:
    hits = {
        row: {owners[key].name for title in cells.values() if (key := normal_title(title)) in owners}
        for row, cells in candidates.items()
    }
    row = max(hits, key=lambda r: (len(hits[r]), -r), default=None)
    if row is None or not hits[row]:
        found = "they are empty"
        if candidates:
            first = min(candidates)
            found = f"row {first} holds {listed(candidates[first].values())}"
        raise WorkbookError(
            "no_header",
            f"none of the first {HEADER_WITHIN} rows of the sheet bears a title of the form; {found}; "
            f"{_expected(form)}",
        )
    return row


def _mapped(row: int, titles: Mapping[int, str], owners: dict[str, FormColumn], form: Form) -> Header:
    places: dict[str, list[int]] = {}
    unknown: dict[int, str] = {}
    own = tuple(at for at, title in titles.items() if title == ORIGIN_TITLE)
    titles = {at: title for at, title in titles.items() if at not in own}
    for at, title in titles.items():
        owner = owners.get(normal_title(title))
        if owner is None:
            unknown[at] = title
        else:
            places.setdefault(owner.name, []).append(at)
    _refuse_misfits(row, titles, places, unknown, form)
    return Header(
        row=row + form.header_rows - 1,
        first_row=row,
        columns={c.name: places[c.name][0] for c in form.columns if c.name in places},
        unknown=unknown,
        absent=tuple(c.name for c in form.columns if c.name not in places),
        own=own,
    )


def _refuse_misfits(
    row: int, titles: Mapping[int, str], places: dict[str, list[int]], unknown: dict[int, str], form: Form
) -> None:
    found = f"row {row} holds {listed(titles.values())}"
    twice = {name: at for name, at in places.items() if len(at) > 1}
    if twice:
        named = "; ".join(
            f'"{form.column(name).title}" as {" and as ".join(f"{titles[i]} in column {column_letter(i)}" for i in at)}'
            for name, at in twice.items()
        )
        raise WorkbookError(
            "duplicate_column",
            f"the sheet has a column of the form more than once: {named}; which one counts is not known",
        )
    missing = [column for column in form.columns if column.required and column.name not in places]
    if missing:
        raise WorkbookError(
            "missing_column",
            f"the sheet lacks {listed(map(_both_names, missing))}, which the form requires; {found}"
            f"{_nearest_headings(missing, unknown.values())}",
        )
    if not places:
        raise WorkbookError("no_header", f"no title of the form stands in row {row}; {found}; {_expected(form)}")
    if unknown and form.unknown_columns == "refuse":
        raise WorkbookError(
            "unexpected_column",
            f"the sheet has columns that the form does not know: {listed(unknown.values())}; {_expected(form)}",
        )


def _nearest_headings(missing: Sequence[FormColumn], headings: Iterable[str]) -> str:
    """Which unclaimed heading is near to a missing title, where one is."""
    free = list(headings)
    named = [(c, near) for c in missing if (near := nearest_heading(c.labels, free)) is not None]
    return "".join(f'; nearest to "{column.title}" is "{heading}"' for column, heading in named)


def _both_names(column: FormColumn) -> str:
    return column.title if column.title == column.name else f"{column.title} ({column.name})"


def _expected(form: Form) -> str:
    return f"the form expects {listed(c.title for c in form.columns)}"


def _titles(head: Sequence[Chunk], first: int, last: int, table: Area | None) -> dict[int, dict[int, str]]:
    """The texts of these rows as a person sees them, only the table's columns if there is one."""
    titles: dict[int, dict[int, str]] = {}
    for chunk in head:
        wanted = chunk.rows.is_between(first, last)
        rows = chunk.rows.filter(wanted).to_list()
        if not rows:
            continue
        for at, cells in sorted(chunk.columns.items()):
            if table is not None and not table.first_column <= at <= table.last_column:
                continue
            part = Column(cells.kind.filter(wanted), cells.value.filter(wanted))
            texts = shown(part, date_1904=chunk.date_1904).to_list()
            for row, kind, text in zip(rows, part.kind.to_list(), texts, strict=True):
                if kind != Kind.BLANK and text.strip():
                    titles.setdefault(row, {})[at] = " ".join(text.split())
    return titles


def rows_between(chunk: Chunk, above: int, below: int | None) -> Chunk | None:
    """The part of a chunk strictly below the sheet row `above` and, if given, strictly above `below`; none if empty."""
    if not len(chunk.rows):
        return None
    first, last = chunk.rows.item(0), chunk.rows.item(-1)
    if first > above and (below is None or last < below):
        return chunk
    wanted = chunk.rows > above
    if below is not None:
        wanted = wanted & (chunk.rows < below)
    if not wanted.any():
        return None
    columns = {at: Column(c.kind.filter(wanted), c.value.filter(wanted)) for at, c in chunk.columns.items()}
    return Chunk(rows=chunk.rows.filter(wanted), columns=columns, date_1904=chunk.date_1904)


def blank_column(length: int) -> Column:
    """A column without cells."""
    return Column(
        pl.repeat(int(Kind.BLANK), length, dtype=pl.UInt8, eager=True),
        pl.repeat(None, length, dtype=pl.String, eager=True),
    )
