"""The demo: what it writes is what comes out, its kill falls into the middle, and it can be played again."""

from __future__ import annotations

import dataclasses
import io
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from importer.demo import BAD_CELLS, FORM, TABLE, run, write_workbook
from importer.demo.screen import Screen
from importer.demo.workbook import TOTALS_FAULTS

AT = datetime(2026, 3, 1, 7, 30, tzinfo=UTC)


def test_each_mistake_of_the_workbook_is_found_as_what_it_is(tmp_path: Path) -> None:
    """The check finds the bad cells that were written, each by its rule, and no other."""
    written = write_workbook(tmp_path / "site_report.xlsx", rows=1_000, exported_at=AT)

    report = im.check(written.path, im.Form.from_dict(FORM))

    expected = Counter((bad.column, bad.rule) for bad in BAD_CELLS) + Counter(TOTALS_FAULTS.items())
    assert Counter(report.faults.select("column", "rule").iter_rows()) == expected
    assert (report.rows, report.rows - report.accepted.height) == (written.rows, written.bad_rows)
    assert report.accepted["cost"].sum() == written.cost


def test_the_mistakes_are_of_every_kind() -> None:
    """About forty bad cells, of every rule that a workbook alone can break."""
    rules = {
        "required", "unique", "range", "choice", "length", "pattern", "type", "bad_date", "cell_error",
        "no_cached_value", "bad_character", "precision", "bad_cell",
    }  # fmt: skip

    assert {bad.rule for bad in BAD_CELLS} == rules
    assert 38 <= len(BAD_CELLS) <= 45


def test_the_same_moment_writes_the_same_cells(tmp_path: Path) -> None:
    """The workbook is no game of chance."""
    first = write_workbook(tmp_path / "a.xlsx", rows=300, exported_at=AT)
    second = write_workbook(tmp_path / "b.xlsx", rows=300, exported_at=AT)

    assert im.read_cells(first.path).equals(im.read_cells(second.path))
    assert dataclasses.replace(first, path=second.path) == second


def test_the_demo_kills_resumes_and_counts(conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice in one database: each time a committed part, a killed importer, and every row once."""
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_STORE_FOLDER", str(tmp_path / "store"))
    shown = [io.StringIO(), io.StringIO()]

    codes = [run(rows=12_000, folder=tmp_path / "demo", screen=Screen(stream)) for stream in shown]

    assert codes == [0, 0]
    for stream in shown:
        text = stream.getvalue()
        cursor = int(re.search(r"cursor +([\d,]+)", text)[1].replace(",", ""))  # type: ignore[index]  # it is there
        assert 0 < cursor < 12_001
        assert re.search(r"rows in the file +12,001\n", text)
        assert re.search(r"rows in the table +11,961\n", text)
        assert re.search(r"duplicates +0\n", text)
    with im.connect() as db:
        _assert_killed_once(db)


def _assert_killed_once(db: Database) -> None:
    """The newest job has two attempts, one cut off and one that finished; its rows are those of the table."""
    job = im.jobs(db=db, limit=1)[0]
    with db.connection() as conn:
        attempts = conn.execute(
            "select how from rowlease.import_attempts where job_id = %s order by fence", [job.id]
        ).fetchall()
        rows = conn.execute(
            f"select count(*) as n, count(distinct source_row) as once from {TABLE} where import_job_id = %s", [job.id]
        ).fetchone()
    assert [row["how"] for row in attempts] == ["interrupted", "finished"]
    assert rows == {"n": job.success_rows, "once": job.success_rows}
