"""What a person sees: safe in a page, safe in a terminal, aligned, and in words."""

from __future__ import annotations

import doctest
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from importer import display
from importer.display import count, duration, moment, printable, rate, size, table, text, text_table


def test_the_examples_in_the_docstrings_hold() -> None:
    """Every example of the room runs and gives what it says."""
    assert doctest.testmod(display).failed == 0


@pytest.mark.parametrize("place", ["header", "cell", "caption"])
def test_a_cell_that_holds_a_script_shows_as_text(place: str) -> None:
    """No text of a workbook becomes markup, wherever it stands."""
    hostile = "<script>alert('x')</script>\"&"
    shown = table(
        [hostile if place == "header" else "value"],
        [[hostile if place == "cell" else "x"]],
        caption=hostile if place == "caption" else None,
    )

    assert "<script" not in shown
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;" in shown


def test_an_html_table_has_a_cell_for_each_value() -> None:
    """Rows and columns are those that were given, numbers to the right."""
    shown = table(["row", "rule"], [[1204, "type"], [None, "unique"]])

    assert shown.count("<tr>") == 3
    assert shown.count("<td ") == 4
    assert 'text-align:right">1,204</td>' in shown
    assert f">{display.BLANK}</td>" in shown


def test_a_terminal_table_aligns_numbers_to_the_right() -> None:
    """A column of numbers, blanks included, ends at one edge; texts begin at one."""
    shown = text_table(["row", "value"], [[7, "a"], [1204, "b"], [None, "c"]], caption="Faults")

    assert shown.splitlines() == ["Faults", "  row  value", "─────  ─────", "    7  a", "1,204  b", "    –  c"]


def test_a_terminal_table_without_rows_has_its_headers() -> None:
    """Nothing found is a table too."""
    assert text_table(["row", "rule"], []).splitlines() == ["row  rule", "───  ────"]


def test_wide_letters_count_two_and_marks_none() -> None:
    """Chinese cells and combining accents keep the columns straight."""
    lines = text_table(["name", "n"], [["工地", 1], ["e\u0301", 2]]).splitlines()

    assert lines[2] == "工地  1"
    assert lines[3] == "e\u0301     2"


def test_a_long_cell_is_cut() -> None:
    """One cell of 32,767 letters does not push the others off the screen."""
    line = text_table(["value"], [["x" * 32_767]], widest=10).splitlines()[-1]

    assert line == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\x1b]0;title\x07b", "a\\x1b]0;title\\x07b"),
        ("two\nlines\r\n", "two\\nlines\\r\\n"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("no\u00a0break", "no break"),
        ("Zürich 工地 ✓", "Zürich 工地 ✓"),
    ],
)
def test_no_cell_steers_the_terminal(value: str, shown: str) -> None:
    """Escapes, line ends and direction marks show as what they are; letters of any script stay."""
    assert printable(value) == shown
    assert text_table(["v"], [[value]]).splitlines()[-1] == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (False, "no"),
        (0, "0"),
        (-1234, "-1,234"),
        (Decimal("1234.50"), "1,234.50"),
        (date(2026, 3, 1), "2026-03-01"),
        (time(7, 30), "07:30:00"),
        (timedelta(minutes=2), "2 min"),
        ("", ""),
        ("x", "x"),
    ],
)
def test_values_in_words(value: object, shown: str) -> None:
    """Each kind of value has one way to be shown."""
    assert text(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 ms"),
        (0.9996, "1.0 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (3_599.7, "1 h"),
        (86_399.9, "1 d"),
        (90_000, "1 d 1 h"),
        (-2, "-2.0 s"),
    ],
)
def test_durations_round_into_the_next_unit(seconds: float, shown: str) -> None:
    """No "60 s" and no "1000 ms"."""
    assert duration(timedelta(seconds=seconds)) == shown


def test_a_rate_needs_time() -> None:
    """Where no time has passed there is no rate, and no division by zero."""
    assert rate(5, timedelta(0)) == display.BLANK


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(999, "999 B"), (1_000, "1.0 kB"), (999_960, "1.0 MB"), (3_000_000_000, "3.0 GB"), (2 * 10**15, "2,000.0 TB")],
)
def test_sizes_round_into_the_next_unit(size_bytes: int, shown: str) -> None:
    """Few digits, decimal units."""
    assert size(size_bytes) == shown


def test_moments_name_their_zone() -> None:
    """A moment in UTC says so, another zone shows its offset, a moment without zone stays without."""
    at = datetime(2026, 3, 1, 7, 30, 15, 999_999)  # noqa: DTZ001 - a cell of a sheet has no zone

    assert moment(at) == "2026-03-01 07:30:15"
    assert moment(at.replace(tzinfo=UTC)) == "2026-03-01 07:30:15 UTC"
    assert moment(at.replace(tzinfo=timezone(timedelta(hours=2)))) == "2026-03-01 07:30:15+0200"


def test_a_count_agrees_with_its_noun() -> None:
    """Zero and many take the plural."""
    assert [count(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
