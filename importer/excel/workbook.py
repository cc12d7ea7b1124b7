"""A workbook that is open for reading, and the chunks of its sheets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from importer.errors import WorkbookError
from importer.excel.archive import Archive, open_binary
from importer.excel.cell_kinds import CellKinds
from importer.excel.cells import Chunk, Sheet, SheetNotes
from importer.excel.chunking import chunks_of
from importer.excel.limits import Limits
from importer.excel.package import Package, read_package
from importer.excel.raw_cells import SheetCounts
from importer.excel.scan import scan
from importer.excel.shared_strings import read_shared_strings
from importer.excel.sniff import require_zip
from importer.excel.styles import read_style_kinds


def open_workbook(path: str | Path, *, limits: Limits | None = None, compiled: bool = True) -> Workbook:
    """Open a workbook for reading; use it in a `with`. `compiled=False` does without the compiled scanner.

    Reads the package, not yet a sheet. Raises `WorkbookError` with one of not_a_spreadsheet, empty_file, encrypted,
    corrupt, encoding, unsafe_xml, too_large, unsupported_format.
    """
    path = Path(path)
    limits = limits or Limits()
    file = open_binary(path)
    try:
        require_zip(file, path)
        archive = Archive(file, limits)
        package = read_package(archive, limits, path.name)
    except BaseException:
        file.close()
        raise
    return Workbook(path, file, archive, package, limits, compiled=compiled)


class Workbook:
    """An open workbook: its sheets, and the cells of each as chunks."""

    def __init__(
        self, path: Path, file: BinaryIO, archive: Archive, package: Package, limits: Limits, *, compiled: bool
    ) -> None:
        self._file = file
        self._archive = archive
        self._package = package
        self._limits = limits
        self._notes: dict[int, SheetNotes] = {}
        self._compiled = compiled
        self._plain = True  # a test sets it off to compare with the exact scanner alone
        #: where it was opened
        self.path = path
        #: xlsx, xlsm, xltx or xltm, by what the file says of itself
        self.format = package.format
        #: whether serials count from 1904
        self.date_1904 = package.date_1904
        #: all sheets, in the order of their tabs
        self.sheets: tuple[Sheet, ...] = package.sheets

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; chunks that still run end with an error."""
        self._file.close()

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

    def notes(self, sheet: Sheet) -> SheetNotes:
        """Give what stands beside the cells of a sheet whose chunks ran to the end."""
        try:
            return self._notes[sheet.position]
        except KeyError:
            raise ValueError(f"the chunks of the sheet {sheet.name!r} have not run to the end") from None

    @cached_property
    def _kinds(self) -> CellKinds:
        styles = read_style_kinds(self._archive, self._package.styles, self._limits)
        strings = read_shared_strings(self._archive, self._package.shared_strings, self._limits, plain=self._plain)
        return CellKinds(styles, strings)

    def _read(self, sheet: Sheet, rows: int) -> Iterator[Chunk]:
        part = self._package.sheet_parts[sheet.position]
        if not part:
            raise WorkbookError("corrupt", f"the workbook is damaged: it does not say where its sheet {sheet.name} is")
        counts = SheetCounts()
        kinds = self._kinds
        raw = scan(
            self._archive.pieces_ahead(part), part, self._limits, counts, plain=self._plain, compiled=self._compiled
        )
        blocks = (block for cells in raw for block in kinds.blocks(cells))
        yield from chunks_of(blocks, rows=rows, date_1904=self.date_1904)
        self._notes[sheet.position] = SheetNotes(
            formulas=counts.formulas,
            hidden_rows=counts.hidden_rows,
            hidden_columns=counts.hidden_columns,
            merged=tuple(counts.merged),
        )
