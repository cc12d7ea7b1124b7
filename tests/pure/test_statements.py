"""Statements are found by name, and a file that breaks the form is refused when it is read."""

from __future__ import annotations

import re

import pytest

from importer.db import statements
from importer.db.statements import parse, rooms

#: Ways to ask a clock other than `rowlease.clock()`.
OTHER_CLOCKS = re.compile(
    r"\b(now|statement_timestamp|transaction_timestamp|clock_timestamp|timeofday)\s*\(|\bcurrent_(timestamp|date|time)\b"
    r"|\blocaltime",
    re.IGNORECASE,
)


def test_unknown_name() -> None:
    """A name that is not there is answered with those that are."""
    with pytest.raises(KeyError, match=r"has no statement 'clam'; it has: .*\bclaim, "):
        statements("lease")["clam"]


def test_comments_are_not_sent() -> None:
    """Prose may hold per cent signs and braces, which would be read as placeholders."""
    text = "-- head {x}\n\n-- name: one\n-- 50 % of {it}.\nselect 1;\n"

    assert parse("room", text)["one"].as_string() == "select 1"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: a\n-- Says it.\nselect 1;\n-- name: a\n-- Says it.\nselect 2;", "two statements named 'a'"),
        ("-- name: a\nselect 1;", "says nowhere what it promises"),
        ("-- name: a\n-- Says it.\n", "is empty"),
        ("select 1;", "before its first"),
    ],
)
def test_broken_file(text: str, complaint: str) -> None:
    """A doubled name, a missing promise, no statement, or text that belongs to none."""
    with pytest.raises(ValueError, match=complaint):
        parse("room", text)


@pytest.mark.parametrize("room", rooms())
def test_time_belongs_to_the_database(room: str) -> None:
    """No statement asks another clock than `rowlease.clock()`, which tests can move."""
    asking = [name for name, text in statements(room).items() if OTHER_CLOCKS.search(text.as_string())]

    # The table of migrations is made before the function exists.
    assert [name for name in asking if (room, name) != ("migrate", "create_ledger")] == []
