"""What every workbook offers, whatever its format: sheets, the cells of each as chunks, and notes beside the cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from importer.excel.cells import Chunk, Sheet, SheetNotes


class Workbook(ABC):
    """An open workbook; use it in a `with`."""

    #: whether serials count from 1904
    date_1904: bool = False

    def __init__(self, path: Path, *, format: str, sheets: tuple[Sheet, ...]) -> None:  # noqa: A002 - the word there is
        #: where it stands
        self.path = path
        #: what its sender calls it, for messages
        self.name = path.name
        #: xlsx, xlsm, xltx, xltm, ods, xls, xlsb, csv or tsv, by what the file says of itself
        self.format = format
        #: all sheets, in the order of their tabs
        self.sheets = sheets
        self._notes: dict[int, SheetNotes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the file; chunks that still run end with an error."""

    @abstractmethod
    def _read(self, sheet: Sheet, rows: int) -> Iterator[Chunk]:
        """Yield the chunks of a sheet that holds cells, and leave its notes."""

    def chunks(self, sheet: Sheet, rows: int = 50_000) -> Iterator[Chunk]:
        """Yield the filled rows of a sheet, in order, in chunks of at most `rows`.

        A sheet that turns out to be broken raises `WorkbookError` after the chunks before the break were yielded: who
        stores chunks must be ready to take them back. A chart sheet yields none.
        """
        if rows < 1:
            raise ValueError("rows must be positive")
        if sheet.kind == "chartsheet":
            self._notes[sheet.position] = SheetNotes(formulas=0, hidden_rows=0, hidden_columns=0, merged=())
            return iter(())
        return self._read(sheet, rows)

    def merged(self, sheet: Sheet) -> tuple[str, ...]:  # noqa: ARG002 - most formats have none
        """Give the merged ranges of a sheet, `A1:C2`, before its cells are read."""
        return ()

    def notes(self, sheet: Sheet) -> SheetNotes:
        """Give what stands beside the cells of a sheet whose chunks ran to the end."""
        try:
            return self._notes[sheet.position]
        except KeyError:
            raise ValueError(f"the chunks of the sheet {sheet.name!r} have not run to the end") from None
