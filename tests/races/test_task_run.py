"""Workers, signals and enqueues at the same moment: each run goes to one worker, no fact is lost, a key is one run."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from importer.db import Database
from importer.task_run import Context, Task, cancel_task, enqueue, enqueue_many, signal, task_run, tasks, tasks_due
from tests.task_running import made, run_due, seen
from tests.waiting import until


def waits_for_a_lock(db: Database) -> bool:
    """Tell whether a session of this database waits for a lock."""
    with db.connection() as conn:
        row = conn.execute(
            "select exists (select from pg_stat_activity"
            " where datname = current_database() and wait_event_type = 'Lock') as waits"
        ).fetchone()
    return row == {"waits": True}


def test_four_workers_and_400_runs(db: Database) -> None:
    """Together they run every run, and none of them twice; the rest that is handed back is run as well."""
    ran: Counter[int] = Counter()
    count = made(lambda ctx: ran.update([ctx.input]), name="count")
    enqueue_many(count, range(400), db=db)
    barrier = threading.Barrier(4, timeout=30)

    def work(_number: int) -> int:
        barrier.wait()
        done = 0
        while more := run_due(db, count):
            done += more
        return done

    with ThreadPoolExecutor(4) as workers:
        done = sum(workers.map(work, range(4)))

    assert (done, len(ran), max(ran.values())) == (400, 400, 1)
    assert {each.status for each in tasks(db=db)} == {"succeeded"}


def test_workers_of_different_versions(db: Database) -> None:
    """Two groups of workers share one queue: each run goes to a worker that has its version."""
    versions = [
        made(lambda ctx: [ctx.input, 1], name="notify", version=1),
        made(lambda ctx: [ctx.input, 2], name="notify", version=2),
    ]
    for version in versions:
        enqueue_many(version, [version.version] * 50, db=db)

    def work(task: Task) -> int:
        done = 0
        while more := run_due(db, task):
            done += more
        return done

    with ThreadPoolExecutor(4) as workers:
        assert sum(workers.map(work, [*versions, *versions])) == 100

    assert Counter(tuple(each.result) for each in tasks(db=db)) == {(1, 1): 50, (2, 2): 50}


@pytest.mark.parametrize("point", ["running", "suspending", "suspended"])
def test_a_fact_before_during_and_after_the_wait(db: Database, point: str) -> None:
    """Signalled at any moment of going to wait, the run goes on; while it locks its row the signal waits for it."""
    waits = made(lambda ctx: ctx.wait_for("paid").payload, name="waits")
    run = enqueue(waits, db=db)
    teller = threading.Thread(target=lambda: signal(run, "paid", "cash", db=db))

    def at(reached: str) -> None:
        if reached == point and not teller.ident:
            teller.start()
            if point == "suspending":
                until(lambda: waits_for_a_lock(db))
            else:
                teller.join(30)

    with Database(db.conninfo, db.settings) as worker:
        tasks_due(worker, "h", tasks=[waits], at=at)
        teller.join(30)
        tasks_due(worker, "h", tasks=[waits])

    assert seen(db, run).result == "cash"


def test_a_fact_that_is_not_committed_when_the_run_looks(db: Database) -> None:
    """The signal holds the run's row, so the run goes to wait only after the fact is there to be found."""
    waits = made(lambda ctx: ctx.wait_for("paid").payload, name="waits")
    run = enqueue(waits, db=db)
    telling = db.dedicated()
    conn = telling.__enter__()

    def at(reached: str) -> None:
        if reached == "running":
            conn.execute("begin")
            signal(run, "paid", "cash", conn=conn)

    worker = threading.Thread(target=lambda: run_due(db, waits, at=at))
    worker.start()
    until(lambda: waits_for_a_lock(db))
    conn.execute("commit")
    telling.__exit__(None, None, None)
    worker.join(30)

    assert seen(db, run).result == "cash"


def test_two_signals_of_one_name(db: Database) -> None:
    """The first one stands, and both callers are told which."""
    run = enqueue(made(lambda _: None, name="noop"), db=db)
    barrier = threading.Barrier(2, timeout=30)

    def tell(payload: str) -> object:
        barrier.wait()
        return signal(run, "paid", payload, db=db).payload

    with ThreadPoolExecutor(2) as callers:
        one, other = callers.map(tell, ["a", "b"])

    assert one == other


def test_one_key_from_two_sides(db: Database) -> None:
    """Enqueued at the same moment, a key is one run, and both callers get its number."""
    noop = made(lambda _: None, name="noop")
    barrier = threading.Barrier(2, timeout=30)

    def put(number: int) -> list[int]:
        found = []
        for key in range(20):
            barrier.wait()
            found.append(enqueue(noop, key, key=str(key), db=db))
            assert number in (0, 1)
        return found

    with ThreadPoolExecutor(2) as callers:
        one, other = callers.map(put, range(2))

    assert one == other
    assert len(tasks(db=db)) == 20


def test_a_cancel_while_an_operation_commits(db: Database) -> None:
    """A cancel waits for the open transaction, whose result stands; the run is cancelled after it."""
    cancelling: list[threading.Thread] = []

    def acting(ctx: Context) -> None:
        def commit(*_: object) -> None:
            cancelling.append(threading.Thread(target=lambda: cancel_task(ctx.run_id, db=db)))
            cancelling[0].start()
            until(lambda: waits_for_a_lock(db))

        ctx.once("act", lambda _operation: "done", commit=commit)
        cancelling[0].join(30)

    acts = made(acting)
    run = enqueue(acts, db=db)
    run_due(db, acts)

    found = task_run(run, db=db)
    assert (found.status, found.operations[0]["result"]) == ("cancelled", "done")
