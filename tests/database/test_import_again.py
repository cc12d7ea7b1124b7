"""What is asked of a submission, and a content that comes again: under another version, under a key, taken up."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

import importer as im
from importer.db import Connection, Database
from importer.import_job import Job
from tests.importing import calls_on, form, site_workbook, table_rows
from tests.waiting import until

NEWER = form(description="second version")


def there(conn: Connection) -> dict[int, int]:
    """Count the table's rows by job."""
    jobs = [row["import_job_id"] for row in table_rows(conn)]
    return {job: jobs.count(job) for job in jobs}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a workbook of 50 good rows."""
    return site_workbook(tmp_path / "a.xlsx", 50, bad_every=None)


def stopped(db: Database, path: Path) -> Job:
    """Import 20 of the rows and stop."""

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        im.import_workbook(path, form(), db=db, batch_rows=10, progress=False, at=calls_on("committed", 2, stop))
    return im.jobs(db=db)[0]


def test_a_job_whose_content_is_in_under_another_version_is_not_taken_up(
    db: Database, conn: Connection, path: Path
) -> None:
    """Neither by `retry` nor by sending it again: the rows would be there twice."""
    conn.execute("create table site_reports (site text)")
    with pytest.raises(im.TargetError):
        im.import_workbook(path, form(), db=db, progress=False)
    conn.execute("drop table site_reports")
    (first,) = im.jobs(db=db)
    second = im.import_workbook(path, NEWER, db=db, progress=False)

    with pytest.raises(im.JobStateError, match=f"import job {second.id}"):
        im.retry(first, db=db)
    with pytest.raises(im.JobConflictError, match="replace=True"):
        im.import_workbook(path, form(), db=db, progress=False)
    assert there(conn) == {second.id: 50}

    again = im.import_workbook(path, form(), db=db, replace=True, progress=False)

    assert (again.id, again.status) == (first.id, "success")
    assert there(conn) == {first.id: 50}
    assert im.job(second, db=db).replaced_by == first.id


def test_a_job_that_is_to_be_replaced_is_not_taken_up(db: Database, conn: Connection, path: Path) -> None:
    """Its rows go when the newer one starts, so it must not go on from its cursor in between."""
    first = stopped(db, path)
    second = im.submit(path, NEWER, db=db, replace=True)

    with pytest.raises(im.JobStateError, match=f"import job {second.id}"):
        im.retry(first, db=db)
    im.work(db=db)

    assert there(conn) == {second.id: 50}
    assert im.job(first, db=db).replaced_by == second.id


def test_a_replacing_job_that_was_cancelled_is_taken_up(db: Database, conn: Connection, path: Path) -> None:
    """What it is to replace is not in its way."""
    stopped(db, path)
    second = im.submit(path, NEWER, db=db, replace=True)
    im.cancel(second, db=db)

    im.retry(second, db=db)
    im.work(db=db)

    assert there(conn) == {second.id: 50}


def test_one_key_for_two_contents_at_once_is_an_error(db: Database, path: Path, tmp_path: Path) -> None:
    """The second waits until the first is written, and is told what differs."""
    other = site_workbook(tmp_path / "b.xlsx", 10)
    im.submit(site_workbook(tmp_path / "c.xlsx", 5), form(), db=db)
    told: list[Exception] = []

    def submit_other() -> None:
        try:
            im.submit(other, form(), db=db, key="march")
        except im.ImporterError as error:
            told.append(error)

    with psycopg.connect(db.conninfo) as own, psycopg.connect(db.conninfo, autocommit=True) as looking:
        im.submit(path, form(), db=db, conn=own, key="march")  # type: ignore[arg-type]
        second = threading.Thread(target=submit_other)
        second.start()
        waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        until(lambda: looking.execute(waiting).fetchall())
        own.commit()
        second.join()

    assert [type(error) for error in told] == [im.JobConflictError]


@pytest.mark.parametrize(
    "option", [{"batch_rows": 0}, {"priority": 4}, {"key": ""}, {"key": "a\0b"}, {"key": "x" * 2001}]
)
def test_an_option_that_no_job_can_have_is_named(db: Database, path: Path, option: dict[str, Any]) -> None:
    """Before anything is written."""
    with pytest.raises(im.JobError, match=next(iter(option))):
        im.submit(path, form(), db=db, **option)

    assert im.jobs(db=db) == ()


def test_a_file_name_that_is_no_text_is_shown_as_far_as_it_is(db: Database, path: Path) -> None:
    """Names of old archives are bytes in whatever code page."""
    odd = os.fsdecode(os.fsencode(path.parent) + b"/M\xe4rz.xlsx")
    shutil.copy(path, odd)

    job = im.import_workbook(odd, form(), db=db, progress=False)

    assert (job.status, job.file_name) == ("success", "M?rz.xlsx")


def test_an_interrupt_before_the_first_row_gives_the_job_back(
    db: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is claimed as it is made; a stop while the bar is drawn must not leave it held."""

    def stop(*_arguments: object, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("importer.batch.here.bar", stop)
    with pytest.raises(KeyboardInterrupt):
        im.import_workbook(path, form(), db=db, progress=False)

    (job,) = im.jobs(db=db)
    assert (job.status, job.attempt_count) == ("pending", 0)


def _broken(conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error):
        conn.execute("select 1 / 0")


@pytest.mark.parametrize(
    ("before", "says"), [(_broken, "roll the transaction back"), (psycopg.Connection.close, "closed")]
)
def test_a_connection_of_the_callers_that_takes_nothing_is_told(
    db: Database, path: Path, before: Callable[[psycopg.Connection[Any]], None], says: str
) -> None:
    """In the words of this package."""
    with psycopg.connect(db.conninfo) as own:
        before(own)
        with pytest.raises(im.DatabaseError, match=says):
            im.submit(path, form(), db=db, conn=own)  # type: ignore[arg-type]
