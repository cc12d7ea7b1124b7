"""Durable tasks: enqueue, claim, versions, priorities, what is seen of runs."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pydantic
import pytest

from importer.db import Database, sql
from importer.errors import (
    TaskConflictError,
    TaskInputError,
    TaskNotFoundError,
)
from importer.task_run import (
    Context,
    Fact,
    Retry,
    TaskRun,
    cancel_task,
    enqueue,
    enqueue_many,
    next_moment_s,
    tasks,
)
from importer.task_run.definition import differences, newest, registered, task
from importer.task_run.working import _claim_statement, claim
from importer.worker import follow
from tests.task_running import made, run_due, seen
from tests.waiting import until

MoveClock = Callable[..., None]

MINUTE = dt.timedelta(minutes=1)
HOUR = dt.timedelta(hours=1)


class Notice(pydantic.BaseModel):
    """An input."""

    to: str
    day: dt.date = dt.date(2026, 12, 1)


def test_a_run_gets_its_input_and_its_result_is_kept(db: Database) -> None:
    """The input is validated into the model; what the function returns is the result, as JSON."""

    def notify(ctx: Context) -> object:
        return {"to": ctx.input.to, "day": ctx.input.day, "fence": ctx.fence, "trace": ctx.trace_id}

    notify_task = made(notify, input=Notice)
    run = enqueue(notify_task, {"to": "ann"}, trace_id="t1", db=db)

    assert run_due(db, notify_task) == 1

    done = seen(db, run)
    assert (done.status, done.state, done.attempt_count) == ("succeeded", "succeeded", 1)
    assert done.result == {"to": "ann", "day": "2026-12-01", "fence": 1, "trace": "t1"}
    assert [each.how for each in done.attempts] == ["succeeded"]
    assert run_due(db, notify_task) == 0


@pytest.mark.parametrize("value", [{"day": "2026-12-01"}, {"to": 1}, None, {"to": "a\0b"}])
def test_input_is_validated_when_it_is_enqueued(db: Database, value: object) -> None:
    """What the model refuses, or PostgreSQL cannot keep, is refused before there is a row."""
    notify = made(lambda _: None, name="notify", input=Notice)

    with pytest.raises(TaskInputError):
        enqueue(notify, value, db=db)

    assert tasks(db=db) == []


def test_a_row_and_its_run_commit_together(db: Database) -> None:
    """Enqueued in the caller's transaction, a run is there when that commits and not when it rolls back."""
    notify = made(lambda _: None, name="notify")

    with psycopg.connect(db.conninfo) as caller:
        caller.execute("create table orders (id int)")
        enqueue(notify, conn=caller)  # type: ignore[arg-type]  # rows of any kind
        assert tasks(db=db) == []
        caller.rollback()
        enqueue_many(notify, [1, 2], conn=caller)  # type: ignore[arg-type]  # rows of any kind
        caller.commit()

    assert [each.input for each in tasks(db=db)] == [2, 1]


def test_the_same_key_is_the_same_run(db: Database) -> None:
    """The same input gives the earlier run; another input is an error that shows the difference."""
    notify, other = made(lambda _: None, name="notify", input=Notice), made(lambda _: None, name="other")
    first = enqueue(notify, Notice(to="ann"), key="k", db=db)

    assert enqueue(notify, {"to": "ann", "day": "2026-12-01"}, key="k", db=db) == first
    assert enqueue(other, key="k", db=db) != first
    with pytest.raises(TaskConflictError, match="to was 'ann', is now 'bob'") as caught:
        enqueue(notify, Notice(to="bob"), key="k", db=db)
    assert (caught.value.id, caught.value.differences) == (first, ("to was 'ann', is now 'bob'",))


def test_many_runs_are_enqueued_at_once(db: Database) -> None:
    """Texts of all kinds arrive as they were; a bad one lets none in; with keys only the new ones go in."""
    echo = made(lambda ctx: ctx.input, name="echo", input=str)
    texts = ["plain", 'tab\t, line\n, quote", back\\slash \\n', "ünïcode 😀", "\\.", ""]

    assert enqueue_many(echo, texts, db=db) == 5
    with pytest.raises(TaskInputError):
        enqueue_many(echo, ["good", 3], db=db)
    assert run_due(db, echo) == 5
    assert [each.result for each in reversed(tasks(db=db))] == texts

    assert enqueue_many(echo, ["a", "b"], keys=["1", "2"], db=db) == 2
    assert enqueue_many(echo, ["b", "c"], keys=["2", "3"], due=MINUTE, db=db) == 1
    with pytest.raises(TaskConflictError):
        enqueue_many(echo, ["x", "new"], keys=["3", "4"], db=db)
    assert len(tasks(db=db)) == 8


def test_due_later(db: Database, move_clock: MoveClock) -> None:
    """A run that is due later waits for the clock."""
    noop = made(lambda _: None, name="noop")
    run = enqueue(noop, due=MINUTE * 10, db=db)

    assert (run_due(db, noop), seen(db, run).state) == (0, "asleep")
    with db.connection() as conn:
        assert 590 < (next_moment_s(conn, [noop]) or 0) <= 600
        assert next_moment_s(conn, [made(lambda _: None, name="other")]) is None
    move_clock(MINUTE * 11)
    assert run_due(db, noop) == 1


def test_priorities(db: Database) -> None:
    """The first priority runs first, whatever was enqueued before it and whichever task it is of."""
    order: list[str] = []
    low, high = made(lambda ctx: order.append(ctx.input), name="a"), made(lambda ctx: order.append(ctx.input), name="b")
    for priority, text in [(3, "last"), (2, "third"), (0, "first"), (1, "second")]:
        enqueue(low if priority % 2 else high, text, priority=priority, db=db)

    run_due(db, low, high)

    assert order == ["first", "second", "third", "last"]


def test_runs_of_one_priority_go_by_age_whatever_their_task(db: Database) -> None:
    """Two tasks take turns as they were enqueued; one does not hold up the other."""
    order: list[int] = []
    both = [made(lambda ctx: order.append(ctx.input), name=name) for name in "ab"]
    for number in range(6):
        enqueue(both[number % 2], number, db=db)

    run_due(db, *both)

    assert order == list(range(6))


def test_a_worker_leaves_alone_what_it_does_not_have(db: Database, move_clock: MoveClock) -> None:
    """Only names and versions it has are claimed; the others wait, and are listed with the reason."""
    old = made(lambda _: "old", name="notify")
    new = made(lambda _: "new", name="notify", version=2)
    runs = [enqueue(each, db=db) for each in (old, new)]

    assert run_due(db, made(lambda _: None, name="other")) == 0
    assert seen(db, runs[1]).unserved == "no worker has looked for work of notify version 2"
    assert run_due(db, old) == 1

    (waiting,) = [each for each in tasks(db=db) if each.status == "pending"]
    assert (waiting.id, waiting.attempt_count) == (runs[1], 0)
    assert run_due(db, old, new) == 1
    assert seen(db, runs[1]).result == "new"

    later = enqueue(old, db=db)
    assert seen(db, later).unserved is None
    move_clock(MINUTE * 3)
    assert "no worker has looked for work of notify version 1 since " in (seen(db, later).unserved or "")


def test_new_runs_take_the_newest_version() -> None:
    """By its name a task is found in its newest version; an unknown name says what is known."""
    versions = [made(lambda _: None, name="notify", version=version) for version in (1, 3, 2)]

    assert newest("notify", versions).version == 3
    with pytest.raises(TaskNotFoundError, match="no task 'nothing' is known here"):
        newest("nothing", versions)


def test_a_name_and_version_is_one_function() -> None:
    """The decorator registers a function; a second one under its name and version is refused."""

    @task(name="test.once_only", version=4)
    def first(_ctx: Context) -> None: ...

    assert first in registered()
    with pytest.raises(ValueError, match="another function already"):

        @task(name="test.once_only", version=4)
        def second(_ctx: Context) -> None: ...


def test_an_attempt_that_was_cut_off_is_shown_as_interrupted(db: Database, move_clock: MoveClock) -> None:
    """Once its lease has run out it is not called running any more, before and after another takes it."""
    noop = made(lambda _: None, name="noop", retry=Retry(attempts=2))
    run = enqueue(noop, db=db)

    with db.connection() as conn:  # a worker that dies leaves the row held
        conn.execute(
            "update rowlease.task_runs set status = 'running', holder = 'dead', lease_until = now() + interval '1 min',"
            " fence = 1, attempt_count = 1, started_at = now(), last_heartbeat_at = now()"
        )
    assert seen(db, run).state == "running"
    move_clock(MINUTE * 2)
    assert (seen(db, run).state, [each.how for each in seen(db, run).attempts]) == ("interrupted", ["interrupted"])
    assert run_due(db, noop) == 1
    assert [each.how for each in seen(db, run).attempts] == ["interrupted", "succeeded"]


def test_the_last_interrupted_attempt_fails_the_run(db: Database, move_clock: MoveClock) -> None:
    """With its attempts used up a run that nobody came back for is failed, and says so."""
    noop = made(lambda _: None, name="noop")
    run = enqueue(noop, db=db)
    with db.connection() as conn:
        conn.execute(
            "update rowlease.task_runs set status = 'running', holder = 'dead', lease_until = now(),"
            " fence = 5, attempt_count = 5, started_at = now()"
        )
    move_clock(MINUTE)

    assert run_due(db, noop) == 0
    assert seen(db, run).status == "failed"
    assert "lease ran out in attempt 5 of 5" in (seen(db, run).last_error or "")


def test_ctrl_c_gives_the_run_back(db: Database) -> None:
    """The run waits again at once, its attempt not counted; what was claimed behind it goes back too."""

    def stopping(ctx: Context) -> None:
        if ctx.input == 3:
            raise KeyboardInterrupt

    stops = made(stopping)
    enqueue_many(stops, range(6), db=db)

    with pytest.raises(KeyboardInterrupt):
        run_due(db, stops)

    found = list(reversed(tasks(db=db)))
    assert [each.status for each in found] == ["succeeded"] * 3 + ["pending"] * 3
    assert [each.attempt_count for each in found[3:]] == [0, 0, 0]


def test_a_graceful_stop_writes_what_ended(db: Database) -> None:
    """When a stop is asked for, the running one ends and the rest goes back."""
    count: list[int] = []
    counting = made(lambda ctx: count.append(ctx.input), name="counting")
    enqueue_many(counting, range(10), db=db)

    assert run_due(db, counting, stopping=lambda: len(count) >= 4) == 4

    assert [each.status for each in reversed(tasks(db=db))] == ["succeeded"] * 4 + ["pending"] * 6
    assert run_due(db, counting, limit=2) == 2


def test_an_end_is_announced_when_asked(db: Database) -> None:
    """With `announces` the end writes its outbox message, key by run; without, nothing is written."""
    noop = made(lambda _: 5, name="noop")
    quiet, loud = enqueue(noop, db=db), enqueue(noop, key="k", announces=True, db=db)
    gone = enqueue(noop, due=MINUTE, announces=True, db=db)

    run_due(db, noop)
    cancel_task(gone, db=db)

    with db.connection() as conn:
        rows = conn.execute("select key, payload from rowlease.outbox_messages order by id").fetchall()
    assert [(row["key"], row["payload"]["status"]) for row in rows] == [
        (f"task_run:{loud}", "succeeded"),
        (f"task_run:{gone}", "cancelled"),
    ]
    assert (rows[0]["payload"]["result"], rows[0]["payload"]["key"], seen(db, quiet).result) == (5, "k", 5)


def test_the_rest_of_a_slice_goes_to_others_when_a_run_takes_long(db: Database) -> None:
    """A worker does not sit on what it claimed: behind a long run the rest is free within a second."""
    free: list[int] = []
    release = threading.Event()

    def uneven(ctx: Context) -> None:
        if ctx.input == 5:

            def pending() -> int:
                return sum(each.status == "pending" for each in tasks(db=db))

            free.append(until(pending))
            release.set()

    uneven_task = made(uneven)
    enqueue_many(uneven_task, range(12), db=db)
    run_due(db, uneven_task)

    assert release.is_set()
    assert free[0] > 0
    assert {each.status for each in tasks(db=db)} == {"succeeded"}


def test_differences_name_the_field() -> None:
    """What differs between two inputs is said field by field."""
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 3}) == ["b was 2, is now 3"]
    assert differences({"a": None}, {}) == ["a was None, is now 'absent'"]
    assert differences(1, 2) == ["it was 1, is now 2"]


def test_no_holder_is_seen(db: Database) -> None:
    """What is read of a run has no holder in it."""
    run = enqueue(made(lambda _: None, name="noop"), db=db)

    assert "holder" not in {*vars(TaskRun)["__dataclass_fields__"]}
    assert "holder" not in repr(seen(db, run))
    assert isinstance(Fact(name="a"), Fact)


def test_a_backlog_that_nobody_here_serves_costs_the_claim_nothing(db: Database) -> None:
    """The claim reads its own part of an index: runs of other tasks and later ones are not looked at."""
    mine, other = made(lambda _: None, name="mine"), made(lambda _: None, name="other")
    enqueue_many(other, range(20_000), db=db)
    enqueue_many(mine, range(20_000), due=HOUR, db=db)
    enqueue_many(mine, range(5), db=db)
    with db.connection() as conn:
        conn.execute("vacuum analyze rowlease.task_runs")

        with conn.transaction():
            plan = conn.execute(
                sql.SQL("explain (analyze, costs off, timing off) ") + _claim_statement((("mine", 1), ("none", 1))),
                {"holder": "h", "ttl": HOUR, "limit": 5, "names": ["mine"], "versions": [1]},
            ).fetchall()

    lines = "\n".join(row["QUERY PLAN"] for row in plan)
    assert "task_runs_served" in lines
    assert "task_runs_waiting" not in lines
    assert "Seq Scan" not in lines


@task(name="test.comes_back")
def comes_back(_ctx: Context) -> str:
    """Be run by the worker's own loop."""
    return "run"


def test_a_dead_workers_run_is_back_when_its_lease_is_over(db: Database) -> None:
    """A waiting worker wakes up for the end of a lease, not only at its next poll, which is an hour away here."""
    soon = dt.timedelta(milliseconds=1)
    rhythm = replace(db.settings.tasks, start_delay=soon, poll=HOUR, lease=dt.timedelta(seconds=1))
    others = replace(db.settings.timers, start_delay=soon, poll=HOUR)
    run = enqueue(comes_back, db=db)
    with db.connection() as conn:
        assert len(claim(conn, [comes_back], holder="dead", settings_lease=rhythm.lease, limit=1)) == 1
    stop = threading.Event()

    with Database(db.conninfo, replace(db.settings, tasks=rhythm, timers=others, imports=others)) as waiting:
        worker = threading.Thread(target=follow, args=(waiting,), kwargs={"stop": stop})
        worker.start()
        until(lambda: seen(db, run).ended)
        stop.set()
        worker.join(30)

    assert [each.how for each in seen(db, run).attempts] == ["interrupted", "succeeded"]
