"""Cancelling, failing, setting running again, and the answer to why something waits."""

from __future__ import annotations

from pathlib import Path

import pytest

import importer as im
from importer import import_job, timer_job
from importer.db import Connection, Database, statements
from importer.errors import WorkflowNotFoundError, WorkflowStateError
from tests.importing import DEFINITION, form, site_workbook
from tests.workflows import MoveClock, flow, later, node, passed

BRANCHES = flow(
    node("f", "fork"),
    node("wait", "timer", hours=1),
    node("ask", "approval", question="Go on?", who=["Ada"], limit={"days": 2}),
    node("load", "import", file="{{file}}", form=DEFINITION["name"], create_table=True),
    node("say", "log", message="{{word}}"),
    node("j", "join", fork="f"),
    node("end", "end"),
    ways=[
        ("f", "wait"), ("f", "ask"), ("f", "load"), ("wait", "say"), ("say", "j"), ("ask", "j"), ("load", "j"),
        ("j", "end"),
    ],
)  # fmt: skip


@pytest.fixture
def started(db: Database, conn: Connection, tmp_path: Path) -> im.Instance:
    """Start an instance that waits for a timer, an answer and an import; the variable `word` is missing."""
    one = form()
    import_job.store_form(conn, one.to_dict(), name=one.name, digest=one.digest)
    return im.start(BRANCHES, files={"file": site_workbook(tmp_path / "a.xlsx", 5)}, db=db)


def statuses(conn: Connection, instance: im.Instance) -> dict[str, list[str]]:
    """Return the statuses of what belongs to an instance."""
    found = {}
    for table, order in (("workflow_tokens", "number"), ("timer_jobs", "token"), ("approvals", "token")):
        rows = conn.execute(
            f"select status from rowlease.{table} where instance_id = %s order by {order}", [instance.id]
        )
        found[table] = [row["status"] for row in rows.fetchall()]
    return found


def test_cancel(db: Database, conn: Connection, started: im.Instance) -> None:
    """Tokens, timers, approvals and the job that nobody has begun go together; the history says who."""
    ended = im.cancel_workflow(started, by="Ada", db=db)

    assert (ended.status, ended.waits) == ("cancelled", ())
    assert statuses(conn, started) == {
        "workflow_tokens": ["consumed", "cancelled", "cancelled", "cancelled"],
        "timer_jobs": ["cancelled", "cancelled"],
        "approvals": ["cancelled"],
    }
    (job,) = im.jobs(db=db)
    assert (job.status, job.last_error) == ("cancelled", f"workflow instance {started.id} was cancelled")
    assert ended.history[-1].detail == {"by": "Ada", "import_jobs_cancelled": [job.id], "task_runs_cancelled": []}
    with pytest.raises(WorkflowStateError, match="it has ended and cannot be cancelled"):
        im.cancel_workflow(started, db=db)


def test_cancel_leaves_work_done(db: Database, started: im.Instance) -> None:
    """An import that has ended stays, and one that others wait for too."""
    im.work(db=db)

    ended = im.cancel_workflow(started, db=db)

    assert im.jobs(db=db)[0].status == "success"
    assert ended.history[-1].detail["import_jobs_cancelled"] == []


def test_cancel_leaves_a_job_that_others_wait_for(db: Database, started: im.Instance, tmp_path: Path) -> None:
    """The other instance still gets its import."""
    other = im.start(BRANCHES, files={"file": tmp_path / "a.xlsx"}, db=db)

    im.cancel_workflow(started, db=db)

    (job,) = im.jobs(db=db)
    assert job.status == "pending"
    assert "load" in [wait.node for wait in im.workflow(other, db=db).waits]


def fail(db: Database, move_clock: MoveClock) -> None:
    """Let the timer of the instance use up its attempts."""
    for seconds in range(0, 5 * 40, 40):
        with later(db, move_clock, hours=1, seconds=seconds + 1) as then:
            im.work(db=then)


def test_a_failure(db: Database, conn: Connection, started: im.Instance, move_clock: MoveClock) -> None:
    """Five attempts, then the timer is failed with its error and the instance with it; everything else is cancelled."""
    fail(db, move_clock)

    failed = im.workflow(started, db=db)
    assert (failed.status, failed.failed_node) == ("failed", "say")
    assert failed.last_error == (
        f"workflow instance {started.id}, node say: '{{{{word}}}}': there is no variable word; there are: file, result"
    )
    assert statuses(conn, started) == {
        "workflow_tokens": ["consumed", "cancelled", "cancelled", "consumed", "cancelled"],
        "timer_jobs": ["failed", "cancelled"],
        "approvals": ["cancelled"],
    }
    (timer, _) = timer_job.timers(conn, instance_id=started.id)
    assert (timer.attempt_count, timer.last_error) == (5, failed.last_error)
    assert "Set it running again: rowlease workflow retry" in str(im.why(started, db=db))
    assert passed(failed) == ["f", "load"]


def test_a_retry_goes_on_from_the_failed_node(
    db: Database, conn: Connection, started: im.Instance, move_clock: MoveClock
) -> None:
    """Every branch stands where it stood: its timer is due at once, its approval asked again, no step repeated."""
    before = im.approvals(db=db)[0]
    fail(db, move_clock)

    running = im.retry_workflow(started, db=db)
    conn.execute('update rowlease.workflow_instances set variables = variables || \'{"word": "now"}\'')
    with later(db, move_clock, hours=2) as then:
        im.work(db=then)
        (approval,) = im.approvals(db=then)
        ended = im.answer(approval, "approve", by="Ada", db=then)

    assert (running.status, running.last_error, sorted(wait.node for wait in running.waits)) == (
        "running", None, ["ask", "j", "wait"],
    )  # fmt: skip
    assert (approval.question, approval.due_at, approval.id > before.id) == (before.question, before.due_at, True)
    assert (ended.status, sorted(passed(ended))) == (
        "completed", ["ask", "end", "f", "j", "j", "j", "load", "say", "wait"],
    )  # fmt: skip
    with pytest.raises(WorkflowStateError, match="only a failed instance can be set running again"):
        im.retry_workflow(started, db=db)


def test_a_retry_whose_cause_remains_fails_again(db: Database, started: im.Instance, move_clock: MoveClock) -> None:
    """And can be set running again."""
    fail(db, move_clock)
    im.retry_workflow(started, db=db)
    for seconds in range(0, 5 * 40, 40):
        with later(db, move_clock, hours=2, seconds=seconds) as then:
            im.work(db=then)
    again = im.workflow(started, db=db)

    running = im.retry_workflow(started, db=db)

    assert (again.status, running.status) == ("failed", "running")
    assert sorted(wait.node for wait in running.waits) == ["ask", "j", "wait"]


def test_why(db: Database, started: im.Instance) -> None:
    """What it waits for, since and until when, who may act, and whether a worker could serve it."""
    alone = str(im.why(started, db=db))
    with db.dedicated() as worker:
        worker.execute(statements("connection")["name_worker"])
        served = str(im.why(started, db=db))

    assert f"Workflow instance {started.id} (test v1) is running." in alone
    assert "- wait waits since " in alone
    assert "for an answer of Ada to 'Go on?' (approval " in alone
    assert "), until " in alone
    assert "- load waits since " in alone
    assert "(pending)" in alone
    assert "No worker listens now" in alone
    assert "Workers that listen now: 1." in served


def test_it_shows_itself(db: Database, started: im.Instance) -> None:
    """A diagram with the tokens marked, and a table of history; in a list, what it waits for."""
    shown = im.workflow(started, db=db)._repr_markdown_()

    assert "```mermaid" in shown
    assert "class n1 waits" in shown
    assert "class n0 passed" in shown
    assert "| ask | waits |" in shown
    assert "test v1" in im.workflows(db=db)._repr_html_()
    assert "wait waits since" in im.workflows(db=db)._repr_html_()


def test_nobody_sees_a_holder(db: Database, started: im.Instance, move_clock: MoveClock) -> None:
    """Neither values nor what they show name a holder of a lease."""
    with later(db, move_clock, hours=2) as then:
        im.work(db=then)
        shown = repr(im.workflow(started, db=then)) + str(im.why(started, db=then)) + repr(im.workflows(db=then))

    assert "holder" not in shown
    assert "timer:" not in shown


def test_what_is_not_there(db: Database) -> None:
    """Named in words."""
    for call in (im.workflow, im.why, im.cancel_workflow, im.retry_workflow):
        with pytest.raises(WorkflowNotFoundError, match="there is no workflow instance 999"):
            call(999, db=db)
    with pytest.raises(WorkflowNotFoundError, match="there is no workflow 'nothing'"):
        im.enable_workflow("nothing", db=db)
