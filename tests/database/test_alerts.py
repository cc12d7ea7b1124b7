"""What somebody should look at is listed while it is so, and not when it is over."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

import importer as im
from importer.db import Connection, Database
from tests.task_running import made, run_due

MoveClock = Callable[..., None]
HOUR = dt.timedelta(hours=1)


def kinds(db: Database) -> list[str]:
    """Give the kinds of all alerts as the clock stands now."""
    with Database(db.conninfo, db.settings) as now:
        return [each.kind for each in im.alerts(db=now)]


def test_nothing_is_wrong(db: Database) -> None:
    """A database in which all is well has no alerts."""
    assert im.alerts(db=db) == []


def test_a_silent_trigger(db: Database, move_clock: MoveClock) -> None:
    """It is an alert when it did not fire in its time, until it fires or is switched off by hand."""
    im.put_trigger({"name": "t", "type": "event", "config": {"event": "e"}, "expected_within": "2h"}, db=db)
    assert kinds(db) == []

    move_clock(3 * HOUR)
    assert kinds(db) == ["trigger_silent"]
    with Database(db.conninfo, db.settings) as now:
        im.fire("e", db=now)
        im.work(db=now)
    assert kinds(db) == []
    move_clock(6 * HOUR)
    im.disable_trigger("t", db=db)
    assert kinds(db) == []


def test_a_trigger_that_fails_and_is_switched_off(db: Database) -> None:
    """First it fails, then it is off; the message has its error."""
    written = {
        "name": "t",
        "type": "event",
        "config": {"event": "e"},
        "condition": "{{nothing}} > 1",
        "max_attempts": 2,
    }
    im.put_trigger(written, db=db)

    seen = []
    for _ in range(2):
        im.fire("e", db=db)
        im.work(db=db)
        seen += im.alerts(db=db)

    assert [each.kind for each in seen] == ["trigger_failing", "trigger_disabled"]
    assert seen[1].key == "trigger_disabled: t"
    assert "nothing" in seen[1].message


def test_failed_tasks_and_queues_that_grow(db: Database, move_clock: MoveClock) -> None:
    """Failed runs are told by task; a due run that nobody takes is a queue that grows; both are over in time."""
    broken = made(lambda _: 1 / 0, name="broken", retry=im.Retry(attempts=1))
    im.enqueue_many(broken, [1, 2], db=db)
    run_due(db, broken)
    im.enqueue(broken, 3, db=db)

    move_clock(HOUR)
    with Database(db.conninfo, db.settings) as now:
        queue, failed = sorted(im.alerts(db=now), key=lambda each: each.kind)
    assert (failed.subject, failed.message.split(":")[0]) == ("broken v1", "2 runs failed, the newest (2) with")
    assert (queue.kind, queue.subject) == ("queue_grows", "task_runs")
    move_clock(dt.timedelta(days=2))
    assert kinds(db) == ["queue_grows"]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (
            (
                "insert into rowlease.outbox_messages (topic, key, payload, status, finished_at)"
                " values ('t', 'k', '{}', 'dead', now())"
            ),
            "message_dead",
        ),
        (
            (
                "insert into rowlease.import_jobs (form_name, form_version, file_name, content_hash, size_bytes,"
                " forced, status, holder, lease_until, started_at)"
                " values ('f', 1, 'f.xlsx', repeat('0', 64), 1, true, 'running', 'h', now(),"
                " now() - interval '2 hours')"
            ),
            "import_too_long",
        ),
        (
            (
                "with w as (insert into rowlease.workflows (name, version, digest, definition)"
                " values ('w', 1, repeat('0', 64), '{}'))"
                " insert into rowlease.workflow_instances (workflow_name, workflow_version, start_digest, variables,"
                " status, finished_at, last_error) values ('w', 1, '', '{}', 'failed', now(), 'broken')"
            ),
            "workflow_failed",
        ),
        (
            (
                "with w as (insert into rowlease.workflows (name, version, digest, definition)"
                " values ('w', 1, repeat('0', 64), '{}'))"
                " insert into rowlease.workflow_instances (workflow_name, workflow_version, start_digest, variables,"
                " created_at) values ('w', 1, '', '{}', now() - interval '15 days')"
            ),
            "workflow_too_long",
        ),
    ],
)
def test_what_failed_and_what_takes_too_long(conn: Connection, db: Database, statement: str, kind: str) -> None:
    """A dead message, a long import, a failed and a long workflow are each one alert."""
    conn.execute(
        "insert into rowlease.forms (name, version, digest, definition) values ('f', 1, repeat('0', 64), '{}')"
    )
    conn.execute(statement)

    assert kinds(db) == [kind]
