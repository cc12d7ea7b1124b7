"""The bytes of a sheet part become raw cells, in runs of whole rows: the plain way where they allow it, else exactly.

One expat parser reads the whole part, but for runs of rows that the plain scanner took off it: each such run is well
formed in itself and stands between two rows, so the parser does not miss it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from importer.excel.compiled_scan import COMPILED, CompiledScanner
from importer.excel.exact_scan import ExactScanner
from importer.excel.limits import Limits
from importer.excel.plain_head import plain_prefix
from importer.excel.plain_scan import PlainScanner
from importer.excel.raw_cells import RawCells, RawGrid, SheetCounts

_ENOUGH_CELLS = 131_072
_MOST_HEAD_BYTES = 1024 * 1024
_RUN_BYTES = 4 * 1024 * 1024
_LONGEST_ROW_BYTES = 4 * _RUN_BYTES  # what is longer is left to the parser, which holds no row
_DATA = re.compile(rb"<(?:([A-Za-z_][A-Za-z0-9_.-]*):)?sheetData>")
_PATIENCE = 4  # runs in a row that were not plain, after which only every eighth is tried


def scan(
    pieces: Iterable[bytes],
    part: str,
    limits: Limits,
    counts: SheetCounts,
    *,
    plain: bool = True,
    compiled: bool = True,
) -> Iterator[RawCells | RawGrid]:
    """Yield the raw cells of a sheet part; `counts` is complete when the iterator ends.

    `plain=False` reads all of it exactly, `compiled=False` plain runs in Python; the cells are the same.
    """
    return _Scan(part, limits, counts, plain=plain, compiled=compiled and COMPILED).read(pieces)


class _Scan:
    """One reading of one sheet part."""

    def __init__(self, part: str, limits: Limits, counts: SheetCounts, *, plain: bool, compiled: bool) -> None:
        self._exact = ExactScanner(part, limits, counts)
        self._limits = limits
        self._counts = counts
        self._plain: PlainScanner | CompiledScanner | None = None
        self._compiled = compiled
        self._row_end, self._row_begin = b"</row>", b"/><row "
        self._in_head = plain
        self._misses = 0
        self._runs = 0

    def read(self, pieces: Iterable[bytes]) -> Iterator[RawCells | RawGrid]:
        rest = b""
        for piece in pieces:
            rest = rest + piece if rest else piece
            if self._in_head:
                rest = self._read_head(rest)
            elif self._plain is None:
                self._exact.feed(rest)
                rest = b""
                if len(self._exact) >= _ENOUGH_CELLS:
                    yield self._exact.take()
            elif len(rest) >= _RUN_BYTES:
                cut = self._cut(rest)
                if cut:
                    yield from self._read_run(rest[:cut])
                    rest = rest[cut:]
                elif len(rest) > _LONGEST_ROW_BYTES:
                    self._plain = None
        if self._plain is not None and (cut := self._cut(rest)):
            yield from self._read_run(rest[:cut])
            rest = rest[cut:]
        self._exact.feed(rest, last=True)
        yield self._exact.take()

    def _read_head(self, head: bytes) -> bytes:
        """Look for the beginning of the rows; give the bytes after it, or all while it has not come."""
        match = _DATA.search(head)
        if match is None:
            if len(head) <= _MOST_HEAD_BYTES:
                return head
            self._in_head = False
            self._exact.feed(head)
            return b""
        self._in_head = False
        head, rest = head[: match.end()], head[match.end() :]
        self._exact.feed(head)
        plain = plain_prefix(head, match)
        if self._exact.between_rows and plain is not None:
            prefix = plain.decode()
            if self._compiled and not prefix:
                self._plain = CompiledScanner(head, self._limits, self._counts)
            else:
                self._plain = PlainScanner(head, prefix, self._limits, self._counts)
            self._row_end, self._row_begin = f"</{prefix}row>".encode(), f"/><{prefix}row ".encode()
        return rest

    def _cut(self, rest: bytes) -> int:
        """Say where the last whole row ends; 0 when none does."""
        end = rest.rfind(self._row_end)
        if end >= 0:
            return end + len(self._row_end)
        end = rest.rfind(self._row_begin)  # rows that are all closed at once
        return end + 2 if end >= 0 else 0

    def _read_run(self, run: bytes) -> Iterator[RawCells | RawGrid]:
        found: RawCells | RawGrid | None = None
        self._runs += 1
        if self._plain is not None and (self._misses < _PATIENCE or self._runs % 8 == 0):
            found = self._plain.scan(run)
        if found is not None:
            self._misses = 0
            yield found
            return
        self._misses += 1
        self._exact.feed(run)
        yield self._exact.take()
        if not self._exact.between_rows or b"<!" in run or b"<?" in run:
            self._plain = None  # a comment or the like may hide where a row ends; the parser keeps the rest
