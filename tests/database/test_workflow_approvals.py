"""Approvals: who may answer, once, in time; the answer moves the token in the same transaction."""

from __future__ import annotations

from datetime import timedelta

import pytest

import importer as im
from importer import timer_job
from importer.db import Connection, Database
from importer.errors import ApprovalError, NodeError, WorkflowNotFoundError
from tests.workflows import MoveClock, flow, later, node, passed


def asked(
    *, limit: dict[str, float] | None = None, message: str = "{{answer.choice}}", **config: object
) -> im.Workflow:
    """Make a workflow that asks and says the answer; an unanswered one is escalated."""
    limited = {} if limit is None else {"limit": limit}
    return flow(
        node("ask", "approval", **{"question": "Load {{n}} rows?", "who": ["Ada", "{{boss}}"], **limited, **config}),
        node("say", "log", message=message),
        node("escalate", "log", message="nobody answered"),
        node("end", "end"),
        ways=[
            ("ask", "say"),
            *([("ask", "escalate", "timed_out")] if limit else []),
            ("say", "end"),
            ("escalate", "end"),
        ]
        if limit
        else [("ask", "escalate", "reject"), ("ask", "say"), ("say", "end"), ("escalate", "end")],
    )


def test_an_answer_moves_the_token(db: Database) -> None:
    """Who, what, when and why are kept, and are variables."""
    started = im.start(asked(), {"n": 5, "boss": "Bo"}, db=db)
    (approval,) = im.approvals("Bo", db=db)

    moved = im.answer(approval, "approve", by="Bo", note="looks right", db=db)

    (answered,) = im.approvals(status="answered", db=db)
    assert (approval.question, approval.who, approval.choices) == ("Load 5 rows?", ("Ada", "Bo"), ("approve", "reject"))
    assert (moved.id, moved.status, passed(moved)) == (started.id, "completed", ["ask", "say", "end"])
    assert (answered.answered_by, answered.choice, answered.note) == ("Bo", "approve", "looks right")
    assert moved.variables["answer"] == {
        "choice": "approve", "by": "Bo", "note": "looks right", "at": moved.variables["answer"]["at"],
    }  # fmt: skip
    assert moved.history[2].detail == {"outcome": "approve", "by": "Bo", "note": "looks right"}


def test_approvals_of_a_person(db: Database) -> None:
    """Those that name the person, and those that name nobody; oldest first."""
    for who in (["Ada"], ["Bo"], []):
        im.start(asked(who=who), {"n": 5, "boss": "x"}, db=db)

    assert [each.who for each in im.approvals("Ada", db=db)] == [("Ada",), ()]
    assert [each.who for each in im.approvals(db=db)] == [("Ada",), ("Bo",), ()]
    assert "anybody" in im.approvals(db=db)._repr_html_()


def test_who_is_asked_may_come_from_a_variable(db: Database) -> None:
    """A list of people is as many people."""
    im.start(asked(who="{{boss}}"), {"n": 5, "boss": ["Ada", "Bo"]}, db=db)

    assert im.approvals(db=db)[0].who == ("Ada", "Bo")


def test_the_second_answer_is_refused(db: Database) -> None:
    """With who answered, what, and when; and nothing changes."""
    im.start(asked(), {"n": 5, "boss": "Bo"}, db=db)
    (approval,) = im.approvals(db=db)
    moved = im.answer(approval, "approve", by="Ada", db=db)

    with pytest.raises(ApprovalError, match=r"Ada answered it with 'approve' at \d{4}-") as caught:
        im.answer(approval, "reject", by="Bo", db=db)

    (answered,) = im.approvals(status=None, db=db)
    assert (caught.value.answered_by, caught.value.answered_at) == ("Ada", answered.ended_at)
    assert im.workflow(moved, db=db) == moved


@pytest.mark.parametrize(
    ("choice", "by", "said"),
    [
        ("maybe", "Ada", "'maybe' is none of its choices: approve, reject"),
        ("approve", "Eve", "it is asked of Ada, Bo, and not of Eve"),
        ("approve", " ", "say who answers"),
        ("timed_out", "Ada", "'timed_out' is none of its choices"),
    ],
)
def test_an_answer_that_is_not_taken(db: Database, choice: str, by: str, said: str) -> None:
    """The approval stays open."""
    im.start(asked(limit={"days": 2}), {"n": 5, "boss": "Bo"}, db=db)
    (approval,) = im.approvals(db=db)

    with pytest.raises(ApprovalError, match=said):
        im.answer(approval, choice, by=by, db=db)

    assert im.approvals(db=db) == (approval,)


def test_a_limit_of_two_days(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """Unanswered, the workflow goes its own way after two days, not before, and a late answer is refused."""
    started = im.start(asked(limit={"days": 2}), {"n": 5, "boss": "Bo"}, db=db)
    (approval,) = im.approvals(db=db)
    with later(db, move_clock, days=1, hours=23) as then:
        early = im.work(db=then)["timer_jobs"]
    with later(db, move_clock, days=2, seconds=1) as then:
        with pytest.raises(ApprovalError, match="its time was over at"):
            im.answer(approval, "approve", by="Ada", db=then)
        im.work(db=then)
        with pytest.raises(ApprovalError, match="its time was over at"):
            im.answer(approval, "approve", by="Ada", db=then)

    ended = im.workflow(started, db=db)
    assert early == 0
    assert (ended.status, passed(ended)) == ("completed", ["ask", "escalate", "end"])
    assert ended.variables["answer"]["choice"] == "timed_out"
    assert im.approvals(status=None, db=db)[0].status == "timed_out"
    assert timer_job.timers(conn, instance_id=started.id)[0].status == "completed"


def test_an_answer_ends_the_limit(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """Its timer is cancelled in the same transaction and does nothing later."""
    started = im.start(asked(limit={"days": 2}), {"n": 5, "boss": "Bo"}, db=db)

    moved = im.answer(im.approvals(db=db)[0], "approve", by="Ada", db=db)

    with later(db, move_clock, days=3) as then:
        assert im.work(db=then)["timer_jobs"] == 0
    assert timer_job.timers(conn, instance_id=started.id)[0].status == "cancelled"
    assert passed(moved) == ["ask", "say", "end"]


def test_an_error_while_answering_is_told_and_nothing_was_answered(db: Database, conn: Connection) -> None:
    """The approval is open as before, its limit runs on, and no step was recorded."""
    started = im.start(asked(limit={"days": 2}, message="{{absent}}"), {"n": 5, "boss": "Bo"}, db=db)
    (approval,) = im.approvals(db=db)

    with pytest.raises(NodeError, match=r"node say: .*there is no variable absent"):
        im.answer(approval, "approve", by="Ada", db=db)

    assert im.approvals(db=db) == (approval,)
    assert im.workflow(started, db=db) == started
    assert timer_job.timers(conn, instance_id=started.id)[0].status == "pending"


def test_an_answer_to_a_cancelled_workflow(db: Database) -> None:
    """Cancelled with it, and told so."""
    started = im.start(asked(), {"n": 5, "boss": "Bo"}, db=db)
    (approval,) = im.approvals(db=db)
    im.cancel_workflow(started, db=db)

    with pytest.raises(ApprovalError, match="it was cancelled at"):
        im.answer(approval, "approve", by="Ada", db=db)
    with pytest.raises(WorkflowNotFoundError, match="there is no approval 999"):
        im.answer(999, "approve", by="Ada", db=db)


def test_a_worker_an_hour_off_changes_nothing(db: Database, conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments come from the database, also when this machine's clock is wrong."""
    monkeypatch.setattr("time.time", lambda: 0.0)
    started = im.start(asked(limit={"minutes": 30}), {"n": 5, "boss": "Bo"}, db=db)

    assert im.work(db=db)["timer_jobs"] == 0

    row = conn.execute("select due_at - rowlease.clock() as left from rowlease.approvals").fetchone()
    assert row is not None
    assert timedelta(minutes=29) < row["left"] <= timedelta(minutes=30)
    assert started.waits[0].until is not None
