"""Uniqueness within one sheet: the first row keeps a value, later ones are faults that name it."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from importer.forms import FAULT_SCHEMA, CheckedChunk, Form, SeenKeys
from tests.pure.forms.handmade import BLANK, Cell, checked, chunk, form, number, rules, text

KEYED = form(
    {"name": "a", "type": "integer"},
    {"name": "b", "type": "integer"},
    {"name": "u", "type": "integer", "unique": True},
    key=["a", "b"],
)


def _chunk(rows: list[tuple[int, int, int, int | None]]) -> CheckedChunk:
    accepted = pl.DataFrame(rows, schema=KEYED.frame_schema, orient="row")
    return CheckedChunk(rows=accepted["source_row"], accepted=accepted, faults=pl.DataFrame(schema=FAULT_SCHEMA))


def test_a_value_that_is_there_already_is_a_fault_that_names_its_row() -> None:
    """Seven as a number, as text and with spaces is one value of a text column."""
    declared = form({"name": "code", "type": "text", "unique": True})
    cells: list[Cell] = [text("code"), number(7), text("7"), number("7.0"), text("7 "), text("8")]

    report = checked(declared, chunk({at: [cell] for at, cell in enumerate(cells, 1)}))

    assert rules(report) == [(3, "code", "unique"), (4, "code", "unique"), (5, "code", "unique")]
    assert all("row 2 " in message for message in report.faults["message"])
    assert report.accepted["source_row"].to_list() == [2, 6]


def test_blanks_do_not_clash() -> None:
    """A unique column may be blank in as many rows as it likes."""
    declared = form({"name": "code", "type": "text", "unique": True}, {"name": "n", "type": "integer"})

    report = checked(declared, chunk({1: [text("code"), text("n")], 2: [BLANK, number(1)], 3: [BLANK, number(1)]}))

    assert report.faults.is_empty()


def test_the_fault_of_a_key_stands_at_its_first_column() -> None:
    """It shows the value there and names all columns, in the words of the import."""
    seen = SeenKeys(KEYED)

    sifted = seen.sift(_chunk([(2, 1, 1, 1), (3, 1, 2, 2), (4, 1, 1, 3)]))

    assert sifted.faults.select("source_row", "column", "rule", "value").rows() == [(4, "a", "unique", "1")]
    assert sifted.faults.item(0, "message") == "a and b: the same as in row 2 of this sheet"


def test_a_row_with_another_fault_holds_no_value() -> None:
    """Its twin is not a twin: the bad row will not be in the table."""
    declared = form({"name": "code", "type": "text", "unique": True}, {"name": "n", "type": "integer"})
    rows = {2: [text("A"), text("x")], 3: [text("A"), number(1)], 4: [text("A"), number(2)]}

    report = checked(declared, chunk({1: [text("code"), text("n")], **rows}))

    assert rules(report) == [(2, "n", "type"), (4, "code", "unique")]
    assert "row 3 " in report.faults.item(1, "message")


def test_a_row_refused_for_one_value_holds_none_of_its_others() -> None:
    """Row 3 repeats the key of row 2, so its value 9 is free for row 4."""
    seen = SeenKeys(KEYED)

    sifted = seen.sift(_chunk([(2, 1, 1, 1), (3, 1, 1, 9), (4, 2, 2, 9)]))

    assert sifted.faults["source_row"].to_list() == [3]
    assert sifted.accepted["source_row"].to_list() == [2, 4]


def test_a_form_without_unique_values_lets_everything_pass() -> None:
    """The chunk comes back as it is."""
    declared = form({"name": "c", "type": "text"})
    part = CheckedChunk(
        rows=pl.Series([2], dtype=pl.Int64),
        accepted=pl.DataFrame({"source_row": [2], "c": ["x"]}),
        faults=pl.DataFrame(schema=FAULT_SCHEMA),
    )

    assert SeenKeys(declared).sift(part) is part


_small = st.integers(0, 4)
_rows = st.lists(st.tuples(_small, _small, st.one_of(st.none(), _small)), max_size=40)


def _expected(rows: list[tuple[int, int, int | None]]) -> tuple[list[int], list[tuple[int, str]]]:
    """What a table with both unique indexes does, row by row."""
    keys: set[tuple[int, int]] = set()
    values: set[int] = set()
    good, faults = [], []
    for at, (a, b, u) in enumerate(rows, 2):
        clashes = [(at, name) for name, clash in (("a", (a, b) in keys), ("u", u in values)) if clash]
        faults += clashes
        if not clashes:
            good.append(at)
            keys.add((a, b))
            values |= {u} if u is not None else set()
    return good, faults


@given(_rows, st.integers(1, 10))
def test_the_rows_that_stay_are_those_a_table_would_take(rows: list[tuple[int, int, int | None]], size: int) -> None:
    """In sheet order, whatever the chunks: the same as inserting row by row under unique indexes."""
    seen = SeenKeys(KEYED)
    numbered = [(at, *row) for at, row in enumerate(rows, 2)]

    sifted = [seen.sift(_chunk(numbered[at : at + size])) for at in range(0, len(numbered), size)]

    good = [row for part in sifted for row in part.accepted["source_row"]]
    faults = [fault for part in sifted for fault in part.faults.select("source_row", "column").rows()]
    assert (good, faults) == _expected(rows)


def test_a_hundred_thousand_values_are_kept_apart() -> None:
    """No two different values are taken for the same, across many chunks; each repeated one is found."""
    declared = Form.from_dict({"name": "f", "table": "t", "columns": [{"name": "c", "type": "text", "unique": True}]})
    seen = SeenKeys(declared)
    found = 0
    for start in range(0, 110_000, 10_000):
        rows = pl.int_range(start, start + 10_000, eager=True)
        values = (rows % 100_000).cast(pl.String)
        part = CheckedChunk(
            rows=rows,
            accepted=pl.DataFrame({"source_row": rows, "c": values}),
            faults=pl.DataFrame(schema=FAULT_SCHEMA),
        )
        found += seen.sift(part).faults.height

    assert found == 10_000
