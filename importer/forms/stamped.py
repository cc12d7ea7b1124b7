"""A workbook of ours that comes back: its stamp, its sheets, the origins of its rows, and how old its template is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from importer.excel.cells import Chunk, Kind, Sheet
from importer.forms.form import Form
from importer.forms.template import changes_since
from importer.sender import ORIGIN_TITLE, STAMP_SHEET, Origin, Stamp, is_own_sheet, read_origin, read_stamp


class Workbook(Protocol):
    """What is read of a workbook here."""

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """All sheets, in order."""

    def chunks(self, sheet: Sheet, rows: int = ...) -> Iterator[Chunk]:
        """Yield the rows of a sheet, in order."""


def stamp_of(workbook: Workbook) -> Stamp | None:
    """Read the stamp of a workbook; none when it has none that can be read."""
    for sheet in workbook.sheets:
        if sheet.name == STAMP_SHEET or sheet.name.startswith(f"{STAMP_SHEET} ("):
            stamp = read_stamp(_pairs(workbook, sheet))
            if stamp is not None:
                return stamp
    return None


def _pairs(workbook: Workbook, sheet: Sheet) -> list[tuple[str, str]]:
    found = []
    for chunk in workbook.chunks(sheet):
        if {0, 1} <= set(chunk.columns):
            names, values = chunk.columns[0].value.to_list(), chunk.columns[1].value.to_list()
            found += [(name, value) for name, value in zip(names, values, strict=True) if name and value]
        if len(found) > _MOST_ROWS:
            break
    return found


#: Rows of a stamp that are read at most: no form of ours is longer.
_MOST_ROWS = 1_000


def is_ours(name: str, stamp: Stamp | None) -> bool:
    """Whether a sheet was added by us."""
    return is_own_sheet(name) or (stamp is not None and (name in stamp.sheets or name.startswith(STAMP_SHEET)))


def older_template(stamp: Stamp | None, form: Form) -> tuple[str, ...]:
    """What changed in the form since the template was written; none when it is no template, or nothing did."""
    if stamp is None or stamp.kind != "template" or stamp.digest == form.digest:
        return ()
    if stamp.form != form.name:
        return (f'it is a template of the form "{stamp.form}", not of "{form.name}"',)
    return changes_since(stamp, form)


def refused_template(changes: tuple[str, ...]) -> str:
    """Why an old template cannot be read, and what to do."""
    return (
        f"the sheet was filled in from an older template: {'; '.join(changes)}; "
        "fetch the present template (`rowlease template`), copy the rows over, and send that"
    )


def origins(workbook: Workbook, sheet: Sheet) -> dict[int, Origin]:
    """The origins that rows of a sheet carry, by sheet row; none when there is no column of them."""
    found: dict[int, Origin] = {}
    column: int | None = None
    for chunk in workbook.chunks(sheet):
        if column is None:
            column = next((at for at, cells in chunk.columns.items() if (cells.value == ORIGIN_TITLE).any()), None)
        if column is None:
            return {}  # the title stands in the first rows or nowhere
        cells = chunk.columns.get(column)
        if cells is None:
            continue
        at = (cells.kind != Kind.BLANK).arg_true()
        for row, text in zip(chunk.rows.gather(at).to_list(), cells.value.gather(at).to_list(), strict=True):
            origin = read_origin(text)
            if origin is not None:
                found[row] = origin
    return found
