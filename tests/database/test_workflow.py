"""Workflows in PostgreSQL: tokens, timers, approvals, imports, failure, retry, cancel; only the clock moves time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import importer as im
from importer.db import Database
from importer.settings import Rhythm
from tests.importing import form, site_workbook
from tests.waiting import until
from tests.workflows import flow, later, node, one_timer

MoveClock = Callable[..., None]


def test_a_timer_is_rows_until_it_is_due(db: Database, move_clock: MoveClock) -> None:
    """Two days pass by the clock of the database; then a worker moves the token, and the workflow is complete."""
    waiting = flow(
        node("wait", "timer", days=2), node("say", "log", message="{{who}} waited"), node("done", "end"),
        ways=[("wait", "say"), ("say", "done")],
    )  # fmt: skip

    started = im.start(waiting, {"who": "Ada"}, db=db)
    early = im.work(db=db)
    move_clock(timedelta(days=2, seconds=1))
    with Database(db.conninfo, db.settings) as later:
        late = im.work(db=later)
    ended = im.workflow(started, db=db)

    assert (started.status, early["timer_jobs"], late["timer_jobs"]) == ("running", 0, 1)
    assert (ended.status, ended.waits) == ("completed", ())
    assert [(step.what, step.node) for step in ended.history] == [
        ("started", None), ("waits", "wait"), ("passed", "wait"), ("passed", "say"), ("passed", "done"),
        ("completed", None),
    ]  # fmt: skip
    assert ended.history[3].detail["message"] == "Ada waited"


def test_a_storm_of_timers_leaves_imports_their_turn(db: Database, move_clock: MoveClock, tmp_path: Path) -> None:
    """A pass takes so many of each kind, so that an import is not behind all timers; the rest is taken by the next."""
    for _ in range(30):
        im.start(one_timer(hours=1), db=db)
    im.submit(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db, create_table=True)

    with later(db, move_clock, hours=2) as then:
        first = im.work(limit=20, db=then)
        rest = im.work(db=then)

    assert (first["timer_jobs"], first["import_jobs"], rest["timer_jobs"]) == (20, 1, 10)


def test_timers_are_fired_while_an_import_runs(db: Database, move_clock: MoveClock, tmp_path: Path) -> None:
    """A worker that follows fires a timer in the middle of an import, and does not wait for its end."""
    started = im.start(one_timer(hours=1), db=db)
    job = im.submit(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db)
    quick = Rhythm(start_delay=timedelta(milliseconds=1), poll=timedelta(milliseconds=50))
    stop = threading.Event()
    move_clock(timedelta(hours=2))

    with (
        Database(db.conninfo, replace(db.settings, timers=quick, imports=quick)) as then,
        then.dedicated() as holding,
    ):
        with holding.transaction():
            holding.execute("lock table rowlease.import_attempts in access exclusive mode")  # the import stands still
            worker = threading.Thread(target=im.follow, args=(then,), kwargs={"stop": stop})
            worker.start()
            until(lambda: im.workflow(started, db=db).ended)
            before = im.job(job, db=db).status
        stop.set()
        worker.join(60)

    assert (im.workflow(started, db=db).status, before) == ("completed", "pending")
    assert not worker.is_alive()
