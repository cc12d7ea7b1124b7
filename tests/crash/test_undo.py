"""A killed update and a killed undo resume: each row changed once, and back to what it was."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import importer as im
from importer.db import Database
from tests.crash.victim import Victim, with_lease
from tests.importing import form, site_rows, site_workbook, table_rows, workbook

MoveClock = Callable[..., None]

OLD, NEW, BATCH = 300, 400, 50
UPDATES = form(key=["site"], on_clash="update")


@pytest.fixture
def victim(db: Database, tmp_path: Path) -> Victim:
    """Give a victim whose import changes 300 rows that are there and brings 100 new ones."""
    im.import_workbook(
        site_workbook(tmp_path / "a.xlsx", OLD, bad_every=None), form(key=["site"]), db=db, progress=False
    )
    rows = [(site, day, crew, cost, "changed") for site, day, crew, cost, _ in site_rows(NEW, bad_every=None)]
    path = workbook(tmp_path / "b.xlsx", rows)
    settings = with_lease(db.settings, 300, max_attempts=1000)
    return Victim(conninfo=db.conninfo, settings=settings, path=path, batch_rows=BATCH, how=UPDATES)


def rows_of(db: Database) -> list[dict[str, Any]]:
    """Give the table's rows."""
    with db.connection() as conn:
        return table_rows(conn)


@pytest.mark.parametrize(("point", "times"), [("copying", 3), ("copied", 2), ("committed", 7), ("finishing", 1)])
def test_a_killed_update_goes_on(victim: Victim, db: Database, move_clock: MoveClock, point: str, times: int) -> None:
    """Each row is changed once, each has one before-image, and taking it all back restores the table."""
    before = rows_of(db)
    assert replace(victim, point=point, times=times).run() == -signal.SIGKILL

    move_clock(dt.timedelta(minutes=6))
    with Database(db.conninfo, db.settings) as later:
        job = im.import_workbook(victim.path, UPDATES, db=later, progress=False)
        assert (job.status, job.success_rows, job.updated_rows) == ("success", NEW, OLD)
        assert [row["note"] for row in rows_of(later)] == ["changed"] * NEW
        im.undo(job, db=later, progress=False)

        assert rows_of(later) == before


@pytest.mark.parametrize(("point", "times"), [("claimed", 1), ("copied", 3), ("committed", 4), ("finishing", 1)])
def test_a_killed_undo_goes_on(victim: Victim, db: Database, move_clock: MoveClock, point: str, times: int) -> None:
    """What was taken back stays so, the rest follows, and nothing is given back twice."""
    before = rows_of(db)
    job = im.import_workbook(victim.path, UPDATES, db=db, progress=False, batch_rows=BATCH)
    assert replace(victim, undo=job.id, point=point, times=times).run() == -signal.SIGKILL
    assert im.job(job, db=db).undone_at is None

    move_clock(dt.timedelta(minutes=6))
    with Database(db.conninfo, db.settings) as later:
        back = im.undo(job, db=later, progress=False)

        assert (back.status, back.success_rows, back.updated_rows, back.failed_rows) == ("success", NEW, OLD, 0)
        assert rows_of(later) == before
        assert im.job(job, db=later).undone_by == back.id
