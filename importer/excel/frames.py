"""A workbook as it is, before any form: its sheets and its cells as frames."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from importer.errors import WorkbookError
from importer.excel import serial
from importer.excel.book import Workbook
from importer.excel.cells import Chunk, Column, Kind, Sheet
from importer.excel.opening import open_workbook

_CELLS = {"row": pl.Int64, "column": pl.Int32, "kind": pl.String, "value": pl.String}


def sheets(path: str | Path) -> pl.DataFrame:
    """List the sheets of a workbook.

    One row per sheet: name str, kind str (worksheet, chartsheet, dialogsheet, macrosheet), visible bool, position i32
    (from 0, over all sheets).
    """
    with open_workbook(path) as workbook:
        found = workbook.sheets
    return pl.DataFrame(
        [(sheet.name, sheet.kind, sheet.visible, sheet.position) for sheet in found],
        schema={"name": pl.String, "kind": pl.String, "visible": pl.Boolean, "position": pl.Int32},
        orient="row",
    )


def read_cells(path: str | Path, sheet: str | None = None) -> pl.DataFrame:
    """Show what every filled cell of a sheet holds (the first visible worksheet when none is named).

    One row per filled cell, by row and column: row i64 (from 1), column i32 (from 0), kind str, value str. Text is
    decoded, numbers are as the file writes them, days and moments ISO 8601, durations in seconds, booleans true or
    false, errors by name; a formula without a value shows the formula. A serial that is no moment is shown as written.
    """
    with open_workbook(path) as workbook:
        chosen = choose_sheet(workbook, sheet)
        frames = [_long(chunk) for chunk in workbook.chunks(chosen)]
    return pl.concat([pl.DataFrame(schema=_CELLS), *frames])


def choose_sheet(workbook: Workbook, name: str | None) -> Sheet:
    """Find a worksheet by its name (case does not matter, as in Excel); the first visible one without a name.

    Raises `WorkbookError` sheet_not_found, listing the sheets there are.
    """
    cells = [sheet for sheet in workbook.sheets if sheet.kind != "chartsheet"]
    if name is None:
        found = [sheet for sheet in cells if sheet.visible and sheet.kind == "worksheet"]
    else:
        found = [sheet for sheet in cells if sheet.name == name] or [
            sheet for sheet in cells if sheet.name.casefold() == name.casefold()
        ]
    if found:
        return found[0]
    there = ", ".join(
        f"{sheet.name!r} ({sheet.kind}{'' if sheet.visible else ', hidden'})" for sheet in workbook.sheets
    )
    what = "no visible worksheet" if name is None else f"no sheet {name!r}"
    raise WorkbookError("sheet_not_found", f"{workbook.name} has {what}; its sheets are: {there}")


def _long(chunk: Chunk) -> pl.DataFrame:
    parts = [
        pl.DataFrame(
            {
                "row": chunk.rows,
                "column": pl.repeat(column, len(chunk.rows), dtype=pl.Int32, eager=True),
                "kind": cells.kind,
                "value": _shown(cells, date_1904=chunk.date_1904),
            }
        )
        for column, cells in chunk.columns.items()
    ]
    return (
        pl.concat(parts)
        .filter(pl.col("kind") != Kind.BLANK)
        .sort("row", "column")
        .with_columns(pl.col("kind").replace_strict({int(kind): kind.name.lower() for kind in Kind}))
    )


def _shown(cells: Column, *, date_1904: bool) -> pl.Series:
    """Show moments in ISO 8601 and durations in seconds; what the file writes in ISO itself stays."""
    kind, value = pl.col("kind"), pl.col("value")
    moment = serial.moments(value, date_1904=date_1904)
    milliseconds = serial.milliseconds(value)
    seconds = (milliseconds // 1000).cast(pl.String) + (
        pl.when(milliseconds % 1000 == 0)
        .then(pl.lit(""))
        .otherwise(pl.lit(".") + (milliseconds % 1000).cast(pl.String).str.zfill(3).str.strip_chars_end("0"))
    )
    text = (
        pl.when(kind == Kind.DATE)
        .then(moment.dt.strftime("%Y-%m-%d"))
        .when(kind == Kind.DATETIME)
        .then(moment.dt.strftime("%Y-%m-%dT%H:%M:%S%.f"))
        .when(kind == Kind.TIME)
        .then(serial.clock_times(value).dt.strftime("%H:%M:%S%.f"))
        .when(kind == Kind.DURATION)
        .then(seconds)
    )
    frame = pl.DataFrame({"kind": cells.kind, "value": cells.value})
    return frame.select(pl.coalesce(text, value).alias("value"))["value"]
