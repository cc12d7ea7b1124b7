"""What starts runs and what ends them: no file skipped, no run storm, no run left started."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRequest,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from dagster._core.utils import make_new_run_id

import importer as im
from importer import import_job
from pipelines.asset_jobs import process_imports
from pipelines.resources import Importer
from pipelines.sensors import due_imports, lost_runs
from pipelines.sensors import inbox as inbox_sensor
from tests.importing import site_workbook

MoveClock = Callable[..., None]
LEASE = timedelta(seconds=300)


def tick(definition: object, importer: Importer, instance: DagsterInstance, cursor: str | None = None) -> SensorResult:
    """Ask a sensor once; a reason to skip or a request alone comes as a result too."""
    context = build_sensor_context(instance=instance, cursor=cursor, resources={"importer": importer})
    answer = definition(context)  # type: ignore[operator]
    if isinstance(answer, RunRequest):
        return SensorResult(run_requests=[answer])
    if isinstance(answer, SkipReason):
        return SensorResult(skip_reason=answer)
    assert isinstance(answer, SensorResult)
    return answer


def said(result: SensorResult) -> str:
    """Return the reason of a tick without a run."""
    assert isinstance(result.skip_reason, SkipReason)
    return result.skip_reason.skip_message or ""


def a_run(
    instance: DagsterInstance, status: DagsterRunStatus = DagsterRunStatus.STARTED, name: str = "process_imports"
) -> DagsterRun:
    """Make a run that nobody works on."""
    run = instance.create_run_for_job(process_imports)
    instance.delete_run(run.run_id)
    run = run._replace(run_id=make_new_run_id(), job_name=name, status=status, remote_job_origin=None)
    return instance.add_run(run)


def claim(importer: Importer, run: DagsterRun) -> None:
    """Let a run claim the next job."""
    with importer.db.connection() as conn:
        assert import_job.claim(conn, holder="import:gone", ttl=LEASE, run_ref=run.run_id) is not None


def test_a_workbook_in_the_inbox_starts_a_run(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """It is a job of its form at once, and one run is asked for."""
    site_workbook(inbox / "march.xlsx", 3)

    result = tick(inbox_sensor, importer, instance)

    assert len(result.run_requests or []) == 1
    assert [job.file_name for job in im.jobs(db=importer.db)] == ["march.xlsx"]


def test_many_workbooks_start_one_run(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """However many there are, and none while a run is at work."""
    for number in range(30):
        site_workbook(inbox / f"{number}.xlsx", 1, start=number)

    first = tick(inbox_sensor, importer, instance)
    a_run(instance)
    site_workbook(inbox / "late.xlsx", 2)
    second = tick(inbox_sensor, importer, instance)

    assert len(first.run_requests or []) == 1
    assert not second.run_requests
    assert "a run is at work" in said(second)
    assert len(im.jobs(db=importer.db)) == 31


def test_a_broken_workbook_is_said_in_one_tick(
    importer: Importer, instance: DagsterInstance, inbox: Path, move_clock: MoveClock
) -> None:
    """Its sentence stands in the tick; the next tick has nothing to say."""
    (inbox / "march.xlsx").write_text("no workbook")
    tick(inbox_sensor, importer, instance)
    with importer.db.connection() as conn:
        move_clock(timedelta(minutes=5), conn)

    first = tick(inbox_sensor, importer, instance)
    second = tick(inbox_sensor, importer, instance)

    assert "march.xlsx" in said(first)
    assert said(second) == "nothing new"


def test_due_jobs_start_a_run_unless_one_is_at_work(
    importer: Importer, instance: DagsterInstance, queue_jobs: Callable[..., list[int]]
) -> None:
    """Nothing due, due, and a run queued: one run in all."""
    nothing = tick(due_imports, importer, instance)
    queue_jobs(200)
    due = tick(due_imports, importer, instance)
    a_run(instance, DagsterRunStatus.NOT_STARTED)
    at_work = tick(due_imports, importer, instance)

    assert said(nothing) == "no import job is due"
    assert len(due.run_requests or []) == 1
    assert said(at_work) == "200 due; a run is at work"


def test_a_job_whose_lease_ran_out_is_due_again(
    importer: Importer, instance: DagsterInstance, queue_jobs: Callable[..., list[int]], move_clock: MoveClock
) -> None:
    """A run that is gone needs nobody to put its job back."""
    queue_jobs()
    claim(importer, a_run(instance, DagsterRunStatus.FAILURE))
    held = tick(due_imports, importer, instance)
    with importer.db.connection() as conn:
        move_clock(LEASE * 2, conn)

    run_out = tick(due_imports, importer, instance)

    assert said(held) == "no import job is due"
    assert len(run_out.run_requests or []) == 1


def test_an_idle_tick_is_one_query(
    importer: Importer, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a connection nor a look at the schema, and Dagster's books are not asked."""
    tick(due_imports, importer, instance)
    ran: list[str] = []
    execute = psycopg.Connection.execute

    def count(conn: psycopg.Connection[Any], query: object, *rest: object, **more: object) -> object:
        ran.append(str(query))
        return execute(conn, query, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(psycopg.Connection, "execute", count)

    tick(due_imports, importer, instance)

    assert len([query for query in ran if query]) == 1


def test_a_run_that_holds_a_lease_is_left(
    importer: Importer, instance: DagsterInstance, queue_jobs: Callable[..., list[int]]
) -> None:
    """Whatever its orchestrator believes: it works."""
    run = a_run(instance)
    queue_jobs()
    claim(importer, run)

    tick(lost_runs, importer, instance)

    assert instance.get_run_by_id(run.run_id).status == DagsterRunStatus.STARTED  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["process_imports", "import_workbook", "users_own_job"])
def test_a_run_whose_lease_ran_out_is_reported_failed(
    importer: Importer,
    instance: DagsterInstance,
    queue_jobs: Callable[..., list[int]],
    move_clock: MoveClock,
    name: str,
) -> None:
    """Also a run of a user's own job that imports among other things."""
    run = a_run(instance, name=name)
    queue_jobs()
    claim(importer, run)
    with importer.db.connection() as conn:
        move_clock(LEASE * 2, conn)

    result = tick(lost_runs, importer, instance)

    assert instance.get_run_by_id(run.run_id).status == DagsterRunStatus.FAILURE  # type: ignore[union-attr]
    assert run.run_id in said(result)


@pytest.mark.parametrize(
    ("name", "status", "then"),
    [
        ("process_imports", DagsterRunStatus.STARTED, DagsterRunStatus.FAILURE),
        ("import_workbook", DagsterRunStatus.STARTED, DagsterRunStatus.FAILURE),
        ("process_imports", DagsterRunStatus.STARTING, DagsterRunStatus.STARTING),
        ("process_imports", DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED),
        ("users_own_job", DagsterRunStatus.STARTED, DagsterRunStatus.STARTED),
        ("process_imports", DagsterRunStatus.NOT_STARTED, DagsterRunStatus.NOT_STARTED),
    ],
)
def test_a_run_without_a_lease_is_lost_after_a_lease_s_time(
    importer: Importer,
    instance: DagsterInstance,
    move_clock: MoveClock,
    name: str,
    status: DagsterRunStatus,
    then: DagsterRunStatus,
) -> None:
    """Only a run that does nothing but import; its time is counted by the database, from the first look at it."""
    run = a_run(instance, status, name)

    first = tick(lost_runs, importer, instance)
    before = instance.get_run_by_id(run.run_id)
    with importer.db.connection() as conn:
        move_clock(LEASE * 2, conn)
    tick(lost_runs, importer, instance, first.cursor)

    after = instance.get_run_by_id(run.run_id)
    assert before is not None
    assert after is not None
    assert (before.status, after.status) == (status, then)


def test_a_run_that_works_between_two_looks_begins_anew(
    importer: Importer, instance: DagsterInstance, queue_jobs: Callable[..., list[int]]
) -> None:
    """Its time without a lease is forgotten while it holds one."""
    run = a_run(instance)
    idle = tick(lost_runs, importer, instance)
    queue_jobs()
    claim(importer, run)

    working = tick(lost_runs, importer, instance, idle.cursor)

    assert list(json.loads(idle.cursor or "{}")) == [run.run_id]
    assert json.loads(working.cursor or "{}") == {}
