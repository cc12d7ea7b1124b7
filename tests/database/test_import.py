"""An Excel form goes into PostgreSQL: every row once, bad rows as faults, the same file twice changes nothing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from importer.import_job import attempts
from tests.importing import (
    DEFINITION,
    Serial,
    assert_each_row_once,
    broken_workbook,
    form,
    site_workbook,
    table_rows,
    without,
    workbook,
)


def test_good_rows_go_in_and_bad_rows_are_reported(db: Database, tmp_path: Path) -> None:
    """A row stands in the table with its values and its sheet row; a row with a bad cell does not."""
    path = workbook(
        tmp_path / "a.xlsx", [("S1", Serial(45351), 3, 0.25, " x "), ("S2", Serial(45351), "many", 1, None)]
    )

    job = im.import_workbook(path, form(), db=db, progress=False)

    assert (job.status, job.total_rows, job.success_rows, job.failed_rows) == ("partial_success", 2, 1, 1)
    with db.connection() as conn:
        assert [without(row, "import_job_id") for row in table_rows(conn)] == [
            {
                "site": "S1",
                "day": dt.date(2024, 2, 29),
                "crew": 3,
                "cost": Decimal("0.25"),
                "note": "x",
                "source_row": 2,
            }
        ]
    assert im.faults(job, db=db).select("source_row", "column", "rule", "value").rows() == [(3, "crew", "type", "many")]


def test_every_type_arrives_as_it_is(db: Database, tmp_path: Path) -> None:
    """What `check` calls the typed value is what a select gives back, for every type of a form."""
    columns = [
        {"name": name, "title": title, "type": kind}
        for name, title, kind in [
            ("a", "Site", "text"),
            ("b", "Date", "datetime"),
            ("c", "Crew size", "float"),
            ("d", "Cost", "decimal"),
            ("e", "Note", "text"),
        ]
    ]
    path = workbook(
        tmp_path / "a.xlsx",
        [('=1+"x", y\n\\.', Serial(45351), 0.1, 12.5, ""), ("é\u3000漢", Serial(1), 1e300, -3, "\\N")],
    )
    other = form(columns=columns)

    report = im.check(path, other)
    im.import_workbook(path, other, db=db, progress=False)

    with db.connection() as conn:
        there = [without(row, "import_job_id") for row in table_rows(conn)]
    assert there == report.accepted.to_dicts()


def test_the_same_file_twice_changes_nothing(db: Database, tmp_path: Path) -> None:
    """The second import says which job had it first, and the table stays as it is."""
    path = site_workbook(tmp_path / "a.xlsx", 200)
    first = im.import_workbook(path, form(), db=db, progress=False)
    with db.connection() as conn:
        before = table_rows(conn)

    second = im.import_workbook(path.rename(tmp_path / "b.xlsx"), form(), db=db, progress=False)

    assert first.submitted_before is None
    assert second.submitted_before is not None
    assert (second.id, second.submitted_before.id) == (first.id, first.id)
    with db.connection() as conn:
        assert table_rows(conn) == before
    assert len(im.jobs(db=db)) == 1


def test_force_makes_a_new_job(db: Database, tmp_path: Path) -> None:
    """Whoever wants the rows twice says so."""
    path = site_workbook(tmp_path / "a.xlsx", 20)
    first = im.import_workbook(path, form(), db=db, progress=False)

    second = im.import_workbook(path, form(), db=db, force=True, progress=False)
    third = im.import_workbook(path, form(), db=db, progress=False)

    assert second.id != first.id
    assert second.submitted_before is None
    assert third.id == first.id


def test_a_sheet_with_no_rows_is_a_success(db: Database, tmp_path: Path) -> None:
    """A header alone is a valid form with nothing in it."""
    job = im.import_workbook(workbook(tmp_path / "a.xlsx", []), form(), db=db, progress=False)

    assert (job.status, job.total_rows) == ("success", 0)


def test_no_good_row_is_a_failure_that_keeps_its_faults(db: Database, tmp_path: Path) -> None:
    """A sheet of bad rows alone failed, with a sentence, and is not run again."""
    path = site_workbook(tmp_path / "a.xlsx", 10, bad_every=1)

    job = im.import_workbook(path, form(), db=db, progress=False)
    again = im.import_workbook(path, form(), db=db, progress=False)

    assert (job.status, job.failed_rows) == ("failed", 10)
    assert "all 10 rows" in (job.last_error or "")
    assert im.faults(job, db=db).height == 10
    assert again.submitted_before is not None
    assert again.status == "failed"


def test_what_was_left_out_is_told_by_the_job(db: Database, tmp_path: Path) -> None:
    """Columns that the form does not know are named."""
    columns = [column for column in DEFINITION["columns"] if column["name"] != "note"]
    path = site_workbook(tmp_path / "a.xlsx", 10)

    job = im.import_workbook(path, form(columns=columns), db=db, progress=False)

    assert job.left_out is not None
    assert "Note" in str(job.left_out["unknown_columns"])


def test_a_workbook_that_breaks_off_leaves_no_row(db: Database, tmp_path: Path) -> None:
    """200,000 rows whose XML breaks off at row 150,000: batches were committed, and nothing of them stays."""
    path = broken_workbook(tmp_path / "a.xlsx", count=200_000, breaks_at=150_000)

    with pytest.raises(im.WorkbookError) as refusal:
        im.import_workbook(path, form(), db=db, progress=False)

    assert refusal.value.reason == "corrupt"
    job = im.jobs(db=db)[0]
    assert (job.status, job.reason, job.cursor, job.total_rows) == ("failed", "corrupt", 0, None)
    assert im.faults(job, db=db).is_empty()
    with db.connection() as conn:
        assert table_rows(conn) == []
        assert attempts(conn, job.id)[-1]["how"] == "refused"


def test_a_refusal_leaves_other_jobs_alone(db: Database, tmp_path: Path) -> None:
    """Only the rows of the refused job go."""
    good = im.import_workbook(site_workbook(tmp_path / "good.xlsx", 100), form(), db=db, progress=False)

    with pytest.raises(im.WorkbookError):
        im.import_workbook(
            broken_workbook(tmp_path / "bad.xlsx", count=3000, breaks_at=2000),
            form(),
            db=db,
            batch_rows=100,
            progress=False,
        )

    with db.connection() as conn:
        assert_each_row_once(conn, good.id, rows=100)
        assert {row["import_job_id"] for row in table_rows(conn)} == {good.id}


def test_a_missing_column_makes_no_table(db: Database, tmp_path: Path) -> None:
    """The header is judged before anything is created."""
    path = workbook(tmp_path / "a.xlsx", [])
    other = form(columns=[{"name": "zone", "title": "Zone", "type": "text", "required": True}])

    with pytest.raises(im.WorkbookError, match="Zone"):
        im.import_workbook(path, other, db=db, progress=False)

    with db.connection() as conn:
        assert conn.execute("select to_regclass('site_reports') as there").fetchall() == [{"there": None}]


def test_moments_of_a_job_come_from_the_database(db: Database, tmp_path: Path) -> None:
    """Started and finished are aware, in UTC and in order."""
    job = im.import_workbook(site_workbook(tmp_path / "a.xlsx", 10), form(), db=db, progress=False)

    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.created_at <= job.started_at <= job.finished_at
    assert job.created_at.utcoffset() == dt.timedelta(0)
    assert job.duration == job.finished_at - job.started_at


def test_a_decimal_without_scale_keeps_no_zeros(db: Database, tmp_path: Path) -> None:
    """12.5 is not 12.500000000000000, and 100 is not 1."""
    columns = [{"name": "cost", "title": "Cost", "type": "decimal"}]
    path = workbook(tmp_path / "a.xlsx", [("x", None, None, v, None) for v in (12.5, 100, 0, -0.25, 1200)])

    im.import_workbook(path, form(columns=columns), db=db, progress=False)

    with db.connection() as conn:
        assert [str(row["cost"]) for row in table_rows(conn)] == ["12.5", "100", "0", "-0.25", "1200"]
        assert table_rows(conn)[0]["cost"] == Decimal("12.5")
