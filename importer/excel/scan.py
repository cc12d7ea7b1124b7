"""The bytes of a sheet part become raw cells, in runs of whole rows."""

from __future__ import annotations

from collections.abc import Iterator

from importer.excel.archive import Archive
from importer.excel.exact_scan import ExactScanner
from importer.excel.limits import Limits
from importer.excel.raw_cells import RawCells, SheetCounts

_ENOUGH_CELLS = 131_072


def scan(archive: Archive, part: str, limits: Limits, counts: SheetCounts) -> Iterator[RawCells]:
    """Yield the raw cells of a sheet part; `counts` is complete when the iterator ends."""
    scanner = ExactScanner(part, limits, counts)
    for piece in archive.pieces(part):
        scanner.feed(piece)
        if len(scanner) >= _ENOUGH_CELLS:
            yield scanner.take()
    scanner.feed(b"", last=True)
    yield scanner.take()
