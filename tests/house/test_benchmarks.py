"""The benchmarks measure what they say: their workbooks are valid and hold what was asked, their table adds up."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from benchmarks.recipes import RECIPES, Recipe
from benchmarks.report import Outcome, Results, Run
from benchmarks.suite import BENCHMARKS, MARKS, SIDES, Case
from benchmarks.writer import write_workbook

SMALL = replace(RECIPES["mixed-100k"], rows=300)


def read_back(path: Path) -> tuple[list[Any], list[list[Any]]]:
    """Return the titles and the rows under them."""
    book = openpyxl.load_workbook(path)
    titles, *rows = [list(row) for row in book["Report"].iter_rows(values_only=True)]
    return titles, rows


@pytest.mark.parametrize("inline", [False, True])
def test_openpyxl_reads_in_a_made_workbook_what_its_recipe_says(tmp_path: Path, *, inline: bool) -> None:
    """The makers write valid workbooks, with texts shared or inline."""
    counted = write_workbook(replace(SMALL, inline=inline), tmp_path / "made.xlsx")

    titles, rows = read_back(tmp_path / "made.xlsx")

    assert counted == (300, 0)
    assert titles == [column.title for column in SMALL.columns]
    assert len({row[4] for row in rows}) == 300  # every note is unique
    assert {type(value) for row in rows for value in row} == {str, int, float, bool, dt.datetime, type(None)}
    assert any("&" in row[2] and not row[2].isascii() for row in rows)


def test_inline_and_shared_strings_hold_the_same_cells(tmp_path: Path) -> None:
    """How text is written changes no cell."""
    write_workbook(SMALL, tmp_path / "shared.xlsx")
    write_workbook(replace(SMALL, inline=True), tmp_path / "inline.xlsx")

    assert read_back(tmp_path / "shared.xlsx") == read_back(tmp_path / "inline.xlsx")


def test_bad_cells_are_counted_and_nothing_else_changes(tmp_path: Path) -> None:
    """The counts that a run is held to are those of the cells that differ."""
    write_workbook(SMALL, tmp_path / "clean.xlsx")
    accepted_rows, faults = write_workbook(replace(SMALL, bad_cells=True), tmp_path / "bad.xlsx")

    clean, bad = read_back(tmp_path / "clean.xlsx")[1], read_back(tmp_path / "bad.xlsx")[1]
    changed = [[old != new for old, new in zip(*rows, strict=True)] for rows in zip(clean, bad, strict=True)]

    assert faults == sum(map(sum, changed))
    assert accepted_rows == sum(not any(row) for row in changed)
    assert 0.01 < faults / (300 * 12) < 0.03


@pytest.mark.parametrize("recipe", [SMALL, replace(RECIPES["wide-20k"], rows=50)], ids=lambda recipe: recipe.name)
def test_a_workbook_made_twice_has_the_same_bytes(tmp_path: Path, recipe: Recipe) -> None:
    """Everybody measures on the same files."""
    write_workbook(recipe, tmp_path / "first.xlsx")
    write_workbook(recipe, tmp_path / "second.xlsx")

    assert (tmp_path / "first.xlsx").read_bytes() == (tmp_path / "second.xlsx").read_bytes()


def test_every_case_and_mark_names_something_that_is_there() -> None:
    """Sides, workbooks, cases and marks fit together."""
    for benchmark in BENCHMARKS.values():
        assert {case.side for case in benchmark.cases} <= set(SIDES)
        assert {case.workbook for case in benchmark.cases} <= set(RECIPES)
        assert benchmark.baseline in benchmark.cases
    for mark in MARKS:
        assert {mark.case, mark.over or mark.case} <= set(BENCHMARKS[mark.benchmark].cases)


def run(wall_s: float) -> Run:
    """Return a run that took so long."""
    return Run(wall_s=wall_s, cpu_s=2.0, server_cpu_s=None, peak_mb=100.0)


def results(ours: tuple[Run, ...], *, divisor: int = 1) -> Results:
    """Return results of 100k with two sides that ran and one that failed."""
    cases = {"ours": ours, "bare": (run(3.0), run(1.0), run(2.0)), "dlt": ()}
    outcomes = [
        Outcome(
            benchmark="load-100k",
            case=Case(side, "mixed-100k"),
            runs=runs,
            reason="" if runs else "failed: no | memory",
        )
        for side, runs in cases.items()
    ]
    return Results(
        date="2026-01-02", machine="2 cores", postgresql="18.6", rounds=3, divisor=divisor, outcomes=outcomes
    )


def test_the_table_shows_medians_and_ratios_to_the_baseline() -> None:
    """One slow run moves the range, not the median."""
    table = results((run(1.0), run(9.0), run(1.5))).to_markdown()

    assert "| ours | 1.50 | 1.00-9.00 | 0.75 | 2.00 | 1.00 |  | 100 |" in table
    assert "| bare | 2.00 | 1.00-3.00 | 1.00 | 2.00 | 1.00 |  | 100 |" in table


def test_a_side_that_failed_has_a_reason_and_no_time() -> None:
    """A benchmark that loads nothing is no benchmark."""
    assert "| dlt | failed: no / memory | | | | | | |" in results((run(1.0),)).to_markdown()


@pytest.mark.parametrize(("wall_s", "shown"), [(2.2, "1.10"), (2.4, "**1.20**")])
def test_a_mark_that_is_missed_stands_in_bold(wall_s: float, shown: str) -> None:
    """A mark just reached is reached."""
    line = f"| 100k x 12 end to end, times bare | {shown} | 1.10 | | 0.75 | 0.60 |"

    assert line in results((run(wall_s),)).to_markdown()


def test_a_quick_run_judges_no_mark() -> None:
    """Small workbooks say nothing about the marks."""
    table = results((run(9.0),), divisor=10).to_markdown()

    assert "Marks" not in table
    assert "only 1/10 of its rows" in table
