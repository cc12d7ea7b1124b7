"""The child process of `old_formats`: holds one xls or xlsb, answers questions on its pipes, and may die of it.

A question is a line of JSON, an answer a length (8 bytes, little endian) and that many bytes: JSON, or a frame of cells
(row, column, kind, value) as an Arrow stream. Its address space is bounded, so a workbook that asks for too much ends
this process and not the importer.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import struct
import sys
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from importer.errors import Reason
from importer.excel.cells import Kind
from importer.excel.number_format import kind_of

_SCHEMA = {"row": pl.Int32, "column": pl.Int32, "kind": pl.UInt8, "value": pl.String}
_PIECE_CELLS = 131_072
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LENGTH = struct.Struct("<Q")

#: row (from 1), column (from 0), kind, value
_Cell = tuple[int, int, int, str]


class _RefusedError(Exception):
    """The workbook cannot be read; the arguments are the reason and a message."""


class _Library(Protocol):
    """A workbook as a library holds it."""

    date_1904: bool

    def sheets(self) -> list[dict[str, Any]]: ...
    def cells(self, position: int) -> Iterator[_Cell]: ...
    def notes(self, position: int) -> dict[str, Any]: ...


class _Xls:
    """An xls, held by xlrd."""

    def __init__(self, path: Path, name: str) -> None:
        import xlrd  # noqa: PLC0415 - only one of the two libraries is needed
        from xlrd.compdoc import CompDocError  # noqa: PLC0415 - the same

        self._xlrd = xlrd
        try:
            with Path(os.devnull).open("w") as silence:
                self._book = xlrd.open_workbook(str(path), formatting_info=True, ragged_rows=True, logfile=silence)
        except xlrd.XLRDError as error:
            if "encrypted" in str(error).lower():
                raise _RefusedError("encrypted", f"{name} is protected by a password; remove it in Excel") from error
            raise _damaged(name, error) from error
        except (CompDocError, AssertionError, IndexError, KeyError, TypeError, ValueError, struct.error) as error:
            raise _damaged(name, error) from error
        self.date_1904 = self._book.datemode == 1
        self._kinds = [kind_of(self._book.format_map[xf.format_key].format_str) for xf in self._book.xf_list]

    def sheets(self) -> list[dict[str, Any]]:
        return [
            {"name": sheet.name, "kind": "worksheet", "visible": sheet.visibility == 0, "position": at}
            for at, sheet in enumerate(self._book.sheets())
        ]

    def cells(self, position: int) -> Iterator[_Cell]:
        sheet = self._book.sheet_by_index(position)
        x = self._xlrd
        for row in range(sheet.nrows):
            for column, cell in enumerate(sheet.row(row)):
                if cell.ctype == x.XL_CELL_TEXT and cell.value:
                    yield row + 1, column, *_text(cell.value)
                elif cell.ctype in {x.XL_CELL_NUMBER, x.XL_CELL_DATE}:
                    known = cell.xf_index is not None and cell.xf_index < len(self._kinds)
                    yield row + 1, column, (self._kinds[cell.xf_index] if known else Kind.NUMBER), _number(cell.value)
                elif cell.ctype == x.XL_CELL_BOOLEAN:
                    yield row + 1, column, Kind.BOOL, "true" if cell.value else "false"
                elif cell.ctype == x.XL_CELL_ERROR:
                    yield row + 1, column, Kind.ERROR, x.error_text_from_code.get(cell.value, f"#ERROR {cell.value}")

    def notes(self, position: int) -> dict[str, Any]:
        sheet = self._book.sheet_by_index(position)
        return {
            "hidden_rows": sum(bool(info.hidden) for info in sheet.rowinfo_map.values()),
            "hidden_columns": sum(bool(info.hidden) for info in sheet.colinfo_map.values()),
            "merged": [
                f"{self._xlrd.cellname(top, left)}:{self._xlrd.cellname(bottom - 1, right - 1)}"
                for top, bottom, left, right in sheet.merged_cells
            ],
        }


class _Xlsb:
    """An xlsb, held by python-calamine."""

    date_1904 = False

    def __init__(self, path: Path, name: str) -> None:
        import python_calamine  # noqa: PLC0415 - only one of the two libraries is needed

        try:
            self._book = python_calamine.CalamineWorkbook.from_path(str(path))
        except python_calamine.CalamineError as error:
            raise _damaged(name, error) from error
        self._name = name
        self._error = python_calamine.CalamineError

    def sheets(self) -> list[dict[str, Any]]:
        kinds = {
            "WorkSheet": "worksheet",
            "ChartSheet": "chartsheet",
            "DialogSheet": "dialogsheet",
            "MacroSheet": "macrosheet",
        }
        return [
            {
                "name": sheet.name,
                "kind": kinds.get(str(sheet.typ).rpartition(".")[2], "worksheet"),
                "visible": str(sheet.visible).endswith("Visible"),
                "position": at,
            }
            for at, sheet in enumerate(self._book.sheets_metadata)
        ]

    def cells(self, position: int) -> Iterator[_Cell]:
        try:
            sheet = self._book.get_sheet_by_index(position)
        except self._error as error:
            raise _damaged(self._name, error) from error
        for row, values in enumerate(sheet.to_python(skip_empty_area=False), 1):
            for column, value in enumerate(values):
                if value != "":
                    yield row, column, *_value(value)

    def notes(self, position: int) -> dict[str, Any]:
        merged = self._book.get_sheet_by_index(position).merged_cell_ranges or []
        return {
            "hidden_rows": 0,
            "hidden_columns": 0,
            "merged": [f"{_reference(*first)}:{_reference(*last)}" for first, last in merged],
        }


def _reference(row: int, column: int) -> str:
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row + 1}"


def _damaged(name: str, error: Exception) -> _RefusedError:
    return _RefusedError("corrupt", f"{name} is damaged ({error}); open it in Excel and save it as .xlsx")


def _text(text: str) -> tuple[int, str]:
    if not _UNSTORABLE.search(text):
        return Kind.TEXT, text
    return Kind.UNSTORABLE, _UNSTORABLE.sub(lambda match: f"_x{ord(match.group()):04X}_", text)


def _number(value: float) -> str:
    """Write a number as xlsx would: a whole one without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _value(value: object) -> tuple[int, str]:
    """Give kind and value of what calamine holds."""
    match value:
        case bool():
            return Kind.BOOL, "true" if value else "false"
        case int() | float():
            return Kind.NUMBER, _number(float(value))
        case dt.datetime():
            return Kind.DATETIME, value.isoformat(timespec="milliseconds")
        case dt.date():
            return Kind.DATE, value.isoformat()
        case dt.time():
            seconds = value.hour * 3600 + value.minute * 60 + value.second + Decimal(value.microsecond) / 1_000_000
            return Kind.TIME, format(seconds / 86_400, "f")
        case dt.timedelta():
            whole = value // dt.timedelta(microseconds=1)
            return Kind.DURATION, format(Decimal(whole) / 86_400_000_000, "f")
        case _:
            return _text(str(value))


def _send(content: bytes) -> None:
    sys.stdout.buffer.write(_LENGTH.pack(len(content)) + content)
    sys.stdout.buffer.flush()


def _send_json(told: dict[str, Any]) -> None:
    _send(json.dumps(told).encode())


def _send_cells(library: _Library, position: int) -> None:
    cells = list(library.cells(position))
    starts = range(0, len(cells), _PIECE_CELLS)
    # A row is not cut in two.
    cuts = sorted({_row_start(cells, at) for at in starts} | {len(cells)})
    pieces = [cells[first:last] for first, last in pairwise(cuts)]
    _send_json({"pieces": len(pieces)})
    for piece in pieces:
        stream = BytesIO()
        pl.DataFrame(piece, schema=_SCHEMA, orient="row").write_ipc_stream(stream)
        _send(stream.getvalue())


def _row_start(cells: list[_Cell], at: int) -> int:
    while 0 < at < len(cells) and cells[at][0] == cells[at - 1][0]:
        at -= 1
    return at


def _bound_memory(size_bytes: int) -> None:
    """Bound what this process may ask for beyond what it has (where the system can)."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    with Path("/proc/self/statm").open() as statm:
        held = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + size_bytes, held + size_bytes))


def main() -> None:
    """Answer questions until there are no more."""
    kind, path, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    library: _Library | None = None
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if library is None:
                _bound_memory(question["memory_bytes"])
                library = _Xls(path, name) if kind == "xls" else _Xlsb(path, name)
                _send_json({"sheets": library.sheets(), "date_1904": library.date_1904})
            elif "cells" in question:
                _send_cells(library, question["cells"])
            else:
                _send_json(library.notes(question["notes"]))
        except _RefusedError as refused:
            reason: Reason = refused.args[0]
            _send_json({"reason": reason, "message": refused.args[1]})


if __name__ == "__main__":
    main()
