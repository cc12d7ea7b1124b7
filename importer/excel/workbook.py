"""A workbook that is open for reading, and the chunks of its sheets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from importer.errors import WorkbookError
from importer.excel.archive import Archive, read_ahead
from importer.excel.book import Workbook
from importer.excel.cell_kinds import CellKinds
from importer.excel.cells import Chunk, Sheet, SheetNotes
from importer.excel.chunking import chunks_of
from importer.excel.limits import Limits
from importer.excel.package import Package
from importer.excel.ranges import merged_references
from importer.excel.raw_cells import SheetCounts
from importer.excel.scan import scan
from importer.excel.shared_strings import read_shared_strings
from importer.excel.styles import read_style_kinds


class PackageWorkbook(Workbook):
    """An open xlsx, xlsm, xltx or xltm."""

    def __init__(
        self, path: Path, file: BinaryIO, archive: Archive, package: Package, limits: Limits, *, compiled: bool
    ) -> None:
        super().__init__(path, format=package.format, sheets=package.sheets)
        self.date_1904 = package.date_1904
        self._file = file
        self._archive = archive
        self._package = package
        self._limits = limits
        self._compiled = compiled
        self._plain = True  # a test sets it off to compare with the exact scanner alone

    def close(self) -> None:
        """Close the file; chunks that still run end with an error."""
        self._file.close()

    @cached_property
    def _kinds(self) -> CellKinds:
        styles = read_style_kinds(self._archive, self._package.styles, self._limits)
        strings = read_shared_strings(
            self._archive, self._package.shared_strings, self._limits, plain=self._plain, compiled=self._compiled
        )
        return CellKinds(styles, strings)

    def merged(self, sheet: Sheet) -> tuple[str, ...]:
        """Give the merged ranges of a sheet; looks through its part for them."""
        return merged_references(self._archive, self._package.sheet_parts[sheet.position], self._limits)

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
        # While a chunk is checked the next one is read.
        yield from read_ahead(chunks_of(blocks, rows=rows, date_1904=self.date_1904))
        self._notes[sheet.position] = SheetNotes(
            formulas=counts.formulas,
            hidden_rows=counts.hidden_rows,
            hidden_columns=counts.hidden_columns,
            merged=tuple(counts.merged),
        )
