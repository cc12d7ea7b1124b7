"""The compiled scanner gives the exact scanner's cells, or leaves a run to it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.excel import open_workbook
from importer.excel.compiled_scan import COMPILED, CompiledScanner
from importer.excel.raw_cells import RawGrid, SheetCounts
from importer.excel.workbook import PackageWorkbook
from tests.pure.excel.scanning import HEAD, LIMITS, SEEDS, compiled, exactly, mutations
from tests.workbooks import write_workbook

pytestmark = pytest.mark.skipif(not COMPILED, reason="no C compiler was there when the package was installed")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_read_as_the_exact_scanner_reads_it(seed: str) -> None:
    """Where the compiled scanner takes a run, cells and counts are the exact scanner's."""
    found = compiled(seed.encode())

    assert found is None or found == exactly(seed.encode())


def test_most_seeds_are_taken() -> None:
    """The comparison above compares something: all but the formula without a value are plain."""
    taken = [seed for seed in SEEDS if compiled(seed.encode()) is not None]

    assert len(taken) == len(SEEDS) - 1


def test_mutated_runs_never_differ() -> None:
    """Of some thousand damaged runs each is left to the exact scanner or read as that reads it."""
    taken = 0
    for run in mutations(4000, seed=20261201):
        found = compiled(run)
        if found is not None:
            taken += 1
            assert found == exactly(run), run

    assert taken > 100


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
cells = st.one_of(
    st.tuples(st.just(""), st.floats(allow_nan=False, allow_infinity=False).map(repr)),
    st.tuples(st.just(' t="s"'), st.integers(0, 999_999_999).map(str)),
    st.tuples(st.just(' t="str"'), texts),
    st.tuples(st.just(' t="b" s="3"'), st.sampled_from("01")),
    st.tuples(st.just(' t="e"'), st.sampled_from(["#N/A", "#REF!"])),
)
grids = st.dictionaries(st.integers(1, 40), st.dictionaries(st.integers(0, 30), cells, max_size=6), max_size=8)


@given(grids)
def test_random_grids_are_read_alike(grid: dict[int, dict[int, tuple[str, str]]]) -> None:
    """Ragged rows, mixed tags, entities, long and short texts in any script."""
    escapes = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    rows = [
        f'<row r="{row}">'
        + "".join(
            f'<c r="{_letters(at)}{row}"{tag}><v>{"".join(escapes.get(c, c) for c in text)}</v></c>'
            for at, (tag, text) in sorted(columns.items())
        )
        + "</row>"
        for row, columns in sorted(grid.items())
    ]
    run = "".join(rows).encode()

    found = compiled(run)

    # What only a parser may judge is left to it: a carriage return, the characters XML does not allow.
    if found is None:
        assert any(ord(c) in {0xFFFE, 0xFFFF} for c in run.decode())
    else:
        assert found == exactly(run)


def _letters(at: int) -> str:
    return chr(65 + at) if at < 26 else "A" + chr(65 + at - 26)


def test_columns_of_one_tag_come_as_columns() -> None:
    """Missing cells are null, sound indexes are numbers, a cell of another tag than most is told apart."""
    run = (
        '<row r="1"><c r="A1"><v>1</v></c><c r="B1" t="s"><v>7</v></c><c r="C1"><v>1</v></c></row>'
        '<row r="2"><c r="A2"><v>2</v></c><c r="C2" t="str"><v>x</v></c></row>'
        '<row r="3"><c r="A3"><v>3</v></c><c r="C3"><v>4</v></c></row>'
    )

    found = CompiledScanner(HEAD, LIMITS, SheetCounts()).scan(run.encode())

    assert isinstance(found, RawGrid)
    assert found.columns[0].text.to_list() == ["1", "2", "3"]
    assert found.columns[1].text.to_list() == [7, None, None]
    assert found.columns[1].text.dtype == pl.UInt32
    assert found.others is not None
    assert found.columns[2].text.to_list() == ["1", None, "4"]
    assert (found.others.row.to_list(), found.others.text.to_list()) == ([2], ["x"])


@pytest.mark.parametrize("how", ["compiled", "plain", "exact"])
def test_a_workbook_gives_the_same_chunks_whichever_way_it_is_read(tmp_path: Path, how: str) -> None:
    """Kinds and values do not depend on the scanner: blanks, odd indexes, words in number cells, escapes."""
    rows = (
        '<row r="1"><c r="A1"><v>1</v></c><c r="B1" t="s"><v>0</v></c><c r="C1" s="1"><v>45000</v></c></row>'
        '<row r="2"><c r="A2"><v>1.5e3</v></c><c r="C2" s="1"><v>45001.5</v></c><c r="D2" t="b"><v>1</v></c></row>'
        '<row r="4"><c r="A4"><v>x</v></c><c r="B4" t="s"><v>99</v></c><c r="E4" t="str"><v>_x0041_</v></c></row>'
        '<row r="5"><c r="B5" t="s"><v>1</v></c><c r="D5" t="b"><v>2</v></c><c r="E5" t="str"><v>_x0000_</v></c></row>'
    )
    path = write_workbook(tmp_path / "a.xlsx", rows, formats=["yyyy-mm-dd"], strings=["text", ""])

    with open_workbook(path) as workbook:
        assert isinstance(workbook, PackageWorkbook)
        workbook._compiled, workbook._plain = how == "compiled", how != "exact"
        (chunk,) = workbook.chunks(workbook.sheets[0])

    assert chunk.rows.to_list() == [1, 2, 4, 5]
    assert {at: column.kind.to_list() for at, column in chunk.columns.items()} == {
        0: [2, 2, 10, 0],
        1: [1, 0, 10, 0],
        2: [4, 4, 0, 0],
        3: [0, 3, 0, 10],
        4: [0, 0, 1, 11],
    }
    assert chunk.columns[0].value.to_list() == ["1", "1.5e3", "x", None]
    assert chunk.columns[4].value.to_list() == [None, None, "A", "_x0000_"]
