"""Timers: one per token, due by the database's clock, claimed by an index however many wait."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import importer as im
from importer import lease as leases
from importer import timer_job
from importer.db import Connection, Database
from importer.errors import LeaseLostError
from importer.lease import Leased
from importer.settings import Rhythm
from importer.workflow import timers_due
from tests.workflows import flow, node, one_timer

MoveClock = Callable[..., None]

TTL = timedelta(seconds=60)


def test_one_timer_per_token(db: Database, conn: Connection) -> None:
    """A node entered again with the same token makes no second timer, and the first keeps its moment."""
    started = im.start(one_timer(), db=db)
    (first,) = timer_job.timers(conn, instance_id=started.id)

    timer_job.put(
        conn,
        instance_id=started.id,
        token=first.token,
        node="wait",
        due_at=first.created_at,
        max_attempts=1,
        wake=False,
    )

    assert timer_job.timers(conn, instance_id=started.id) == [first]


def test_a_fired_timer_is_completed(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """Completed, with its end, and never claimed again."""
    started = im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=2))

    with Database(db.conninfo, db.settings) as later:
        fired = timers_due(later, "timer:a"), timers_due(later, "timer:b")

    (timer,) = timer_job.timers(conn, instance_id=started.id)
    assert fired == (1, 0)
    assert (timer.status, timer.due_at, timer.finished_at is None) == ("completed", None, False)


def test_the_oldest_fires_first(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """By due time, then age."""
    late, early = im.start(one_timer(hours=2), db=db), im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=3))

    with Database(db.conninfo, db.settings) as later:
        timers_due(later, "timer:a", limit=1)

    statuses = [timer_job.timers(conn, instance_id=each.id)[0].status for each in (late, early)]
    assert statuses == ["pending", "completed"]


def test_a_run_out_lease_is_fired_by_another(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """A worker that died after its claim costs an attempt and the rest of its lease, nothing more."""
    started = im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=2))
    with Database(db.conninfo, db.settings) as later, later.connection() as dead:
        (lost,) = leases.claim(dead, Leased.TIMER_JOBS, holder="timer:dead", ttl=TTL)
        held = timers_due(later, "timer:alive")
    move_clock(timedelta(hours=2, seconds=61))

    with Database(db.conninfo, db.settings) as later:
        fired = timers_due(later, "timer:alive")

    (timer,) = timer_job.timers(conn, instance_id=started.id)
    assert (held, fired, timer.status, timer.attempt_count) == (0, 1, "completed", 2)
    with pytest.raises(LeaseLostError):
        leases.renew(conn, lost)


def test_a_timer_of_an_instance_that_is_over_is_cancelled(
    db: Database, conn: Connection, move_clock: MoveClock
) -> None:
    """Claimed, then its instance was over: the lease is cleared and nothing moves."""
    started = im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=2))
    conn.execute(
        "update rowlease.workflow_instances set status = 'completed', finished_at = now() where id = %s", [started.id]
    )

    with Database(db.conninfo, db.settings) as later:
        timers_due(later, "timer:a")

    row = conn.execute(
        "select status, holder, lease_until, finished_at is not null as ended from rowlease.timer_jobs"
    ).fetchone()
    assert row == {"status": "cancelled", "holder": None, "lease_until": None, "ended": True}
    assert im.workflow(started, db=db).waits[0].node == "wait"


def test_the_last_attempt_fails_the_instance(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """A worker that dies at the last attempt: the timer fails, and its instance names node and error."""
    started = im.start(one_timer(hours=1), db=db)
    conn.execute("update rowlease.timer_jobs set max_attempts = 1")
    move_clock(timedelta(hours=2))
    with Database(db.conninfo, db.settings) as later, later.connection() as dead:
        leases.claim(dead, Leased.TIMER_JOBS, holder="timer:dead", ttl=TTL)
    move_clock(timedelta(hours=2, seconds=61))

    with Database(db.conninfo, db.settings) as later:
        timers_due(later, "timer:alive")

    found = im.workflow(started, db=db)
    (timer,) = timer_job.timers(conn, instance_id=started.id)
    assert (timer.status, found.status, found.failed_node) == ("failed", "failed", "wait")
    assert found.last_error == "the worker did not come back: its lease ran out in attempt 1 of 1"


def test_a_stop_hands_the_rest_of_a_slice_back(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """What has not begun to fire waits again at once, in its old place, its attempt not counted."""
    for hours in (1, 2, 3):
        im.start(one_timer(hours=hours), db=db)
    due = conn.execute("select due_at from rowlease.timer_jobs order by id").fetchall()
    move_clock(timedelta(hours=4))
    asked: list[None] = []

    def stopping() -> bool:
        asked.append(None)
        return len(asked) > 2

    with Database(db.conninfo, db.settings) as later:
        fired = timers_due(later, "timer:a", stopping=stopping)

    rows = conn.execute("select status, attempt_count, due_at from rowlease.timer_jobs order by id").fetchall()
    assert fired == 1
    assert [row["status"] for row in rows] == ["completed", "pending", "pending"]
    assert [(row["attempt_count"], row["due_at"]) for row in rows[1:]] == [(0, each["due_at"]) for each in due[1:]]


def test_a_long_slice_is_renewed_between_firings(db: Database, move_clock: MoveClock, conn: Connection) -> None:
    """While one timer takes its time, the rest of the slice stays ours."""
    for _ in range(3):
        im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=2))
    rhythm = Rhythm(batch=3, lease=timedelta(microseconds=1))

    with Database(db.conninfo, db.settings) as later:
        taken = list(leases.slices(later, Leased.TIMER_JOBS, holder="timer:a", rhythm=rhythm, limit=3))

    heartbeats = conn.execute(
        "select count(*) as n from rowlease.timer_jobs where last_heartbeat_at > started_at and holder = 'timer:a'"
    ).fetchone()
    assert [lease.attempt for lease in taken] == [1, 1, 1]
    assert heartbeats is not None
    assert heartbeats["n"] >= 2


def test_a_claim_among_many_reads_the_index(db: Database, conn: Connection) -> None:
    """Twenty thousand pending timers: the claim reads its partial indexes, sorts nothing, and few pages."""
    started = im.start(one_timer(), db=db)
    conn.execute(
        "insert into rowlease.workflow_tokens (instance_id, number, node, entered_at)"
        " select %s, n, 'wait', now() from generate_series(2, 20001) as n",
        [started.id],
    )
    conn.execute(
        "insert into rowlease.timer_jobs (instance_id, token, node, due_at)"
        " select %s, n, 'wait', now() + make_interval(mins => n - 10000) from generate_series(2, 20001) as n",
        [started.id],
    )
    conn.execute("analyze rowlease.timer_jobs")
    claim = leases._statement(Leased.TIMER_JOBS, "claim")

    with conn.transaction(force_rollback=True):
        plan = conn.execute(
            b"explain (analyze, buffers, format json) " + claim.as_bytes(conn),
            {"holder": "timer:a", "ttl": TTL, "limit": 20},
        ).fetchone()

    assert plan is not None
    nodes = list(plan_nodes(plan["QUERY PLAN"][0]["Plan"]))
    scans = {each.get("Index Name") for each in nodes if each.get("Alias") in {"waiting", "run_out"}}
    assert scans == {"timer_jobs_waiting", "timer_jobs_run_out"}, json.dumps(plan, default=str)
    assert not [each for each in nodes if each["Node Type"] == "Seq Scan" and each["Relation Name"] == "timer_jobs"]
    assert max(each["Actual Rows"] * each["Actual Loops"] for each in nodes) <= 80


def plan_nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a plan's node and all below it."""
    return [plan, *(below for each in plan.get("Plans", []) for below in plan_nodes(each))]


def test_only_what_is_due_wakes(db: Database, conn: Connection) -> None:
    """The next moment is that of the earliest pending timer; none is none."""
    before = timer_job.next_moment_s(conn)

    im.start(flow(node("wait", "timer", minutes=10), node("done", "end"), ways=[("wait", "done")]), db=db)

    after = timer_job.next_moment_s(conn)
    assert before is None
    assert after is not None
    assert 590 < after <= 600


def test_an_error_of_the_database_is_counted_and_the_next_timer_fires(
    db: Database, conn: Connection, move_clock: MoveClock
) -> None:
    """The firing rolls back as a whole, waits for its delay with the error kept, and the connection goes on."""
    refused, fine = im.start(one_timer(hours=1), db=db), im.start(one_timer(hours=1), db=db)
    conn.execute(
        "alter table rowlease.workflow_events"
        f" add constraint refuses check (what <> 'passed' or instance_id <> {refused.id})"
    )
    move_clock(timedelta(hours=2))

    with Database(db.conninfo, db.settings) as then:
        fired = timers_due(then, "timer:a")

    (timer,) = timer_job.timers(conn, instance_id=refused.id)
    assert fired == 2
    assert (timer.status, timer.attempt_count) == ("pending", 1)
    assert "violates check constraint" in str(timer.last_error)
    assert im.workflow(refused, db=db).history == refused.history
    assert im.workflow(fine, db=db).status == "completed"
