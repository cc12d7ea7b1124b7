"""A killed task goes on: finished steps and operations are not run again, and the outside world can tell.

At each named point, at random points, in the middle of a drain, with the worker frozen.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from importer.db import Database
from importer.task_run import TaskRun, enqueue, enqueue_many, tasks
from importer.task_run import signal as tell
from importer.task_run.finishing import MOST
from tests.crash.task_run_victim import POINTS, Victim, World, journey, live, tiny
from tests.waiting import until

MoveClock = Callable[..., None]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give a world in which nothing has happened."""
    return World(tmp_path / "world.txt")


@pytest.fixture
def victim(db: Database, world: World) -> Victim:
    """Give a victim that goes on journeys; receipts have a table, and each run at most one."""
    with db.connection() as conn:
        conn.execute("create table receipts (run bigint primary key, how text)")
    return Victim(conninfo=db.conninfo, settings=db.settings, world=world)


def all_runs(db: Database) -> list[TaskRun]:
    """Read the runs, oldest first, as the clock stands now."""
    with Database(db.conninfo, db.settings) as now:
        return list(reversed(tasks(db=now)))


def go_on(victim: Victim, db: Database, move_clock: MoveClock, *, minutes: int) -> None:
    """Let time pass and other workers work until every run has ended; half of the facts come."""
    for minute in range(minutes, minutes + 30, 2):
        move_clock(dt.timedelta(minutes=minute))
        live(replace(victim, point="", times=1))
        found = all_runs(db)
        for run in found:
            if run.waits_for and run.id % 2:
                tell(run, "paid", "cash", db=db)
        if all(run.ended for run in found):
            return
    raise AssertionError(f"open after half an hour: {all_runs(db)}")


def assert_each_effect_once(db: Database, world: World, runs: list[TaskRun]) -> None:
    """Each operation happened once, each receipt is there, each step was stored by one attempt."""
    happened = world.happened()
    with db.connection() as conn:
        receipts = {row["run"] for row in conn.execute("select run from receipts").fetchall()}
        stored = conn.execute("select run_id, name, fence from rowlease.task_steps where name like 'step:%'").fetchall()
    assert receipts == {run.id for run in runs}
    for run in runs:
        assert run.status == "succeeded", run
        assert run.result[:2] == ["first", "last"]
        for operation in ("submit", "ship"):
            assert happened[f"task-run-{run.id}:{operation}"] == 1, run
    last_tries = {(row["run_id"], row["name"].removeprefix("step:")): row["fence"] for row in stored}
    for line in happened:
        if match := re.fullmatch(r"(\w+) of (\d+) in (\d+)", line):
            name, run_id, fence = match[1], int(match[2]), int(match[3])
            assert fence <= last_tries[run_id, name], f"{line}, although it was stored before"
            assert happened[line] == 1


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_named_point(victim: Victim, db: Database, world: World, move_clock: MoveClock, point: str) -> None:
    """Wherever the worker dies, the next one goes on after the lease; nothing outside happens twice."""
    run = enqueue(journey(world), db=db)
    stopped = replace(victim, point=point)
    code = stopped.run()
    minute = 0
    while code == 0:  # the point comes later, after the sleep or the wait
        minute += 2
        move_clock(dt.timedelta(minutes=minute))
        code = stopped.run()
        assert minute < 10
    assert code == -signal.SIGKILL
    (left,) = all_runs(db)
    assert left.status == {"suspended": "pending", "finished": "succeeded"}.get(point, "running")

    go_on(victim, db, move_clock, minutes=minute + 2)

    (done,) = all_runs(db)
    assert done.id == run
    assert_each_effect_once(db, world, [done])


def test_killed_at_60_random_points(victim: Victim, db: Database, world: World, move_clock: MoveClock) -> None:
    """Two workers at a time are killed at random moments; every effect happens once, every step is stored once."""
    dice = random.Random(20261201)
    enqueue_many(journey(world), [None] * 40, db=db)
    kills = minutes = 0
    while kills < 60:
        point = dice.choice([*POINTS, "", ""])
        pair = [replace(victim, point=point, times=dice.randint(1, 12)).start() for _ in range(2)]
        for process in pair:
            process.join(timeout=dice.uniform(0.05, 0.4))
            if process.is_alive():
                process.kill()
            process.join(timeout=60)
            kills += process.exitcode == -signal.SIGKILL
        minutes += 2
        move_clock(dt.timedelta(minutes=minutes))
        for run in all_runs(db):
            if run.waits_for and dice.random() < 0.3:
                tell(run, "paid", "cash", db=db)
        if all(run.ended for run in all_runs(db)):
            enqueue_many(journey(world), [None] * 20, db=db)

    go_on(victim, db, move_clock, minutes=minutes + 2)

    runs = all_runs(db)
    assert_each_effect_once(db, world, runs)
    assert {run.result[2] for run in runs} == {"cash", "timed out"}


def test_killed_in_the_middle_of_a_drain(victim: Victim, db: Database, world: World, move_clock: MoveClock) -> None:
    """A finish that was committed never runs again; at most one unwritten batch does."""
    enqueue_many(tiny(world), [None] * 4000, db=db)
    assert replace(victim, task="tiny", point="finishing", times=6).run() == -signal.SIGKILL
    finished = {str(run.id) for run in all_runs(db) if run.status == "succeeded"}
    before = world.happened()

    move_clock(dt.timedelta(minutes=2))
    live(replace(victim, task="tiny"))

    after = world.happened()
    assert {run.status for run in all_runs(db)} == {"succeeded"}
    repeated = {run for run, times in after.items() if times > 1}
    assert 0 < len(finished) < len(before)
    assert not repeated & finished
    assert len(repeated) == len(before) - len(finished) <= MOST
    assert (len(after), max(after.values())) == (4000, 2)


def frozen(victim: Victim) -> Callable[[], int | None]:
    """Start a victim, wait until it stands still, and return what lets it go on to its end."""
    process = replace(victim, by=signal.SIGSTOP).start()
    assert process.pid is not None
    there = psutil.Process(process.pid)
    until(lambda: there.status() == psutil.STATUS_STOPPED)

    def wake() -> int | None:
        there.resume()
        process.join(timeout=60)
        return process.exitcode

    return wake


@pytest.mark.parametrize("point", ["step ran", "operation done", "operation begun", "ran"])
def test_a_frozen_worker_writes_nothing_more(
    victim: Victim, db: Database, world: World, move_clock: MoveClock, point: str
) -> None:
    """Its lease runs out, another finishes the run; woken up in the middle of a step it changes nothing."""
    run = enqueue(journey(world), db=db)
    minute = 0
    if point == "ran":  # the last attempt: after the sleep and the wait
        tell(run, "paid", "cash", db=db)
        live(victim)
        minute = 2
        move_clock(dt.timedelta(minutes=minute))
    wake = frozen(replace(victim, point=point))
    go_on(victim, db, move_clock, minutes=minute + 2)
    (done,) = all_runs(db)

    assert wake() == 0

    assert all_runs(db) == [done]
    assert_operations_once_or_asked(db, world, done, point)


def assert_operations_once_or_asked(db: Database, world: World, run: TaskRun, point: str) -> None:
    """Both operations happened; only one that two workers did at the same time can be there twice."""
    happened = world.happened()
    with db.connection() as conn:
        assert conn.execute("select count(*) as rows from receipts").fetchone() == {"rows": 1}
    # Frozen between the ledger and the act, the old worker acts after the new one had asked: nothing here can see that.
    assert happened[f"task-run-{run.id}:submit"] == (2 if point == "operation begun" else 1)
    assert happened[f"task-run-{run.id}:ship"] == 1


def test_a_frozen_batch_of_ends_is_refused(victim: Victim, db: Database, world: World, move_clock: MoveClock) -> None:
    """Ends that were gathered before the freeze are not written after others have run the runs."""
    enqueue_many(tiny(world), [None] * 300, db=db)
    wake = frozen(replace(victim, task="tiny", point="finishing", times=3))
    move_clock(dt.timedelta(minutes=2))
    live(replace(victim, task="tiny"))
    done = all_runs(db)

    assert wake() == 0
    assert {run.status for run in done} == {"succeeded"}
    assert all_runs(db) == done
