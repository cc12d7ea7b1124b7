"""The rules of a form: each breach in its row, with a message a person understands."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest

from importer.excel.cells import Kind
from importer.forms.rules import Rules
from tests.pure.forms.handmade import BLANK, Cell, checked, chunk, form, number, rules, text


@pytest.mark.parametrize(
    ("column", "good", "bad", "rule", "message"),
    [
        ({"type": "text", "required": True}, text("a"), text("  "), "required", "a value is required"),
        ({"type": "integer", "min": 1, "max": 10}, number(10), number(11), "range", "from 1 to 10"),
        ({"type": "integer", "min": 1}, number(1), number(0), "range", "at least 1"),
        ({"type": "decimal", "max": "0.3"}, number("0.30000000000000004"), number("0.3001"), "range", "at most 0.3"),
        ({"type": "float", "max": 0.5}, number("0.5"), number("0.51"), "range", "at most 0.5"),
        ({"type": "date", "min": "2024-01-01"}, text("2024-01-01"), text("2023-12-31"), "range", "2024-01-01"),
        ({"type": "datetime", "max": "2024-01-01T12:00"}, text("2024-01-01"), text("2024-01-01 12:01"), "range", "12"),
        ({"type": "time", "min": "08:00"}, text("08:00"), text("07:59"), "range", "08:00"),
        ({"type": "duration", "max": "36:00:00"}, text("36:00:00"), text("36:00:01"), "range", "36:00:00"),
        ({"type": "text", "choices": ["dry", "rain"]}, text(" dry"), text("Dry"), "choice", 'one of "dry", "rain"'),
        ({"type": "integer", "choices": [1, 2]}, number("2.0"), number(3), "choice", 'one of "1", "2"'),
        ({"type": "decimal", "precision": 9, "scale": 2, "choices": [1.5]}, number("1.50"), number(1), "choice", "1.5"),
        ({"type": "text", "max_length": 3}, text("äöü"), text("äöüx"), "length", "at most 3 characters"),
        ({"type": "text", "pattern": r"^[A-Z]{2}\d$"}, text("AB1"), text("AB1\n2"), "pattern", "matches"),
        ({"type": "text", "pattern": "b"}, text("abc"), text("ac"), "pattern", "matches b"),
    ],
)  # fmt: skip
def test_a_breach_is_a_fault_of_its_cell(
    column: dict[str, object], good: Cell, bad: Cell, rule: str, message: str
) -> None:
    """The good cell passes, the bad one is reported with what was expected."""
    declared = form({"name": "c", **column}, {"name": "other", "type": "text"})
    rows = {1: [text("c"), text("other")], 2: [good, text("x")], 3: [bad, text("x")], 4: [good, text("x")]}

    report = checked(declared, chunk(rows))

    assert rules(report) == [(3, "c", rule)]
    assert message in report.faults.item(0, "message")
    assert report.accepted["source_row"].to_list() == [2, 4]


def test_a_blank_breaks_no_rule_but_required() -> None:
    """An optional cell may be blank, whatever else is asked of it."""
    declared = form(
        {"name": "c", "type": "text", "choices": ["x"], "pattern": "x", "max_length": 1}, {"name": "d", "type": "text"}
    )

    report = checked(declared, chunk({1: [text("c"), text("d")], 2: [BLANK, text("y")]}))

    assert report.accepted.rows() == [(2, None, "y")]


def test_a_cell_that_breaks_several_rules_has_the_first_as_its_fault() -> None:
    """In the order required, range, choice, length, pattern."""
    declared = form({"name": "c", "type": "text", "choices": ["x"], "pattern": "x", "max_length": 1})

    report = checked(declared, chunk({1: [text("c")], 2: [text("yy")]}))

    assert rules(report) == [(2, "c", "choice")]


def test_breaches_come_back_as_rows_of_the_frame() -> None:
    """Every breach of every column and row, in a frame of any length."""
    judged = Rules(form({"name": "n", "type": "integer", "min": 5}, {"name": "t", "type": "text", "required": True}))
    frame = pl.DataFrame({"n": pl.Series(range(10), dtype=pl.Int64), "t": [None if n % 2 else "x" for n in range(10)]})

    breaches = judged.breaches(frame)

    found = set(breaches.select("index", "column", "rule").rows())
    assert found == {(n, "n", "range") for n in range(5)} | {(n, "t", "required") for n in range(1, 10, 2)}


def test_a_frame_without_rows_breaks_no_rule() -> None:
    """There is nothing to judge."""
    declared = form({"name": "c", "type": "date", "required": True, "min": "2024-01-01"})

    assert Rules(declared).breaches(pl.DataFrame(schema={"c": pl.Date})).is_empty()


def test_rules_hold_for_typed_values_and_not_for_their_text() -> None:
    """Numbers that Excel keeps with noise, and days written in two ways, are compared as what they are."""
    declared = form(
        {"name": "n", "type": "decimal", "choices": ["0.075"]}, {"name": "d", "type": "date", "choices": ["2024-02-29"]}
    )
    rows = {
        1: [text("n"), text("d")],
        2: [number("7.4999999999999997E-2"), (Kind.DATE, "45351")],
        3: [text("0.0750"), text("2024-02-29")],
    }

    report = checked(declared, chunk(rows))

    assert report.accepted.select("n", "d").rows() == [(Decimal("0.075"), dt.date(2024, 2, 29))] * 2
