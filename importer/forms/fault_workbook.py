"""The faults of a sheet as a workbook for its sender: their own with the bad cells marked, or the failed rows alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from importer.display import count
from importer.excel import Chunk, Kind, Workbook, open_workbook
from importer.forms.form import Form
from importer.forms.header import Header
from importer.forms.labels import nearest
from importer.forms.plain_words import format_words, pattern_rule, spelled
from importer.forms.reading import read_rows
from importer.sender import (
    ORIGIN_TITLE,
    FailedCell,
    FailedRows,
    Mark,
    Marked,
    Marking,
    Origin,
    Stamp,
    mark_workbook,
    write_failed_rows,
)

#: Workbooks that can be edited in place.
_KEPT_FORMATS = ("xlsx", "xlsm", "xltx", "xltm")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """Where the faults come from: the workbook that was sent, as which form, and the job that read it."""

    #: The workbook with the very content that was read.
    path: Path
    #: Its name as the sender calls it.
    file_name: str
    form: Form
    version: int | None = None
    job: int | None = None
    content_hash: str | None = None
    #: How the workbook is opened, where that takes more than its path.
    opening: Callable[[Path], Workbook] = open_workbook


@dataclass
class _Found:
    """What the sheet holds at its failed rows."""

    #: Cells by row and sheet column: kind and value as read.
    rows: dict[int, dict[int, tuple[Kind, str]]] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    free_column: int = 0


def write_fault_workbook(
    sent: Sent, target: str | os.PathLike[str], faults: pl.DataFrame, *, only_failed: bool = False
) -> Marked:
    """Write the faults into a workbook; `faults` is a frame as `CheckReport.faults`.

    Raises:
        WorkbookError: the workbook that was sent is not what was read, or is not written in UTF-8.
    """
    with sent.opening(sent.path) as workbook:
        reading = read_rows(workbook, sent.form)
        wanted = {int(row) for row in faults["source_row"].unique()}
        found = _find(workbook, reading.sheet.position, reading.header, wanted)
        header, sheet, before = reading.header, reading.sheet.name, reading.stamp
    marks = _marks(sent.form, header, faults)
    origins = [Origin(row, _digest(found.rows.get(row, {}), header)) for row in sorted(wanted)]
    if only_failed or workbook.format not in _KEPT_FORMATS:
        written = write_failed_rows(target, _failed_rows(sent, sheet, found, marks, origins, workbook.date_1904))
        kept = "the failed rows alone are here: only workbooks of the kinds xlsx and xlsm can be marked and kept whole"
        return written if only_failed else replace(written, not_kept=(kept,))
    counts = f"{count(len(marks), 'cell')} in {count(len(origins), 'row')} of the sheet “{sheet}”"
    told = f"{counts} cannot be taken as they are. They are coloured, each with a note."
    marking = Marking(
        sheet=sheet,
        header_row=header.row,
        free_column=found.free_column,
        marks=marks,
        origins=origins,
        stamp=_stamp(sent, "faults"),
        own_sheets=before.sheets if before is not None and before.kind != "template" else (),
        lines=(
            f"Faults in {sent.file_name}",
            told,
            "Please correct them there and send this workbook back; rows that were right need not be touched.",
        ),
    )
    return mark_workbook(sent.path, target, marking)


def _stamp(sent: Sent, kind: str) -> Stamp:
    return Stamp(
        kind="faults" if kind == "faults" else "failed_rows",
        form=sent.form.name,
        digest=sent.form.digest,
        version=sent.version,
        definition=sent.form.to_dict(),
        job=sent.job,
        content_hash=sent.content_hash,
    )


def _failed_rows(
    sent: Sent,
    sheet: str,
    found: _Found,
    marks: Sequence[Mark],
    origins: Sequence[Origin],
    date_1904: bool,  # noqa: FBT001
) -> FailedRows:
    return FailedRows(
        sheet=sheet,
        date_1904=date_1904,
        titles=found.titles,
        rows={
            origin.source_row: {
                column: FailedCell(kind.name.lower(), value)
                for column, (kind, value) in found.rows.get(origin.source_row, {}).items()
            }
            for origin in origins
        },
        marks=marks,
        origins=origins,
        stamp=_stamp(sent, "failed_rows"),
        line=f"{count(len(origins), 'row')} of {sent.file_name} to correct and send back; coloured cells say why.",
    )


def _marks(form: Form, header: Header, faults: pl.DataFrame) -> list[Mark]:
    columns = {column.name: column for column in form.columns}
    first = min(header.columns.values(), default=0)
    marks = []
    for row, name, rule, value, message in faults.iter_rows():
        column = columns.get(name)
        expected = format_words(message) if rule == "bad_date" else message
        if column is not None and column.choices and rule == "choice" and value:
            expected += nearest(value, [spelled(choice) for choice in column.choices])
        if column is not None and column.pattern and rule == "pattern":
            expected = pattern_rule(column.pattern).rstrip(".")
        marks.append(
            Mark(
                row=row,
                column=header.columns.get(name, first),
                title=column.title if column is not None else "",
                rule=rule,
                value=value or "",
                expected=expected,
            )
        )
    return marks


def _find(workbook: Workbook, position: int, header: Header, wanted: set[int]) -> _Found:
    """One pass over the sheet: the cells of failed rows, the titles, and how wide the sheet is."""
    found = _Found()
    rows = pl.Series(sorted(wanted | {header.row}), dtype=pl.Int64)
    for chunk in workbook.chunks(workbook.sheets[position]):
        found.free_column = max(found.free_column, *(column + 1 for column in chunk.columns), 0)
        _take(chunk, rows, found)
    titles = found.rows.pop(header.row, {})
    own = [column for column, (_, title) in titles.items() if title == ORIGIN_TITLE]
    if own:  # a marked workbook that came back and has faults again
        found.free_column = own[0]
        for cells in (titles, *found.rows.values()):
            cells.pop(own[0], None)
    used = {column for cells in (titles, *found.rows.values()) for column in cells}
    found.titles = {column: titles[column][1] if column in titles else "" for column in sorted(used)}
    return found


def _take(chunk: Chunk, rows: pl.Series, found: _Found) -> None:
    at = chunk.rows.is_in(rows.implode()).arg_true()
    if not len(at):
        return
    numbers = chunk.rows.gather(at).to_list()
    for number in numbers:
        found.rows.setdefault(number, {})
    for column in sorted(chunk.columns):
        cells = chunk.columns[column]
        kinds, values = cells.kind.gather(at).to_list(), cells.value.gather(at).to_list()
        for number, kind, value in zip(numbers, kinds, values, strict=True):
            if kind != Kind.BLANK:
                found.rows[number][column] = (Kind(kind), value)


def _digest(cells: Mapping[int, tuple[Kind, str]], header: Header) -> str:
    """A digest of what a row holds in the form's columns, wherever these stand."""
    held = ((name, *cells[at]) for name, at in sorted(header.columns.items()) if at in cells)
    text = "\x00".join(f"{name}\x01{int(kind)}\x01{value}" for name, kind, value in held)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
