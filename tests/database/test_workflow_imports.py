"""Waiting on an import: submitted in the firing, its end delivered by the outbox, each step once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import importer as im
from importer import import_job, outbox_message
from importer.db import Connection, Database
from importer.errors import NodeError
from importer.workflow import import_route
from tests.importing import DEFINITION, form, site_workbook
from tests.workflows import MoveClock, flow, later, node, passed


@pytest.fixture
def stored(conn: Connection) -> None:
    """Store the form of the tests."""
    one = form()
    import_job.store_form(conn, one.to_dict(), name=one.name, digest=one.digest)


def loading(**config: object) -> im.Workflow:
    """Make a workflow that imports a file and says how it ended."""
    how = {"file": "{{file}}", "form": DEFINITION["name"], "create_table": True, **config}
    return flow(
        node("load", "import", **how),
        node("all", "log", message="all {{result.success_rows}}"),
        node("some", "log", message="{{result.success_rows}} of {{result.total_rows}}, {{result.failed_rows}} failed"),
        node("none", "log", message="{{result.status}}: {{result.error}}"),
        node("end", "end"),
        ways=[
            ("load", "all", "success"),
            ("load", "some", "partial_success"),
            ("load", "none"),
            ("all", "end"),
            ("some", "end"),
            ("none", "end"),
        ],
    )


def said(instance: im.Instance) -> str:
    """Return what the workflow logged."""
    (message,) = (str(step.detail["message"]) for step in instance.history if "message" in step.detail)
    return message


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(("rows", "expected"), [(40, "all 40"), (60, "59 of 60, 1 failed")])
def test_it_goes_on_when_the_import_has_ended(db: Database, tmp_path: Path, rows: int, expected: str) -> None:
    """By the path of its status, with its counts as variables."""
    started = im.start(loading(), files={"file": site_workbook(tmp_path / "a.xlsx", rows)}, db=db)
    waiting = im.jobs(db=db)[0]

    counts = im.work(db=db)

    ended = im.workflow(started, db=db)
    assert (started.waits[0].kind, started.waits[0].job, waiting.status) == ("import", waiting.id, "pending")
    assert counts["import_jobs"] == 1
    assert (ended.status, said(ended)) == ("completed", expected)
    assert ended.variables["result"]["job"] == waiting.id


@pytest.mark.usefixtures("stored")
def test_a_file_that_is_no_workbook_is_a_failure(db: Database, tmp_path: Path) -> None:
    """The job says why, and the workflow goes the way of failures."""
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"PK\x03\x04 broken")

    started = im.start(loading(), {"file": str(path)}, db=db)
    im.work(db=db)

    assert said(im.workflow(started, db=db)).startswith("failed: ")


@pytest.mark.usefixtures("stored")
def test_a_cancelled_import_is_an_outcome(db: Database, tmp_path: Path) -> None:
    """Whoever cancels the job, the token goes on."""
    started = im.start(loading(), files={"file": site_workbook(tmp_path / "a.xlsx", 5)}, db=db)

    im.cancel(im.jobs(db=db)[0], db=db)
    im.work(db=db)

    assert said(im.workflow(started, db=db)) == "cancelled: null"


@pytest.mark.usefixtures("stored")
def test_an_import_that_has_ended_goes_on_at_once(db: Database, tmp_path: Path) -> None:
    """The same file again is the same job: its counts are there."""
    path = site_workbook(tmp_path / "a.xlsx", 40)
    job = im.import_workbook(path, form(), db=db, progress=False)

    started = im.start(loading(), files={"file": path}, db=db)
    by_number = im.start(loading(job="{{job}}", file=None, form=None), {"job": job.id}, db=db)

    assert (said(started), said(by_number)) == ("all 40", "all 40")
    assert started.history[1].detail == {"outcome": "success", "job": job.id, "ended": "already"}
    assert len(im.jobs(db=db)) == 1


@pytest.mark.usefixtures("stored")
def test_several_wait_on_one_job(db: Database, tmp_path: Path) -> None:
    """One message moves them all, and a second delivery of it moves nobody again."""
    path = site_workbook(tmp_path / "a.xlsx", 40)
    started = [im.start(loading(), files={"file": path}, db=db) for _ in range(3)]
    im.work(db=db)
    with db.connection() as conn:
        conn.execute("update rowlease.outbox_messages set status = 'pending', due_at = now(), finished_at = null")

    again = im.work(db=db)["outbox_messages"]

    ended = [im.workflow(each, db=db) for each in started]
    assert again >= 1
    assert [passed(each) for each in ended] == [["load", "all", "end"]] * 3
    assert len({each.variables["result"]["job"] for each in ended}) == 1


@pytest.mark.usefixtures("stored")
def test_a_message_of_an_earlier_end_is_not_for_it(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The job was cancelled before the workflow took it up again; that old news comes late and moves nothing."""
    path = site_workbook(tmp_path / "a.xlsx", 40)
    job = im.submit(path, form(), db=db, create_table=True)
    im.cancel(job, db=db)

    started = im.start(loading(), files={"file": path}, db=db)
    relayed = outbox_message.relay(db, "outbox:a", {import_job.TOPIC: import_route(db.settings)})
    between = im.workflow(started, db=db)
    im.work(db=db)

    assert relayed == 1
    assert between.waits[0].job == job.id
    assert said(im.workflow(started, db=db)) == "all 40"
    assert [m.payload["status"] for m in reversed(outbox_message.messages(conn, topic=import_job.TOPIC))] == [
        "cancelled",
        "success",
    ]


@pytest.mark.parametrize(
    ("config", "variables", "expected"),
    [
        ({}, {"file": "absent.xlsx"}, "there is no file absent.xlsx"),
        ({"form": "nothing"}, {"file": "absent.xlsx"}, "no form 'nothing' is stored"),
        ({}, {"file": 5}, "neither a path nor a file"),
        ({}, {"file": {"file_name": "a", "content_hash": "0" * 64, "size_bytes": 1}}, "is not in the store"),
        ({"job": "{{file}}", "file": None, "form": None}, {"file": 77}, "there is no import job 77"),
        ({"job": "{{file}}", "file": None, "form": None}, {"file": "x"}, "is not the number of an import job"),
    ],
)
@pytest.mark.usefixtures("stored")
def test_an_import_that_cannot_be_submitted(
    db: Database, config: dict[str, object], variables: dict[str, Any], expected: str
) -> None:
    """The error names the node; nothing was started."""
    with pytest.raises(NodeError, match=expected):
        im.start(loading(**config), variables, db=db)

    assert (im.workflows(db=db), im.jobs(db=db)) == ((), ())


@pytest.mark.usefixtures("stored")
def test_a_dead_message_fails_those_who_wait(db: Database, tmp_path: Path, move_clock: MoveClock) -> None:
    """After five attempts with growing delays, node and error are named; a retry announces the end anew."""
    broken = flow(
        node("load", "import", file="{{file}}", form=DEFINITION["name"], create_table=True),
        node("say", "log", message="{{missing}}"),
        node("end", "end"),
        ways=[("load", "say"), ("say", "end")],
    )
    started = im.start(broken, files={"file": site_workbook(tmp_path / "a.xlsx", 5)}, db=db)

    for minutes in (0, 1, 3, 6, 11):
        with later(db, move_clock, minutes=minutes) as then:
            im.work(db=then)
    failed = im.workflow(started, db=db)
    im.retry_workflow(started, db=db)
    with db.connection() as conn:
        conn.execute("update rowlease.workflow_instances set variables = variables || '{\"missing\": 1}'")
    with later(db, move_clock, minutes=12) as then:
        im.work(db=then)

    assert (failed.status, failed.failed_node) == ("failed", "load")
    assert "there is no variable missing" in str(failed.last_error)
    assert (im.workflow(started, db=db).status, passed(im.workflow(started, db=db))) == (
        "completed",
        ["load", "say", "end"],
    )
