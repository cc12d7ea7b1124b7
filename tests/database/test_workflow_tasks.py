"""Waiting on a durable task: enqueued in the firing, its end delivered by the outbox, each step once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import importer as im
from importer.db import Connection, Database
from importer.errors import NodeTypeMissingError
from importer.task_run import Context, Retry, definition
from tests.workflows import flow, node, passed


def sending(task: str, *, say: str = "{{result.result}}") -> im.Workflow:
    """Make a workflow that runs a task and says what came of it."""
    return flow(
        node("send", "task", task=task, input={"to": "{{who}}"}),
        node("said", "log", message=say),
        node("failed", "log", message="{{result.status}}: {{result.error}}"),
        node("end", "end"),
        ways=[("send", "said", "succeeded"), ("send", "failed"), ("said", "end"), ("failed", "end")],
    )


@pytest.fixture
def letters() -> Iterator[list[str]]:
    """Register a task that keeps its letters and refuses nobody but Eve."""
    sent: list[str] = []

    def send(ctx: Context) -> str:
        if ctx.input["to"] == "Eve":
            raise ValueError("no such person")
        sent.append(ctx.input["to"])
        return f"sent to {ctx.input['to']}"

    definition.task(name="send_letter", retry=Retry(attempts=1))(send)
    yield sent
    definition._REGISTERED.pop(("send_letter", 1))


def test_it_goes_on_when_the_task_has_ended(db: Database, letters: list[str]) -> None:
    """By the path of its status, with its result as a variable."""
    started = im.start(sending("send_letter"), {"who": "Ada"}, db=db)
    waiting = started.waits[0]

    im.work(db=db)

    ended = im.workflow(started, db=db)
    assert (waiting.kind, waiting.run_status, letters) == ("task", "pending", ["Ada"])
    assert f"for the end of task run {waiting.run} (pending)" in str(waiting)
    assert passed(ended) == ["send", "said", "end"]
    assert ended.variables["result"] == {
        "run": waiting.run, "status": "succeeded", "result": "sent to Ada", "error": None,
    }  # fmt: skip


def test_a_failed_task_is_an_outcome(db: Database, letters: list[str]) -> None:
    """With its error."""
    started = im.start(sending("send_letter"), {"who": "Eve"}, db=db)

    im.work(db=db)

    ended = im.workflow(started, db=db)
    assert (passed(ended), letters) == (["send", "failed", "end"], [])
    assert ended.variables["result"]["status"] == "failed"
    assert "no such person" in ended.variables["result"]["error"]


def test_a_second_delivery_moves_nobody(db: Database, conn: Connection, letters: list[str]) -> None:
    """The message comes again; the token has gone on."""
    started = im.start(sending("send_letter"), {"who": "Ada"}, db=db)
    im.work(db=db)
    conn.execute("update rowlease.outbox_messages set status = 'pending', due_at = now(), finished_at = null")

    im.work(db=db)

    assert passed(im.workflow(started, db=db)) == ["send", "said", "end"]
    assert letters == ["Ada"]


def test_a_task_that_is_not_known_here(db: Database) -> None:
    """Named, and nothing was started."""
    with pytest.raises(NodeTypeMissingError, match="task absent"):
        im.start(sending("absent"), {"who": "Ada"}, db=db)

    assert im.workflows(db=db) == ()


def test_cancel_takes_the_run_that_nobody_has_begun(db: Database, letters: list[str]) -> None:
    """It is never run."""
    started = im.start(sending("send_letter"), {"who": "Ada"}, db=db)

    cancelled = im.cancel_workflow(started, db=db)
    im.work(db=db)

    assert letters == []
    assert cancelled.history[-1].detail["task_runs_cancelled"] == [started.waits[0].run]


def test_a_retry_keeps_the_run(db: Database, conn: Connection, letters: list[str]) -> None:
    """The task is not run again: its end is announced anew for the token that stands in the old one's place."""
    started = im.start(sending("send_letter", say="{{missing}}"), {"who": "Ada"}, db=db)
    im.work(db=db)
    conn.execute(
        "update rowlease.outbox_messages set attempt_count = 4, due_at = now()"
        " where topic = 'task_run_ended' and status = 'pending'"
    )
    im.work(db=db)
    failed = im.workflow(started, db=db)

    running = im.retry_workflow(started, db=db)
    conn.execute("update rowlease.workflow_instances set variables = variables || '{\"missing\": 1}'")
    im.work(db=db)

    ended: Any = im.workflow(started, db=db)
    assert (failed.status, failed.failed_node) == ("failed", "send")
    assert (running.waits[0].kind, running.waits[0].run) == ("task", started.waits[0].run)
    assert (ended.status, passed(ended), letters) == ("completed", ["send", "said", "end"], ["Ada"])
