"""What is old goes, and nothing that a job can need."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from importer.retention import needed
from tests.importing import form, site_workbook, workbook

MoveClock = Callable[..., None]
YEAR = timedelta(days=365)


def age(db: Database, content_hash: str) -> Path:
    """Make a workbook in the store as old as a year."""
    place = im.Store(db.settings.store).path(content_hash)
    long_ago = place.stat().st_mtime - YEAR.total_seconds()
    os.utime(place, (long_ago, long_ago))
    return place


@pytest.fixture
def imported(db: Database, tmp_path: Path) -> im.Job:
    """Return an import that ended, with faults."""
    return im.import_workbook(site_workbook(tmp_path / "march.xlsx", 100), form(), db=db, progress=False)


def test_young_faults_and_workbooks_stay(db: Database, imported: im.Job) -> None:
    """Nothing is removed before its time."""
    age(db, imported.content_hash)

    assert im.prune(db) == im.Pruned(faults=0, workbooks=0)
    assert im.faults(imported, db=db).height == 2


def test_old_faults_and_workbooks_go_and_the_job_stays(db: Database, imported: im.Job, move_clock: MoveClock) -> None:
    """The counts of the job are its memory, and the same file is still known."""
    place = age(db, imported.content_hash)
    move_clock(YEAR)
    db.close()

    with im.connect(db.conninfo, db.settings) as later:
        pruned = im.prune(later)

        assert pruned == im.Pruned(faults=2, workbooks=1)
        assert im.job(imported, db=later).failed_rows == 2
        assert im.faults(imported, db=later).height == 0
    assert not place.exists()


def test_a_workbook_that_an_open_job_names_stays(db: Database, tmp_path: Path, move_clock: MoveClock) -> None:
    """However old it is: pending, and cancelled before its end, which can be taken up."""
    pending = im.submit(site_workbook(tmp_path / "march.xlsx", 3), form(), db=db)
    cancelled = im.cancel(im.submit(site_workbook(tmp_path / "april.xlsx", 4), form(), db=db), db=db)
    places = [age(db, job.content_hash) for job in (pending, cancelled)]
    move_clock(YEAR)

    with im.connect(db.conninfo, db.settings) as later:
        assert im.prune(later).workbooks == 0
    assert all(place.exists() for place in places)


def test_a_workbook_of_no_job_stays_for_a_day(db: Database, tmp_path: Path) -> None:
    """It may be a submission under way; after a day it is one that was broken off."""
    content_hash = im.Store(db.settings.store).put(site_workbook(tmp_path / "march.xlsx", 3)).content_hash

    young = im.prune(db).workbooks
    age(db, content_hash)
    old = im.prune(db).workbooks

    assert (young, old) == (0, 1)


def test_a_workbook_put_again_while_it_is_removed_stays(db: Database, tmp_path: Path) -> None:
    """Somebody submits the same content at the very moment: it has a name in the store afterwards."""
    source = site_workbook(tmp_path / "march.xlsx", 3)
    store = im.Store(db.settings.store)
    content_hash = store.put(source).content_hash
    age(db, content_hash)

    def put_meanwhile() -> bool:
        store.put(source)
        return False

    store.discard(content_hash, older_than=timedelta(days=1), needed=put_meanwhile)

    assert store.verify(content_hash).content_hash == content_hash


def test_putting_known_content_makes_it_young(db: Database, tmp_path: Path) -> None:
    """A submission of content that lies there for a year has a day like any other."""
    source = site_workbook(tmp_path / "march.xlsx", 3)
    store = im.Store(db.settings.store)
    content_hash = store.put(source).content_hash
    age(db, content_hash)
    store.put(source)

    assert not store.discard(content_hash, older_than=timedelta(days=1), needed=lambda: False)


def test_a_removal_that_was_broken_off_is_undone(db: Database, tmp_path: Path) -> None:
    """What was put aside has its name again."""
    store = im.Store(db.settings.store)
    content_hash = store.put(site_workbook(tmp_path / "march.xlsx", 3)).content_hash
    age(db, content_hash)

    def crash() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.discard(content_hash, older_than=timedelta(days=1), needed=crash)
    store.restore()

    assert store.verify(content_hash).content_hash == content_hash


def test_needed_knows_nothing_of_contents_without_a_job(db: Database) -> None:
    """They are not in the answer."""
    with db.connection() as conn:
        assert needed(conn, ["0" * 64], keep=YEAR) == set()


@pytest.mark.parametrize(
    ("table", "columns", "ended_well", "stays"),
    [
        ("outbox_messages", {"topic": "'t'", "key": "'k'", "payload": "'{}'"}, "dispatched", "dead"),
        (
            "task_runs",
            {"task_name": "'t'", "task_version": "1", "input": "'{}'", "trace_id": "'x'"},
            "succeeded",
            "failed",
        ),
    ],
)
def test_what_ended_well_goes_and_what_failed_stays(
    db: Database, table: str, columns: dict[str, str], ended_well: str, stays: str
) -> None:
    """After its days; what is young, open, failed or dead is left to be looked at."""
    insert = (
        f"insert into rowlease.{table} (status, finished_at, {', '.join(columns)})"
        f" values (%s, rowlease.clock() - %s, {', '.join(columns.values())})"
    )
    with db.connection() as conn:
        for status, days in ((ended_well, 365), (stays, 365), (ended_well, 1)):
            conn.execute(insert, [status, timedelta(days=days)])

    pruned = im.prune(db)

    with db.connection() as conn:
        left = conn.execute(f"select status from rowlease.{table} order by id").fetchall()
    assert pruned.runs + pruned.messages == 1
    assert [row["status"] for row in left] == [stays, ended_well]


def test_a_run_under_a_key_stays(db: Database) -> None:
    """It knows the key again."""
    with db.connection() as conn:
        conn.execute(
            "insert into rowlease.task_runs (status, finished_at, task_name, task_version, input, trace_id, run_key)"
            " values ('succeeded', rowlease.clock() - interval '1 year', 't', 1, '{}', 'x', 'march')"
        )

    assert im.prune(db).runs == 0


def test_days_are_those_of_the_settings(db: Database, imported: im.Job, move_clock: MoveClock) -> None:
    """A shorter setting removes earlier."""
    move_clock(timedelta(days=2))
    settings = dataclasses.replace(db.settings, keep_faults_days=1)

    with im.connect(db.conninfo, settings) as later:
        assert im.prune(later).faults == 2
        assert im.faults(imported, db=later).height == 0


def test_an_import_whose_changes_are_not_kept_any_more_is_not_undone(
    db: Database, tmp_path: Path, move_clock: MoveClock
) -> None:
    """Before-images go with the workbook; half an undo would be none."""
    im.import_workbook(site_workbook(tmp_path / "a.xlsx", 5, bad_every=None), form(key=["site"]), db=db, progress=False)
    updating = form(key=["site"], on_clash="update")
    path = workbook(tmp_path / "b.xlsx", [("S0000000", None, 7, 1, None)])
    job = im.import_workbook(path, updating, db=db, progress=False)
    move_clock(YEAR)
    db.close()

    with im.connect(db.conninfo, db.settings) as later:
        assert im.prune(later).before_images == 1
        with pytest.raises(im.JobStateError, match="not kept any more"):
            im.undo(job, db=later)
