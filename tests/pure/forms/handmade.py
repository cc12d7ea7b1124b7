"""Chunks of cells made by hand, and the check of them: what the reader of a file would yield, without a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from importer.excel.cells import Chunk, Column, Kind, Sheet, SheetNotes
from importer.forms import FAULT_SCHEMA, CheckReport, Form, SeenKeys, read_rows

#: A cell: its kind and what is written, `None` where it is blank.
Cell = tuple[Kind, str | None]

BLANK: Cell = (Kind.BLANK, None)
ONE_SHEET = (Sheet(name="Sheet1", kind="worksheet", visible=True, position=0),)


def text(value: str) -> Cell:
    """Give a text cell."""
    return (Kind.TEXT, value)


def number(value: object) -> Cell:
    """Give a number cell, written as `value` prints."""
    return (Kind.NUMBER, str(value))


def column(cells: Sequence[Cell]) -> Column:
    """Give a column of cells."""
    kinds = pl.Series([int(kind) for kind, _ in cells], dtype=pl.UInt8)
    return Column(kinds, pl.Series([value for _, value in cells], dtype=pl.String))


def chunk(rows: Mapping[int, Sequence[Cell]], *, date_1904: bool = False) -> Chunk:
    """Give a chunk from sheet rows, each with its cells from column A on."""
    width = max((len(cells) for cells in rows.values()), default=0)
    filled = [[*cells, *[BLANK] * (width - len(cells))] for cells in rows.values()]
    return Chunk(
        rows=pl.Series(list(rows), dtype=pl.Int64),
        columns={at: column([cells[at] for cells in filled]) for at in range(width)},
        date_1904=date_1904,
    )


@dataclass
class HandmadeWorkbook:
    """A workbook whose sheet yields these chunks."""

    given: Sequence[Chunk]
    sheets: tuple[Sheet, ...] = ONE_SHEET
    date_1904: bool = False
    format: str = "csv"
    path: Path = Path("handmade.csv")

    def chunks(self, sheet: Sheet, rows: int = 50_000) -> Iterator[Chunk]:
        """Yield the chunks as they were made."""
        assert sheet in self.sheets
        assert rows
        return iter(self.given)

    def merged(self, sheet: Sheet) -> tuple[str, ...]:
        """Say that nothing is merged."""
        assert sheet in self.sheets
        return ()

    def notes(self, sheet: Sheet) -> SheetNotes:
        """Say that nothing stands beside the cells."""
        assert sheet in self.sheets
        return SheetNotes(formulas=0, hidden_rows=0, hidden_columns=0, merged=())


def form(*columns: Mapping[str, object], **options: object) -> Form:
    """Give a form of these columns."""
    return Form.from_dict({"name": "report", "table": "reports", "columns": list(columns), **options})


def checked(checked_form: Form, *chunks: Chunk, date_1904: bool = False) -> CheckReport:
    """Check chunks through a form, as a dry run does."""
    workbook = HandmadeWorkbook(chunks, date_1904=date_1904)
    reading = read_rows(workbook, checked_form)
    seen = SeenKeys(checked_form)
    found = [seen.sift(part) for part in reading]
    return CheckReport(
        form=checked_form,
        file_name="handmade.csv",
        accepted=pl.concat([pl.DataFrame(schema=checked_form.frame_schema), *(part.accepted for part in found)]),
        faults=pl.concat([pl.DataFrame(schema=FAULT_SCHEMA), *(part.faults for part in found)]),
        rows=reading.rows_seen,
        left_out=reading.left_out,
    )


def rules(report: CheckReport) -> list[tuple[int, str, str]]:
    """Give the faults of a report: row, column, rule."""
    return report.faults.select("source_row", "column", "rule").rows()
