"""What a running task does: steps, sleeps, facts, the ledger, cancels, errors, its log."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from typing import Any

import pytest

from importer.db import Connection, Database
from importer.errors import (
    LeaseLostError,
    TaskCancelledError,
    TaskNotFoundError,
    TaskRefusedError,
    TaskStateError,
)
from importer.task_run import (
    Context,
    Operation,
    Retry,
    Task,
    cancel_task,
    enqueue,
    retry_task,
    signal,
    tasks_due,
)
from importer.task_run.redaction import redacted
from tests.task_running import made, noted, run_due, seen
from tests.waiting import until

MoveClock = Callable[..., None]

MINUTE = dt.timedelta(minutes=1)


def test_an_error_is_tried_again_after_a_growing_delay(db: Database, move_clock: MoveClock) -> None:
    """Each error waits longer, up to the longest; the last attempt fails the run with what it said."""
    retry = Retry(attempts=3, first=MINUTE, factor=10, longest=MINUTE * 5)

    def failing(ctx: Context) -> None:
        raise RuntimeError(f"attempt {ctx.attempt} of https://ann:pw@example.com/?token=t")

    broken = made(failing, retry=retry)
    run = enqueue(broken, db=db)

    moved = dt.timedelta(0)
    for delay in (MINUTE, MINUTE * 5):
        assert run_due(db, broken) == 1
        assert run_due(db, broken) == 0
        moved += delay + dt.timedelta(seconds=1)
        move_clock(moved)
    assert run_due(db, broken) == 1

    done = seen(db, run)
    assert (done.status, done.attempt_count) == ("failed", 3)
    assert done.last_error == "RuntimeError: attempt 3 of https://***@example.com/?token=***"
    assert [each.how for each in done.attempts] == ["error", "error", "failed"]


def test_a_task_may_refuse_for_good(db: Database) -> None:
    """`TaskRefusedError` fails the run at once."""

    def refusing(_ctx: Context) -> None:
        raise TaskRefusedError("no such customer")

    refuses = made(refusing)
    run = enqueue(refuses, db=db)
    run_due(db, refuses)

    assert (seen(db, run).status, seen(db, run).last_error) == ("failed", "no such customer")


def test_finished_steps_are_not_run_again(db: Database) -> None:
    """After an error the kept results are returned, and the step that failed is run from its start."""
    calls: list[str] = []

    def stepping(ctx: Context) -> object:
        one = ctx.step("load", lambda: noted(calls, "load", ("a", dt.date(2026, 1, 2))))
        again = ctx.step("load", lambda: calls.append("load again"))
        if ctx.attempt == 1:
            ctx.step("send", lambda: noted(calls, "send") / 0)
        return [one, again, ctx.step("send", lambda: noted(calls, "send", 7))]

    steps = made(stepping, retry=Retry(first=dt.timedelta(0)))
    run = enqueue(steps, db=db)

    assert run_due(db, steps) == 2
    assert seen(db, run).result == [["a", "2026-01-02"], None, 7]
    assert calls == ["load", "load again", "send", "send"]


def test_a_sleeping_run_holds_no_worker(db: Database, move_clock: MoveClock) -> None:
    """It waits as a row without a holder, its attempt not counted, and goes on where it was when its time is over."""
    calls: list[str] = []

    def sleeping(ctx: Context) -> str:
        ctx.step("before", lambda: calls.append("before"))
        ctx.sleep(MINUTE * 10)
        ctx.sleep(60)
        return str(ctx.step("after", lambda: noted(calls, "after", "done")))

    sleeps = made(sleeping)
    run = enqueue(sleeps, db=db)

    assert run_due(db, sleeps) == 1
    assert (seen(db, run).status, seen(db, run).state, seen(db, run).attempt_count) == ("pending", "asleep", 0)
    assert run_due(db, sleeps) == 0
    move_clock(MINUTE * 10 + dt.timedelta(seconds=1))
    assert run_due(db, sleeps) == 1
    assert run_due(db, sleeps) == 0
    move_clock(MINUTE * 12)
    assert run_due(db, sleeps) == 1

    done = seen(db, run)
    assert (done.result, done.attempt_count, calls) == ("done", 1, ["before", "after"])
    assert [each.how for each in done.attempts] == ["asleep", "asleep", "succeeded"]


def waiting_task(**more: Any) -> Task:  # noqa: ANN401 - arguments of wait_for
    """Give a task that waits for the fact `paid` and returns what came."""

    def wait(ctx: Context) -> object:
        fact = ctx.wait_for("paid", **more)
        return {"payload": fact.payload, "timed_out": fact.timed_out}

    return made(wait)


def test_a_fact_before_the_wait_is_found(db: Database) -> None:
    """A fact that came before its waiter does not get lost; the first one stands."""
    waits = waiting_task()
    run = enqueue(waits, db=db)
    first = signal(run, "paid", {"sum": 1}, db=db)

    assert signal(run, "paid", {"sum": 2}, db=db) == first
    assert run_due(db, waits) == 1
    assert seen(db, run).result == {"payload": {"sum": 1}, "timed_out": False}


def test_a_fact_after_the_wait_wakes_the_run(db: Database) -> None:
    """The run gives its place back; another fact leaves it alone; its own makes it due."""
    waits = waiting_task()
    run = enqueue(waits, db=db)

    assert run_due(db, waits) == 1
    assert (seen(db, run).state, seen(db, run).waits_for, seen(db, run).due_at) == ("waiting", "paid", None)
    signal(run, "shipped", db=db)
    assert run_due(db, waits) == 0
    signal(seen(db, run), "paid", db=db)
    assert run_due(db, waits) == 1
    assert seen(db, run).result == {"payload": None, "timed_out": False}
    assert [fact.name for fact in seen(db, run).facts] == ["shipped", "paid"]


def test_a_time_out_is_a_value(db: Database, move_clock: MoveClock) -> None:
    """When no fact comes in time the run goes on with `timed_out`; a later fact does not change that."""

    def patient(ctx: Context) -> list[bool]:
        first = ctx.wait_for("paid", timeout=MINUTE).timed_out
        if ctx.step("signalled", lambda: True) and ctx.attempt == 1:
            raise RuntimeError("once more")
        return [first, ctx.wait_for("paid").timed_out]

    waits = made(patient, retry=Retry(first=dt.timedelta(0)))
    run = enqueue(waits, db=db)
    run_due(db, waits)
    move_clock(MINUTE * 2)
    with Database(db.conninfo, db.settings) as now:
        assert tasks_due(now, "h", tasks=[waits], limit=1) == 1
        signal(run, "paid", db=now)
        assert tasks_due(now, "h", tasks=[waits]) == 1

    assert seen(db, run).result == [True, False]


def test_the_outside_is_asked_before_waiting(db: Database, move_clock: MoveClock) -> None:
    """`check` finds what nobody signalled: at once, or when the time is over; its answer is the fact."""
    answers = [None, "paid by cheque"]
    waits = waiting_task(check=lambda: answers.pop(0), timeout=60)
    run = enqueue(waits, db=db)

    assert run_due(db, waits) == 1
    move_clock(MINUTE * 2)
    assert run_due(db, waits) == 1
    assert seen(db, run).result == {"payload": "paid by cheque", "timed_out": False}
    assert seen(db, run).facts[0].payload == "paid by cheque"


def test_an_operation_is_done_once(db: Database) -> None:
    """Its result is kept; an attempt that left none is shown to the next as resumed; commit writes with it."""
    told: list[Operation] = []

    def submitting(ctx: Context) -> object:
        def act(operation: Operation) -> str:
            told.append(operation)
            if len(told) == 1:
                raise ConnectionError("no answer")
            return "receipt"

        def commit(conn: Connection, receipt: str) -> None:
            conn.execute("insert into receipts values (%s)", [receipt])

        receipt = ctx.once("submit:42", act, commit=commit)
        if len(told) == 2 and ctx.attempt == 2:
            raise RuntimeError("after the operation")
        return receipt

    submit = made(submitting, retry=Retry(first=dt.timedelta(0)))
    with db.connection() as conn:
        conn.execute("create table receipts (text text)")
    run = enqueue(submit, db=db)

    assert run_due(db, submit) == 3
    assert seen(db, run).result == "receipt"
    assert [(each.key, each.resumed) for each in told] == [("submit:42", False), ("submit:42", True)]
    assert {each.idempotency_key for each in told} == {f"task-run-{run}:submit:42"}
    with db.connection() as conn:
        assert conn.execute("select text from receipts").fetchall() == [{"text": "receipt"}]
    assert [(each["attempts"], each["result"]) for each in seen(db, run).operations] == [(2, "receipt")]


def test_a_commit_that_fails_leaves_no_result(db: Database) -> None:
    """The result is stored with what follows from it, or not at all."""
    resumed: list[bool] = []

    def submitting(ctx: Context) -> str:
        def commit(conn: Connection, _result: str) -> None:
            if ctx.attempt == 1:
                conn.execute("select 1 / 0")

        return str(ctx.once("submit", lambda operation: noted(resumed, operation.resumed, "r"), commit=commit))

    submit = made(submitting, retry=Retry(first=dt.timedelta(0)))
    enqueue(submit, db=db)

    assert run_due(db, submit) == 2
    assert resumed == [False, True]


def test_cancelling_a_waiting_run(db: Database) -> None:
    """It is over at once; it cannot be cancelled twice, and can be retried."""
    noop = made(lambda _: None, name="noop")
    run = enqueue(noop, db=db)

    assert cancel_task(run, db=db).status == "cancelled"
    assert run_due(db, noop) == 0
    with pytest.raises(TaskStateError, match="cannot be cancelled"):
        cancel_task(run, db=db)
    assert retry_task(run, db=db).status == "pending"
    assert run_due(db, noop) == 1
    with pytest.raises(TaskStateError, match="has succeeded"):
        retry_task(run, db=db)
    with pytest.raises(TaskNotFoundError):
        cancel_task(10**9, db=db)


def test_cancelling_a_running_one_before_a_step(db: Database) -> None:
    """The next step is not begun, and nothing more of the run is written."""
    caught: list[BaseException] = []

    def long(ctx: Context) -> None:
        cancel_task(ctx.run_id, db=db)
        try:
            ctx.step("next", lambda: caught.append(AssertionError("the step ran")))
        except TaskCancelledError as error:
            caught.append(error)
            assert ctx.cancelled()
            raise

    runs_long = made(long)
    run = enqueue(runs_long, db=db)
    run_due(db, runs_long)

    assert [type(each) for each in caught] == [TaskCancelledError]
    assert seen(db, run).status == "cancelled"


@pytest.mark.parametrize("point", ["operation", "sleep", "wait", "end"])
def test_cancelled_at_each_point(db: Database, point: str) -> None:
    """Whatever the run does next, it stays cancelled."""

    def long(ctx: Context) -> str:
        cancel_task(ctx.run_id, db=db)
        match point:
            case "operation":
                ctx.once("act", lambda _operation: pytest.fail("it was done"))
            case "sleep":
                ctx.sleep(1)
            case "wait":
                ctx.wait_for("never")
            case _:
                pass
        return "too late"

    runs_long = made(long)
    run = enqueue(runs_long, db=db)
    run_due(db, runs_long)

    assert (seen(db, run).status, seen(db, run).result) == ("cancelled", None)


def test_a_cancel_is_seen_within_a_second(db: Database) -> None:
    """A function that only computes learns of it from the watch."""
    took: list[dt.timedelta] = []

    def computing(ctx: Context) -> None:
        cancel_task(ctx.run_id, db=db)
        began = dt.datetime.now(dt.UTC)
        until(ctx.cancelled, deadline_s=10)
        took.append(dt.datetime.now(dt.UTC) - began)
        with pytest.raises(TaskCancelledError):
            ctx.raise_if_cancelled()

    computes = made(computing)
    enqueue(computes, db=db)
    run_due(db, computes)

    assert took[0] < dt.timedelta(seconds=5)  # a second, and what a busy machine adds


def test_a_stale_attempt_changes_nothing(db: Database) -> None:
    """A run taken over while its operation was under way stores neither result nor what commit would write."""

    def slow(ctx: Context) -> None:
        def act(operation: Operation) -> str:
            if not operation.resumed:
                with db.connection() as conn:  # another worker has taken it over
                    conn.execute("update rowlease.task_runs set fence = fence + 1")
            return "stale"

        with pytest.raises(LeaseLostError):
            ctx.once("act", act, commit=lambda conn, _: conn.execute("create table written ()"))
        with pytest.raises(LeaseLostError):
            ctx.step("later", lambda: pytest.fail("it ran"))
        raise RuntimeError("nor is this kept")

    runs_slow = made(slow)
    run = enqueue(runs_slow, db=db)
    run_due(db, runs_slow)

    found = seen(db, run)
    assert (found.status, found.last_error, found.operations[0]["result"]) == ("running", None, None)
    with db.connection() as conn:
        assert conn.execute("select to_regclass('written') as there").fetchone() == {"there": None}


def test_a_long_run_keeps_its_lease(db: Database) -> None:
    """The watch renews it while the function computes, so nobody else takes it."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    short = replace(db.settings, tasks=replace(db.settings.tasks, lease=dt.timedelta(seconds=0.6)))
    renewed: list[bool] = []

    def computing(ctx: Context) -> None:
        began = heartbeat(db, ctx.run_id)
        until(lambda: heartbeat(db, ctx.run_id) > began + dt.timedelta(seconds=0.8))
        renewed.append(not ctx.cancelled())

    computes = made(computing)
    run = enqueue(computes, db=db)
    with Database(db.conninfo, short) as hasty:
        tasks_due(hasty, "h", tasks=[computes])

    assert (renewed, seen(db, run).attempt_count, seen(db, run).status) == ([True], 1, "succeeded")


def heartbeat(db: Database, run: int) -> dt.datetime:
    """Tell when a run was renewed last."""
    with db.connection() as conn:
        row = conn.execute("select last_heartbeat_at as at from rowlease.task_runs where id = %s", [run]).fetchone()
    assert row is not None
    return row["at"]  # type: ignore[no-any-return]  # a timestamptz


def test_secrets_are_hidden_in_the_log(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    """By the name of a field and in addresses; each line names its run."""

    def logging_task(ctx: Context) -> None:
        ctx.log.info("sent %s to %s", {"api_key": "k1", "user": "ann"}, "https://ann:pw@example.com/x?sig=s1&page=2")
        ctx.log.info("Authorization: Bearer abc and password=%s", "pw2", extra={"token": "t", "step": 1})

    logs = made(logging_task)
    run = enqueue(logs, db=db)
    with caplog.at_level(logging.INFO, logger="importer.task_run"):
        run_due(db, logs)

    text = caplog.text
    assert f"task run {run}: sent" in text
    assert not any(secret in text for secret in ("k1", "pw@", "s1", "abc", "pw2"))
    assert "ann" in text
    assert "page=2" in text


def test_redaction_keeps_what_is_no_secret() -> None:
    """Words that only contain the letters of a secret's name stay."""
    value = {"passenger": "ann", "signal": 1, "tokens_used": 3, "inner": [{"dbPassword": "x"}]}

    assert redacted(value) == {"passenger": "ann", "signal": 1, "tokens_used": 3, "inner": [{"dbPassword": "***"}]}
