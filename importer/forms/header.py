"""Where a form's columns stand in a sheet: the sheet, the header row, and which title is whose.

Titles are matched as `labels.normal_title` compares them, against title, name and aliases of each column. The header is
the declared row, or else the row among the first 50 of the sheet that bears most of the form's columns (the upper one
of two equals).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from importer.errors import WorkbookError
from importer.excel.cells import Chunk, Kind, Sheet
from importer.forms.form import Form, FormColumn
from importer.forms.labels import column_letter, listed, normal_title
from importer.forms.shown import shown

#: Sheet rows in which an undeclared header is looked for.
HEADER_WITHIN = 50


@dataclass(frozen=True, kw_only=True)
class Header:
    """A form's columns as found in a sheet."""

    #: Sheet row of the header (its last one, when there are two).
    row: int
    #: Sheet column (from 0) by form column name; absent columns are not in it.
    columns: dict[str, int]
    #: Titles that no column of the form answers to, by sheet column.
    unknown: dict[int, str] = field(default_factory=dict)
    #: Optional columns of the form that the sheet does not have.
    absent: tuple[str, ...] = ()


def choose_sheet(sheets: Sequence[Sheet], form: Form) -> Sheet:
    """The sheet a form reads. Raises: WorkbookError(sheet_not_found), naming the sheets there are."""
    if form.sheet is None:
        for sheet in sheets:
            if sheet.kind == "worksheet" and sheet.visible:
                return sheet
        raise WorkbookError(
            "sheet_not_found", f"the workbook has no visible worksheet; its sheets: {_sheet_list(sheets)}"
        )
    if isinstance(form.sheet, int):
        found = [sheet for sheet in sheets if sheet.position == form.sheet]
    else:
        wanted = _sheet_name(form.sheet)
        found = [sheet for sheet in sheets if _sheet_name(sheet.name) == wanted]
    if not found:
        wanted = f"sheet {form.sheet}" if isinstance(form.sheet, int) else f'sheet named "{form.sheet}"'
        raise WorkbookError("sheet_not_found", f"the workbook has no {wanted}; its sheets: {_sheet_list(sheets)}")
    if found[0].kind != "worksheet":
        raise WorkbookError(
            "sheet_not_found",
            f'the sheet "{found[0].name}" is a {found[0].kind} and holds no rows; worksheets: {_sheet_list(sheets)}',
        )
    return found[0]


def _sheet_name(name: str) -> str:
    """Excel compares the names of sheets without case; spaces at the ends are a slip of the form."""
    return name.strip().casefold()


def _sheet_list(sheets: Iterable[Sheet]) -> str:
    return listed(s.name for s in sheets if s.kind == "worksheet") or "none"


def find_header(head: Sequence[Chunk], form: Form) -> Header:
    """The header among the first chunks of a sheet.

    *head*: all chunks up to the declared header row, or up to row `HEADER_WITHIN`.
    Raises: WorkbookError(no_header, missing_column, duplicate_column, unexpected_column).
    """
    titles = _titles(head, form.header_row)
    owners = {normal_title(label): column for column in form.columns for label in column.labels}
    if form.header_row is not None:
        row = form.header_row
        if row not in titles:
            raise WorkbookError(
                "no_header", f"row {row} of the sheet should be the header, but it is blank; {_expected(form)}"
            )
    else:
        row = _best_row(titles, owners, form)
    return _mapped(row, titles[row], owners, form)


def _best_row(titles: dict[int, dict[int, str]], owners: dict[str, FormColumn], form: Form) -> int:
    hits = {
        row: {owners[t].name for title in cells.values() if (t := normal_title(title)) in owners}
        for row, cells in titles.items()
    }
    row = max(hits, key=lambda r: (len(hits[r]), -r), default=None)
    if row is None or not hits[row]:
        found = (
            "the sheet is empty there"
            if not titles
            else f"row {min(titles)} holds {listed(titles[min(titles)].values())}"
        )
        raise WorkbookError(
            "no_header",
            f"none of the first {HEADER_WITHIN} rows of the sheet bears a title of the form; {found}; "
            f"{_expected(form)}",
        )
    return row


def _mapped(row: int, titles: dict[int, str], owners: dict[str, FormColumn], form: Form) -> Header:
    places: dict[str, list[int]] = {}
    unknown: dict[int, str] = {}
    for at, title in titles.items():
        owner = owners.get(normal_title(title))
        if owner is None:
            unknown[at] = title
        else:
            places.setdefault(owner.name, []).append(at)
    found = f"row {row} holds {listed(titles.values())}"
    twice = {name: at for name, at in places.items() if len(at) > 1}
    if twice:
        named = "; ".join(
            f'"{form.column(name).title}" in columns {" and ".join(f"{column_letter(i)} ({titles[i]})" for i in at)}'
            for name, at in twice.items()
        )
        raise WorkbookError(
            "duplicate_column", f"a column of the form stands in the sheet more than once: {named}; {found}"
        )
    missing = [c for c in form.columns if c.required and c.name not in places]
    if missing:
        raise WorkbookError(
            "missing_column",
            f"the sheet lacks {listed(_both_names(c) for c in missing)}, which the form requires; {found}",
        )
    if not places:
        raise WorkbookError("no_header", f"no title of the form stands in row {row}; {found}; {_expected(form)}")
    if unknown and form.unknown_columns == "refuse":
        named = listed(f"{title}" for title in unknown.values())
        raise WorkbookError(
            "unexpected_column", f"the sheet has columns that the form does not know: {named}; {_expected(form)}"
        )
    absent = tuple(c.name for c in form.columns if c.name not in places)
    return Header(
        row=row,
        columns={c.name: places[c.name][0] for c in form.columns if c.name in places},
        unknown=unknown,
        absent=absent,
    )


def _both_names(column: FormColumn) -> str:
    return column.title if column.title == column.name else f"{column.title} ({column.name})"


def _expected(form: Form) -> str:
    return f"the form expects {listed(c.title for c in form.columns)}"


def _titles(head: Sequence[Chunk], only: int | None) -> dict[int, dict[int, str]]:
    """Texts of the header's rows as a person sees them: by sheet row, then by sheet column."""
    titles: dict[int, dict[int, str]] = {}
    for chunk in head:
        wanted = chunk.rows == only if only is not None else chunk.rows <= HEADER_WITHIN
        rows = chunk.rows.filter(wanted).to_list()
        for at in sorted(chunk.columns):
            cells = chunk.columns[at]
            part = type(cells)(cells.kind.filter(wanted), cells.value.filter(wanted))
            for row, kind, text in zip(
                rows, part.kind.to_list(), shown(part, date_1904=chunk.date_1904).to_list(), strict=True
            ):
                if kind != Kind.BLANK and text.strip():
                    titles.setdefault(row, {})[at] = " ".join(text.split())
    return titles


def rows_after(chunk: Chunk, row: int) -> Chunk | None:
    """The part of a chunk below a sheet row; none when nothing is."""
    if not len(chunk.rows):
        return None
    first = chunk.rows.item(0)
    if first > row:
        return chunk
    below = chunk.rows > row
    if not below.any():
        return None
    columns = {at: type(c)(c.kind.filter(below), c.value.filter(below)) for at, c in chunk.columns.items()}
    return Chunk(rows=chunk.rows.filter(below), columns=columns, date_1904=chunk.date_1904)


def blank_cells(length: int) -> tuple[pl.Series, pl.Series]:
    """Kinds and values of a column without cells."""
    return (
        pl.repeat(int(Kind.BLANK), length, dtype=pl.UInt8, eager=True),
        pl.repeat(None, length, dtype=pl.String, eager=True),
    )
