"""What the tests of the reader share: cells of a few rows, as (row, column, kind, value)."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer.errors import WorkbookError
from importer.excel import Kind, Limits, open_workbook

Cell = tuple[int, int, str, str]


def read(path: Path, *, sheet: int = 0, rows: int = 50_000, limits: Limits | None = None) -> list[Cell]:
    """Read the filled cells of a sheet through its chunks, values as the chunks hold them."""
    found: list[Cell] = []
    with open_workbook(path, limits=limits) as workbook:
        for chunk in workbook.chunks(workbook.sheets[sheet], rows=rows):
            for column, cells in sorted(chunk.columns.items()):
                found += [
                    (row, column, Kind(kind).name.lower(), value)
                    for row, kind, value in zip(chunk.rows, cells.kind, cells.value, strict=True)
                    if kind != Kind.BLANK
                ]
    return sorted(found)


def refused(path: Path, *, limits: Limits | None = None) -> WorkbookError:
    """Read all sheets of a file that must be refused, and give the refusal."""
    with pytest.raises(WorkbookError) as caught:
        _read_all(path, limits)
    return caught.value


def _read_all(path: Path, limits: Limits | None) -> None:
    with open_workbook(path, limits=limits) as workbook:
        for sheet in workbook.sheets:
            for _ in workbook.chunks(sheet):
                pass
