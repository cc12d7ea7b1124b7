"""xls and xlsb, read by libraries in a process of their own under a memory limit.

No library reads these formats as our own reader reads xlsx, and one stray cell can make one of them ask for more
memory than there is. So `old_formats_reader` runs as a child: what it is asked for goes in as a line, what it found
comes back as frames, and when it dies only the workbook is refused.

| format | library | what it cannot tell, and so is said in the notes |
|---|---|---|
| xls | xlrd | formulas from values, and so a formula that was never calculated from its 0 |
| xlsb | python-calamine | error cells and formulas never calculated from blank cells; formulas from values |
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from importer.errors import Reason, WorkbookError
from importer.excel.blocks import blocks_of
from importer.excel.book import Workbook
from importer.excel.cells import Chunk, Sheet, SheetNotes
from importer.excel.chunking import Block, chunks_of
from importer.excel.limits import Limits

_LENGTH = struct.Struct("<Q")
_MOST_ANSWER_BYTES = 1 << 31

REMARKS = {
    "xls": ("in an xls, formulas cannot be told from values; one that was never calculated is read as its value, 0",),
    "xlsb": (
        (
            "in an xlsb, cells that show an error and formulas that were never calculated cannot be told from blank "
            "cells; save it as xlsx to have them reported"
        ),
    ),
}


class OldFormatWorkbook(Workbook):
    """An open xls or xlsb: a process that holds it."""

    def __init__(self, path: Path, kind: str, limits: Limits, *, name: str) -> None:
        self._child = subprocess.Popen(  # noqa: S603 - our own program, the path is an argument of its own
            [sys.executable, "-m", "importer.excel.old_formats_reader", kind, str(path.absolute()), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._called = name
        try:
            told = self._ask({"memory_bytes": limits.child_bytes})
        except BaseException:
            self.close()
            raise
        sheets = tuple(Sheet(**sheet) for sheet in told["sheets"])
        super().__init__(path, format=kind, sheets=sheets)
        self.date_1904 = bool(told["date_1904"])

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        self._child.wait()

    def merged(self, sheet: Sheet) -> tuple[str, ...]:
        """Give the merged ranges of a sheet."""
        return tuple(self._ask({"notes": sheet.position})["merged"])

    def _read(self, sheet: Sheet, rows: int) -> Iterator[Chunk]:
        yield from chunks_of(self._blocks(sheet), rows=rows, date_1904=self.date_1904)
        notes = self._ask({"notes": sheet.position})
        self._notes[sheet.position] = SheetNotes(
            formulas=0,
            hidden_rows=notes["hidden_rows"],
            hidden_columns=notes["hidden_columns"],
            merged=tuple(notes["merged"]),
            remarks=REMARKS[self.format],
        )

    def _blocks(self, sheet: Sheet) -> Iterator[Block]:
        pieces = self._ask({"cells": sheet.position})["pieces"]
        for _ in range(pieces):
            yield from blocks_of(pl.read_ipc_stream(BytesIO(self._answer())))

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            _pipe(self._child.stdin).write(json.dumps(question).encode() + b"\n")
            _pipe(self._child.stdin).flush()
        except OSError as error:
            raise self._broken() from error
        told: dict[str, Any] = json.loads(self._answer())
        if "reason" in told:
            raise WorkbookError(cast(Reason, told["reason"]), told["message"])
        return told

    def _answer(self) -> bytes:
        pipe = _pipe(self._child.stdout)
        head = pipe.read(_LENGTH.size)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
        content = pipe.read(length) if 0 < length < _MOST_ANSWER_BYTES else b""
        if not content or len(content) != length:
            raise self._broken()
        return content

    def _broken(self) -> WorkbookError:
        return WorkbookError(
            "too_large",
            f"{self._called} cannot be read: it makes the library for its old format ask for more memory than a "
            "workbook may have, or break down; open it in Excel and save it as .xlsx",
        )


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    return cast(IO[bytes], pipe)  # both were asked for
