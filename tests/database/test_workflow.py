"""Workflows in PostgreSQL: tokens, timers, approvals, imports, failure, retry, cancel; only the clock moves time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import importer as im
from importer.db import Database
from tests.workflows import flow, node

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
