"""A killed correction resumes: what failed before and is right now goes in once, what was in stays as it is."""

from __future__ import annotations

import datetime as dt
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from tests.crash.victim import Victim, with_lease
from tests.importing import form, site_rows, site_workbook, table_rows, workbook

MoveClock = Callable[..., None]

ROWS, BATCH = 1000, 100


@pytest.mark.parametrize("how", [form(), form(key=["site"])], ids=["no key", "key"])
@pytest.mark.parametrize(("point", "times"), [("claimed", 1), ("copied", 2), ("committed", 6), ("finishing", 1)])
def test_a_killed_correction_goes_on(
    db: Database, tmp_path: Path, move_clock: MoveClock, how: im.Form, point: str, times: int
) -> None:
    """The sender fixed all bad cells and sorted the rows; whatever is killed, each row is there once in the end."""
    first = im.import_workbook(site_workbook(tmp_path / "a.xlsx", ROWS), how, db=db, progress=False)
    fixed = site_rows(ROWS, bad_every=None)
    random.Random(20261201).shuffle(fixed)
    path = workbook(tmp_path / "b.xlsx", fixed)
    victim = Victim(
        conninfo=db.conninfo,
        settings=with_lease(db.settings, 300, max_attempts=1000),
        path=path,
        batch_rows=BATCH,
        how=how,
        corrects=first.id,
        point=point,
        times=times,
    )

    assert victim.run() == -signal.SIGKILL

    move_clock(dt.timedelta(minutes=6))
    with Database(db.conninfo, db.settings) as later:
        job = im.import_workbook(path, how, db=later, corrects=first.id, progress=False)
        with later.connection() as conn:
            sites = sorted(row["site"] for row in table_rows(conn))
    assert (job.status, job.success_rows, job.skipped_rows) == ("success", first.failed_rows, first.success_rows)
    assert sites == sorted(str(row[0]) for row in fixed)
