"""A sheet read through a form: which rows are data, where faults stand, and that no row is lost."""

from __future__ import annotations

import itertools

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from importer.excel.cells import Chunk, Kind
from importer.forms import CheckedChunk, read_rows
from tests.pure.forms.handmade import BLANK, Cell, HandmadeWorkbook, checked, chunk, form, number, rules, text

FORM = form(
    {"name": "site", "type": "text", "required": True, "pattern": "^[A-Z]"},
    {"name": "crew", "type": "integer", "max": 10},
    {"name": "day", "type": "date"},
)
HEADER: list[Cell] = [text("site"), text("crew"), text("note"), text("day")]


def _row(site: Cell, crew: Cell = BLANK, note: Cell = BLANK, day: Cell = BLANK) -> list[Cell]:
    return [site, crew, note, day]


def test_rows_keep_their_numbers_in_the_sheet() -> None:
    """Gaps, titles and blank rows do not shift the source rows."""
    rows = {2: [text("Title")], 4: HEADER, 5: _row(text("A")), 9: _row(text("b")), 12: _row(text("C"))}

    report = checked(FORM, chunk(rows))

    assert report.accepted["source_row"].to_list() == [5, 12]
    assert rules(report) == [(9, "site", "pattern")]
    assert report.rows == 3


def test_a_row_blank_in_all_declared_columns_is_no_row() -> None:
    """A note beside it, or spaces, make no row of it; it is counted as left out."""
    blanks = {2: _row(BLANK, note=text("x")), 3: _row(text("  \u00a0")), 5: _row(text("A"))}

    report = checked(FORM, chunk({1: HEADER, **blanks}))

    assert report.accepted["source_row"].to_list() == [5]
    assert report.faults.is_empty()
    assert report.left_out.blank_rows == 3


def test_all_faults_of_a_row_are_found_and_each_cell_has_one() -> None:
    """A cell that could not be typed breaks no rule besides."""
    row = _row((Kind.ERROR, "#N/A"), number(11), day=text("tomorrow"))

    report = checked(FORM, chunk({1: HEADER, 2: row}))

    assert rules(report) == [(2, "site", "cell_error"), (2, "crew", "range"), (2, "day", "bad_date")]
    assert report.accepted.is_empty()


def test_a_fault_shows_the_cell_as_the_sheet_does() -> None:
    """Numbers as General writes them, days in ISO, errors by name, text as it stands; a blank is empty."""
    cells = {
        2: _row(text(" x "), number("1.1E+1")),
        3: _row(BLANK, (Kind.DATE, "45351")),
        4: _row(text("A"), (Kind.BOOL, "true"), day=(Kind.DATE, "60")),
    }

    report = checked(FORM, chunk({1: HEADER, **cells}))

    assert report.faults.select("source_row", "column", "value").rows() == [
        (2, "site", " x "),
        (2, "crew", "11"),
        (3, "site", ""),
        (3, "crew", "2024-02-29"),
        (4, "crew", "TRUE"),
        (4, "day", "60"),
    ]


def test_an_endless_text_is_cut_in_its_fault() -> None:
    """A fault keeps the first thousand characters."""
    report = checked(FORM, chunk({1: HEADER, 2: _row(text("x" * 5_000))}))

    assert report.faults.item(0, "value") == "x" * 1_000 + "…"


def test_an_absent_optional_column_is_null_and_named() -> None:
    """The frame has all columns of the form, whatever the sheet has."""
    report = checked(FORM, chunk({1: [text("site")], 2: [text("A")]}))

    assert report.accepted.rows() == [(2, "A", None, None)]
    assert report.left_out.absent_columns == ("crew", "day")


def test_a_header_may_come_in_a_later_chunk() -> None:
    """Chunks of one row each give what one chunk gives."""
    rows = {1: [text("Title")], 3: HEADER, 4: _row(text("A")), 5: _row(text("B"))}

    report = checked(FORM, *(chunk({row: cells}) for row, cells in rows.items()))

    assert report.accepted["source_row"].to_list() == [4, 5]
    assert report.left_out.rows_above == (1,)


def test_a_sheet_with_a_header_alone_has_no_rows() -> None:
    """That is no fault and no refusal."""
    report = checked(FORM, chunk({1: HEADER}))

    assert (report.rows, report.accepted.height, report.faults.height) == (0, 0, 0)
    assert report.accepted.schema == FORM.frame_schema


_cells = st.sampled_from(
    [text("A"), text("b"), BLANK, text(" "), number(3), number(99), (Kind.ERROR, "#N/A"), text("2024-02-29")]
)


@st.composite
def _sheets(draw: st.DrawFn) -> dict[int, list[Cell]]:
    gaps = draw(st.lists(st.integers(1, 3), max_size=25))
    row, rows = 1, {1: HEADER}
    for gap in gaps:
        row += gap
        rows[row] = [draw(_cells) for _ in HEADER]
    return rows


def _read(chunks: list[Chunk], skip: int = 0) -> list[CheckedChunk]:
    return list(read_rows(HandmadeWorkbook(chunks), FORM, skip=skip))


@given(_sheets(), st.data())
def test_where_chunks_are_cut_changes_nothing(rows: dict[int, list[Cell]], data: st.DataObject) -> None:
    """Rows, accepted rows and faults are the same for every division of a sheet into chunks."""
    numbers = list(rows)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(numbers)))) | {0, len(numbers)})
    parts = [numbers[a:b] for a, b in itertools.pairwise(cuts)]

    whole, cut = _read([chunk(rows)]), _read([chunk({row: rows[row] for row in part}) for part in parts])

    for field in ("accepted", "faults"):
        one, other = ([row for part in read for row in getattr(part, field).rows()] for read in (whole, cut))
        assert one == other


@given(_sheets(), st.integers(0, 30))
def test_what_is_skipped_is_what_was_read_before(rows: dict[int, list[Cell]], skip: int) -> None:
    """Resuming after n data rows gives the rest of what one pass gives, and counts all of it."""
    whole = [row for part in _read([chunk(rows)]) for row in part.rows.to_list()]
    reading = read_rows(HandmadeWorkbook([chunk(rows)]), FORM, skip=skip)

    rest = [row for part in reading for row in part.rows.to_list()]

    assert rest == whole[skip:]
    assert reading.rows_seen == len(whole)


@given(_sheets())
def test_every_data_row_is_accepted_or_has_a_fault(rows: dict[int, list[Cell]]) -> None:
    """No row is lost, and none is both; faults are sorted by row and column."""
    for part in _read([chunk(rows)]):
        accepted, faulty = part.accepted["source_row"].to_list(), part.faults["source_row"].unique().to_list()
        order = part.faults.select("source_row", pl.col("column").replace_strict({"site": 0, "crew": 1, "day": 2}))

        assert sorted(accepted + faulty) == part.rows.to_list()
        assert order.rows() == sorted(set(order.rows()))
