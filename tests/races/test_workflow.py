"""Workers, people and imports that meet at one token: one of them moves it, the others change nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

import importer as im
from importer import import_job
from importer import lease as leases
from importer.db import Connection, Database
from importer.errors import ApprovalError, LeaseLostError, WorkflowStateError
from importer.lease import Leased
from importer.worker import messages_due
from importer.workflow import moving, timers_due
from tests.importing import DEFINITION, form, site_workbook
from tests.waiting import until
from tests.workflow_checker import check_all
from tests.workflows import MoveClock, flow, node, one_timer, passed

ASKED = flow(
    node("ask", "approval", question="?", limit={"days": 2}),
    node("yes", "log", message="yes"),
    node("no", "log", message="no"),
    node("end", "end"),
    ways=[("ask", "yes", "approve"), ("ask", "no"), ("yes", "end"), ("no", "end")],
)


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Begin all calls at the same moment; return what they returned, or their errors."""
    barrier = threading.Barrier(len(calls), timeout=30)

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return call()
        except im.ImporterError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def legal(conn: Connection, instance: im.Instance) -> list[str]:
    """Check every history; return the steps of one."""
    check_all(conn)
    rows = conn.execute(
        "select node from rowlease.workflow_events where instance_id = %s and what = 'passed' order by id",
        [instance.id],
    )
    return [row["node"] for row in rows]


def test_two_workers_and_one_due_timer(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """Ten times two workers start at the same moment: one fires it, and there is one token behind it."""
    started = [im.start(one_timer(), db=db) for _ in range(10)]
    move_clock(timedelta(hours=2))

    with Database(db.conninfo, db.settings) as then:
        fired = [
            at_once(lambda: timers_due(then, "timer:a", limit=1), lambda: timers_due(then, "timer:b", limit=1))
            for _ in range(10)
        ]
        rest = timers_due(then, "timer:c")

    assert sum(int(str(n)) for pair in fired for n in pair) + rest == 10
    assert [legal(conn, each) for each in started] == [["wait", "end"]] * 10


def test_a_worker_that_wakes_after_its_lease_writes_nothing(
    db: Database, conn: Connection, move_clock: MoveClock
) -> None:
    """It had claimed the timer, slept, and another fired it: its firing is refused by the fence."""
    started = im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=2))
    with Database(db.conninfo, db.settings) as then, then.connection() as sleeper:
        (lease,) = leases.claim(sleeper, Leased.TIMER_JOBS, holder="timer:asleep", ttl=timedelta(seconds=60))
    move_clock(timedelta(hours=2, seconds=61))
    with Database(db.conninfo, db.settings) as then:
        timers_due(then, "timer:awake")
        ended = im.workflow(started, db=then)

        with then.connection() as sleeper, pytest.raises(LeaseLostError):
            moving._fire_timer(then, sleeper, lease, lambda _point: None)

    assert im.workflow(started, db=db) == ended
    assert legal(conn, started) == ["wait", "end"]


def test_a_worker_frozen_within_its_firing_keeps_its_row(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """While its transaction is open another finds nothing, though the lease ran out; then it commits."""
    started = im.start(one_timer(hours=1), db=db)
    move_clock(timedelta(hours=2))
    frozen, go_on = threading.Event(), threading.Event()

    def freeze(point: str) -> None:
        if point == "written":
            frozen.set()
            assert go_on.wait(30)

    with Database(db.conninfo, db.settings) as slow:
        worker = threading.Thread(target=lambda: timers_due(slow, "timer:slow", at=freeze))
        worker.start()
        assert frozen.wait(30)
        move_clock(timedelta(hours=3))
        with Database(db.conninfo, db.settings) as then:
            other = timers_due(then, "timer:other")
        go_on.set()
        worker.join(30)

    assert other == 0
    assert legal(conn, started) == ["wait", "end"]


def test_two_answers_at_once(db: Database, conn: Connection) -> None:
    """One stands; the other is told whose."""
    for _ in range(10):
        started = im.start(ASKED, db=db)
        (approval,) = im.approvals(instance=started, db=db)

        told = at_once(
            lambda a=approval: im.answer(a, "approve", by="Ada", db=db),  # type: ignore[misc]
            lambda a=approval: im.answer(a, "reject", by="Bo", db=db),  # type: ignore[misc]
        )

        (refused,) = (each for each in told if isinstance(each, ApprovalError))
        assert refused.answered_by in {"Ada", "Bo"}
        assert legal(conn, started) in (["ask", "yes", "end"], ["ask", "no", "end"])


def test_an_answer_and_the_limit(db: Database, conn: Connection) -> None:
    """At the limit's moment a person on a slow clock and the timer meet: one of them moves the token."""
    for _ in range(10):
        started = im.start(ASKED, db=db)
        (approval,) = im.approvals(instance=started, db=db)
        conn.execute(
            "update rowlease.timer_jobs set due_at = now() where instance_id = %s", [started.id]
        )  # the timer is due, the approval's own limit is not

        told = at_once(
            lambda: timers_due(db, "timer:a"),
            lambda a=approval: im.answer(a, "approve", by="Ada", db=db),  # type: ignore[misc]
        )

        steps = legal(conn, started)
        assert steps == (["ask", "no", "end"] if isinstance(told[1], ApprovalError) else ["ask", "yes", "end"])


def test_a_cancel_and_a_firing(db: Database, move_clock: MoveClock) -> None:
    """Either the firing comes first and there is nothing to cancel, or it finds the instance cancelled."""
    started = [im.start(one_timer(), db=db) for _ in range(10)]
    move_clock(timedelta(hours=2))

    with Database(db.conninfo, db.settings) as then:
        for each in started:
            told = at_once(
                lambda: timers_due(then, "timer:a", limit=1),
                lambda e=each: im.cancel_workflow(e, db=then),  # type: ignore[misc]
            )
            found = im.workflow(each, db=db)
            assert found.status == ("completed" if isinstance(told[1], WorkflowStateError) else "cancelled")
            assert passed(found) == (["wait", "end"] if found.status == "completed" else [])


@pytest.fixture
def loading(conn: Connection) -> im.Workflow:
    """Store the form; a workflow that imports."""
    one = form()
    import_job.store_form(conn, one.to_dict(), name=one.name, digest=one.digest)
    return flow(
        node("load", "import", file="{{file}}", form=DEFINITION["name"], create_table=True),
        node("say", "log", message="{{result.status}}"),
        node("end", "end"),
        ways=[("load", "say"), ("say", "end")],
    )


def test_a_job_that_ends_while_its_wait_is_written(
    db: Database, conn: Connection, loading: im.Workflow, tmp_path: Path
) -> None:
    """The end waits for the wait: its message finds the token."""
    path = site_workbook(tmp_path / "a.xlsx", 5)
    job = im.submit(path, form(), db=db)

    with db.connection() as starting:
        with starting.transaction():
            started = im.start(loading, files={"file": path}, conn=starting, db=db)
            cancelling = threading.Thread(target=lambda: im.cancel(job, db=db))
            cancelling.start()
            until(lambda: waits_for_a_lock(conn))
        cancelling.join(30)
    im.work(db=db)

    assert passed(im.workflow(started, db=db)) == ["load", "say", "end"]
    assert im.workflow(started, db=db).variables["result"]["status"] == "cancelled"


def test_two_relays_and_one_message(db: Database, conn: Connection, loading: im.Workflow, tmp_path: Path) -> None:
    """Three tokens wait for one job; two relays at once move each of them once."""
    path = site_workbook(tmp_path / "a.xlsx", 5)
    started = [im.start(loading, files={"file": path}, db=db) for _ in range(3)]
    im.cancel(im.jobs(db=db)[0], db=db)

    at_once(lambda: messages_due(db, "outbox:a"), lambda: messages_due(db, "outbox:b"))

    assert [legal(conn, each) for each in started] == [["load", "say", "end"]] * 3


def waits_for_a_lock(conn: Connection) -> bool:
    """Whether some session of this database waits for a lock."""
    row = conn.execute(
        "select exists (select from pg_stat_activity"
        " where datname = current_database() and wait_event_type = 'Lock') as w"
    ).fetchone()
    return row is not None and bool(row["w"])
