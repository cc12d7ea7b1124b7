"""What the nodes do to an instance: conditions, transforms, forks, joins, types of the user's own, and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pydantic
import pytest

import importer as im
from importer import timer_job
from importer.db import Connection, Database
from importer.errors import NodeError, NodeTypeMissingError, WorkflowConflictError, WorkflowError, WorkflowNotFoundError
from importer.workflow import node_types
from tests.workflows import MoveClock, flow, later, node, passed


def test_instant_nodes_run_at_once(db: Database) -> None:
    """A workflow that need not wait is complete when `start` returns."""
    started = im.start(
        flow(
            node("many", "condition", expression="{{n}} > 1000"),
            node("pick", "transform", value="{{body}}", parse=True, pick="rows[0].name", into="first"),
            node("few", "log", message="only {{n}}"),
            node("say", "log", message="{{first}} of {{n}}"),
            node("end", "end"),
            ways=[("many", "pick", "true"), ("many", "few", "false"), ("pick", "say"), ("few", "end"), ("say", "end")],
        ),
        {"n": 1200, "body": '{"rows": [{"name": "Oslo"}]}'},
        db=db,
    )

    assert (started.status, passed(started)) == ("completed", ["many", "pick", "say", "end"])
    assert started.variables["first"] == "Oslo"
    assert [step.detail["message"] for step in started.history if "message" in step.detail] == ["Oslo of 1200"]


def test_a_fork_and_its_join(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """The join goes on once, when the last token of the fork has come."""
    started = im.start(
        flow(
            node("f", "fork"), node("a", "timer", hours=1), node("b", "timer", hours=2), node("c", "log", message="c"),
            node("j", "join", fork="f"), node("end", "end"),
            ways=[("f", "a"), ("f", "b"), ("f", "c"), ("a", "j"), ("b", "j"), ("c", "j"), ("j", "end")],
        ),
        db=db,
    )  # fmt: skip
    with later(db, move_clock, hours=1.5) as then:
        im.work(db=then)
    between = im.workflow(started, db=db)
    with later(db, move_clock, hours=3) as then:
        im.work(db=then)
    ended = im.workflow(started, db=db)

    assert sorted(wait.node for wait in between.waits) == ["b", "j", "j"]
    assert ended.status == "completed"
    assert sorted(passed(ended)) == ["a", "b", "c", "end", "f", "j", "j", "j"]
    rows = conn.execute("select node, source from rowlease.workflow_tokens where node = 'end'").fetchall()
    assert len(rows) == 1


def test_a_branch_that_ends_elsewhere_is_not_waited_for(db: Database, move_clock: MoveClock) -> None:
    """The join goes on with those that can still come; a condition on a connection leaves a branch out."""
    started = im.start(
        flow(
            node("f", "fork"), node("a", "timer", hours=1), node("b", "timer", hours=2), node("c", "log", message="c"),
            node("j", "join", fork="f"), node("end", "end"), node("over", "end"),
            ways=[("f", "a"), ("f", "b"), ("f", "c", "{{n}} > 5"), ("a", "j"), ("b", "over"), ("c", "j"), ("j", "end")],
        ),
        {"n": 1},
        db=db,
    )  # fmt: skip
    with later(db, move_clock, hours=1.5) as then:
        im.work(db=then)
    between = im.workflow(started, db=db)
    with later(db, move_clock, hours=3) as then:
        im.work(db=then)

    assert sorted(wait.node for wait in between.waits) == ["b", "j"]
    assert im.workflow(started, db=db).status == "completed"
    assert passed(im.workflow(started, db=db)) == ["f", "a", "b", "over", "j", "end"]


def test_a_timer_that_is_due_goes_on_at_once(db: Database, conn: Connection) -> None:
    """A moment that has passed makes no timer."""
    started = im.start(
        flow(node("wait", "timer", until="{{when}}"), node("end", "end"), ways=[("wait", "end")]),
        {"when": "2020-01-01"},
        db=db,
    )

    assert started.status == "completed"
    assert timer_job.timers(conn, instance_id=started.id) == []


def test_a_cycle_whose_waits_are_all_over_is_stopped(db: Database) -> None:
    """Bounded: a firing passes a thousand nodes at most."""
    endless = flow(
        node("wait", "timer", until="2020-01-01"),
        node("again", "condition", expression="{{n}} > 0"),
        node("end", "end"),
        ways=[("wait", "again"), ("again", "wait", "true"), ("again", "end", "false")],
    )  # fmt: skip

    with pytest.raises(NodeError, match="one firing passes at most 1,000 nodes"):
        im.start(endless, {"n": 1}, db=db)

    assert im.workflows(db=db) == ()


@pytest.mark.parametrize(
    ("message", "said"),
    [("{{absent}}", "there is no variable absent"), ("{{n.more}}", "there is no variable n.more")],
)
def test_an_error_at_the_start_starts_nothing(db: Database, message: str, said: str) -> None:
    """A missing variable is an error that names it, its instance and node; nothing is stored of it."""
    with pytest.raises(NodeError, match=said) as caught:
        im.start(flow(node("say", "log", message=message), node("end", "end"), ways=[("say", "end")]), {"n": 1}, db=db)

    assert caught.value.node == "say"
    assert im.workflows(db=db) == ()


@pytest.mark.parametrize(
    "variables",
    [{"a": object()}, {"a": float("nan")}, {"a-b": 1}, {"a": "x" * 256_000}, {"a": "\0"}, {"a": "\ud800"}, {"": 1}],
)
def test_variables_are_json_and_bounded(db: Database, variables: dict[str, Any]) -> None:
    """What cannot be kept is refused before anything is written."""
    with pytest.raises(WorkflowError):
        im.start(flow(node("end", "end"), ways=[]), variables, db=db)


def test_variables_do_not_grow_without_bound(db: Database) -> None:
    """A transform that doubles its value comes to an end."""
    doubling = [node(f"t{n}", "transform", value="{{x}}{{x}}", into="x") for n in range(20)]

    with pytest.raises(NodeError, match=r"longer than 100,000 letters|larger than 256,000 bytes"):
        im.start(
            flow(*doubling, node("end", "end"), ways=[(f"t{n}", f"t{n + 1}" if n < 19 else "end") for n in range(20)]),
            {"x": "abcd"},
            db=db,
        )


def test_the_same_key_is_the_same_instance(db: Database) -> None:
    """With other variables it is an error that shows the difference."""
    waiting = flow(node("wait", "timer", hours=1), node("end", "end"), ways=[("wait", "end")])
    first = im.start(waiting, {"n": 1}, key="march", db=db)

    again = im.start(waiting, {"n": 1}, key="march", db=db)
    with pytest.raises(WorkflowConflictError, match="n was 1, is now 2; of was not there, is now") as caught:
        im.start(waiting, {"n": 2, "of": "x"}, key="march", db=db)

    assert again.id == first.id == caught.value.id
    assert len(im.workflows(db=db)) == 1


def test_versions_live_side_by_side(db: Database, move_clock: MoveClock) -> None:
    """A running instance keeps its version; the newest enabled one starts new ones."""

    def version(text: str) -> im.Workflow:
        return flow(
            node("wait", "timer", hours=1), node("say", "log", message=text), node("end", "end"),
            ways=[("wait", "say"), ("say", "end")],
        )  # fmt: skip

    old = im.start(version("one"), db=db)
    im.store_workflow(version("two"), db=db)
    new = im.start("test", db=db)
    im.enable_workflow("test", version=2, enabled=False, db=db)
    third = im.start("test", db=db)
    im.enable_workflow("test", enabled=False, db=db)

    with pytest.raises(WorkflowNotFoundError, match="no workflow 'test' is stored and enabled"):
        im.start("test", db=db)
    with later(db, move_clock, hours=2) as then:
        im.work(db=then)
    said = [
        next(step.detail["message"] for step in im.workflow(each, db=db).history if "message" in step.detail)
        for each in (old, new, third)
    ]
    assert ([old.version, new.version, third.version], said) == ([1, 2, 1], ["one", "two", "one"])
    assert [(each.version, each.enabled, each.running) for each in im.stored_workflows(db=db)] == [
        (2, False, 0),
        (1, False, 0),
    ]


def test_a_start_in_the_callers_transaction(db: Database, conn: Connection) -> None:
    """Rolled back with it."""
    waiting = flow(node("wait", "timer", hours=1), node("end", "end"), ways=[("wait", "end")])

    with conn.transaction(force_rollback=True):
        im.start(waiting, conn=conn, db=db)
    assert im.workflows(db=db) == ()
    with conn.transaction():
        im.start(waiting, conn=conn, db=db)

    assert len(im.workflows(db=db)) == 1


# --- types of the user's own ------------------------------------------------------------------------------------------


class Letter(pydantic.BaseModel):
    """Config of a user's type."""

    to: str
    copies: int = 1


@pytest.fixture
def letters() -> Iterator[list[tuple[str, str, str]]]:
    """Register a type that keeps its letters: to, key, node."""
    sent: list[tuple[str, str, str]] = []

    @im.node_type("letter", config=Letter, outcomes=("sent", "returned"))
    def letter(config: Letter, context: im.NodeContext) -> tuple[str, dict[str, Any]]:
        if config.to == "nobody":
            raise LookupError("no such person")
        sent.append((config.to, context.key, context.node))
        return ("sent" if config.to != "Bo" else "returned"), {"letters": len(sent)}

    yield sent
    node_types.forget("letter")


LETTER = [node("post", "letter", to="{{who}}"), node("end", "end"), node("back", "end")]
LETTER_WAYS = [("post", "end", "sent"), ("post", "back", "returned")]


def test_a_type_of_the_users_own(db: Database, letters: list[tuple[str, str, str]]) -> None:
    """Its texts are filled, its outcome chooses the way, what it returns joins the variables."""
    sent = im.start(flow(*LETTER, ways=LETTER_WAYS), {"who": "Ada"}, db=db)
    returned = im.start(flow(*LETTER, ways=LETTER_WAYS), {"who": "Bo"}, db=db)

    assert (passed(sent), passed(returned)) == (["post", "end"], ["post", "back"])
    assert letters == [("Ada", f"workflow:{sent.id}:1", "post"), ("Bo", f"workflow:{returned.id}:1", "post")]
    assert sent.variables == {"who": "Ada", "letters": 1}


def test_its_error_is_the_nodes(db: Database, letters: list[tuple[str, str, str]]) -> None:
    """Named by instance and node."""
    with pytest.raises(NodeError, match="node post: LookupError: no such person"):
        im.start(flow(*LETTER, ways=LETTER_WAYS), {"who": "nobody"}, db=db)

    assert letters == []


def test_an_instance_whose_type_nobody_has_waits(
    db: Database, conn: Connection, move_clock: MoveClock, letters: list[tuple[str, str, str]]
) -> None:
    """It costs no attempt, is listed with the reason, and goes on where the type is known."""
    waiting = flow(node("wait", "timer", hours=1), *LETTER, ways=[("wait", "post"), *LETTER_WAYS])
    started = im.start(waiting, {"who": "Ada"}, db=db)
    known = node_types._TYPES["letter"]
    node_types.forget("letter")

    with later(db, move_clock, hours=2) as then:
        im.work(db=then)
    (timer,) = timer_job.timers(conn, instance_id=started.id)
    why = str(im.why(started, db=db))
    listed = im.workflows(db=db)[0].waits[0].problem
    node_types._TYPES["letter"] = known
    node_types._CHANGES.append("letter")
    with later(db, move_clock, hours=2, minutes=1) as then:
        im.work(db=then)

    assert (timer.status, timer.attempt_count) == ("pending", 0)
    assert "node post is of the type 'letter', which is not known here" in why
    assert listed is not None
    assert listed in why
    assert (im.workflow(started, db=db).status, len(letters)) == ("completed", 1)


def test_a_workflow_with_an_unknown_type_is_refused_at_the_start(
    db: Database, letters: list[tuple[str, str, str]]
) -> None:
    """By name, where its stored version needs a type that is not known here."""
    del letters
    im.store_workflow(flow(*LETTER, ways=LETTER_WAYS), db=db)
    node_types.forget("letter")

    with pytest.raises(NodeTypeMissingError, match="of the type 'letter'"):
        im.start("test", {"who": "Ada"}, db=db)

    assert im.workflows(db=db) == ()
