"""What the plain scanners read, the exact one reads the same: every cell, every count, every refusal."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importer.errors import WorkbookError
from importer.excel import Kind, Limits
from importer.excel import scan as scan_module
from importer.excel.cell_kinds import CellKinds
from importer.excel.chunking import chunks_of
from importer.excel.compiled_scan import COMPILED
from importer.excel.raw_cells import SheetCounts
from importer.excel.scan import scan
from importer.excel.strings import SharedStrings, decode_column
from tests.pure.excel.sheets_at_random import HEAD, TAIL, SheetMaker

KINDS = CellKinds(
    [Kind.NUMBER, Kind.DATE, Kind.DURATION],
    SharedStrings(*decode_column(pl.Series(["one", "two & three", "", "_x0041_", "a_x0000_b"]))),
)
PLAIN_KINDS = CellKinds([Kind.NUMBER, Kind.DATE, Kind.DURATION], SharedStrings(pl.Series(["one", "two"]), None))
WAYS = {"plain": (True, False)} | ({"compiled": (True, True)} if COMPILED else {})
Reading = tuple[list[tuple[int, int, int, str]], SheetCounts] | str


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small part into several runs."""
    monkeypatch.setattr(scan_module, "_RUN_BYTES", 700)


def _read(part: bytes, kinds: CellKinds, *, plain: bool, compiled: bool = False) -> Reading:
    counts = SheetCounts()
    pieces = (part[at : at + 300] for at in range(0, len(part), 300))
    try:
        raw = scan(pieces, "sheet1.xml", Limits(), counts, plain=plain, compiled=compiled)
        blocks = (block for cells in raw for block in kinds.blocks(cells))
        cells = list(_cells(blocks))
    except WorkbookError as error:
        return error.reason
    return cells, counts


def _cells(blocks: Iterator[object]) -> Iterator[tuple[int, int, int, str]]:
    for chunk in chunks_of(blocks, rows=7, date_1904=False):  # type: ignore[arg-type]  # blocks of any origin
        assert len(chunk.rows) <= 7
        for at, row in enumerate(chunk.rows):
            for column, cells in sorted(chunk.columns.items()):
                assert (cells.kind[at] == Kind.BLANK) == (cells.value[at] is None)
                if cells.kind[at] != Kind.BLANK:
                    yield row, column, cells.kind[at], cells.value[at]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("odd", [0.0, 0.02, 0.2])
@given(seed=st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_a_sheet_is_read_the_same_by_each_scanner(way: str, odd: float, seed: int) -> None:
    """Kinds, values, places and counts of a sheet do not depend on who reads it."""
    part = SheetMaker(seed, odd=odd).part().encode()
    plain, compiled = WAYS[way]

    for kinds in (KINDS, PLAIN_KINDS):
        assert _read(part, kinds, plain=plain, compiled=compiled) == _read(part, kinds, plain=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "rows",
    [
        '<row r="8"><c r="Z"><v>1</v></c></row>',  # a name without its row
        '<row r="8"><c r="A8"><v>1<</v></c></row>',  # an empty piece of markup
        '<row r="8"><c r="A8" t="s"><v>007</v></c><c r="B8" t="s"><v>001</v></c></row>',  # zeros before an index
        '<row r="8"><c r="A8"></v></c></row>',
        '<row r="8"><c r="A8"></v></c><c r="B8"><v>1</v></c></row>',
        '<row r="8"></v></c><c r="B8"><v>1</v></c></row>',
        '<row r="8"><c r="A8"><v>1</v></c></row></v></c></row><row r="9"><c r="A9"><v>1</v></c></row>',
        '<row r="8"><c r="A8" t="inlineStr"><is><t>1</v></c></row>',
        '<row r="8"><c r="A8"><v>1</t></is></c></row>',
        '<row r="8"><c r="A8"><f>1<v>2</v></c></row>',
        '<row r="8"/></row><row r="9"><c r="A9"><v>1</v></c></row>',
        '<row r="8"><c r="A8"/><v>1</v></c></row>',
        '<row r="8"><c r="A8" s="1"><c r="B8"/></c></row>',
        '<row r="8"><c r="A8"><v>1</v></c><!-- </row> --></row><row r="9"><c r="A9"><v>1</v></c></row>',
    ],
)
def test_what_once_was_or_might_be_read_otherwise(way: str, rows: str) -> None:
    """Markup that is nearly plain is judged as expat judges it."""
    plain, compiled = WAYS[way]
    for count in (1, 30):
        good = "".join(f'<row r="{at}"><c r="A{at}"><v>{at}</v></c></row>' for at in range(10, 10 + count))
        part = (HEAD + rows + good + TAIL).encode()

        assert _read(part, KINDS, plain=plain, compiled=compiled) == _read(part, KINDS, plain=False)


@pytest.mark.parametrize("way", WAYS)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=200, deadline=None)
def test_a_damaged_sheet_is_judged_the_same_by_each_scanner(way: str, seed: int) -> None:
    """A few changed bytes are the same cells to all scanners, or the same refusal."""
    part = SheetMaker(seed, odd=0.01).mutated()
    plain, compiled = WAYS[way]

    assert _read(part, KINDS, plain=plain, compiled=compiled) == _read(part, KINDS, plain=False)
