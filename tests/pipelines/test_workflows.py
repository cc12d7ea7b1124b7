"""Workflows in Dagster: started, answered and cancelled from the launchpad, served by a short run, shown as tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from dagster import (
    DagsterEventType,
    DagsterInstance,
    DagsterRunStatus,
    ExecuteInProcessResult,
    JobDefinition,
    RunRequest,
    SkipReason,
    build_sensor_context,
)

import importer as im
from pipelines.resources import Importer, opened
from pipelines.workflows import answer_approval, cancel_workflow, due_steps, process_steps, start_workflow
from tests.workflows import flow, node

MoveClock = Callable[..., None]

ASKED = flow(
    node("ask", "approval", question="Load {{month}}?", who=["Ada"]),
    node("wait", "timer", hours=1),
    node("end", "end"),
    ways=[("ask", "wait", "approve"), ("ask", "end"), ("wait", "end")],
    name="budget",
)


def launch(job: JobDefinition, importer: Importer, books: DagsterInstance, **config: object) -> ExecuteInProcessResult:
    """Run an asset job as the launchpad would."""
    (name,) = (each.name for each in job.nodes)
    return job.execute_in_process(
        run_config={"ops": {name: {"config": config}}} if config else {},
        resources={"importer": importer},
        instance=books,
        raise_on_error=False,
    )


def tables(result: ExecuteInProcessResult) -> dict[str, Any]:
    """Return what a run showed with the asset `workflows`."""
    (event,) = (each for each in result.all_events if each.event_type == DagsterEventType.ASSET_OBSERVATION)
    metadata = event.asset_observation_data.asset_observation.metadata
    return {name: getattr(value, "records", value.value) for name, value in metadata.items()}


def tick(importer: Importer, instance: DagsterInstance) -> RunRequest | SkipReason:
    """Ask the sensor once."""
    answer = due_steps(build_sensor_context(instance=instance, resources={"importer": importer}))
    assert isinstance(answer, RunRequest | SkipReason)
    return answer


def test_from_start_to_end(importer: Importer, instance: DagsterInstance, move_clock: MoveClock) -> None:
    """Started, approved, and after its hour served by the run that the sensor asks for."""
    im.store_workflow(ASKED, db=importer.db)
    started = launch(start_workflow, importer, instance, workflow="budget", variables='{"month": "March"}', key="m")
    (approval,) = tables(started)["open_approvals"]
    answered = launch(
        answer_approval, importer, instance, approval=approval.data["approval"], choice="approve", by="Ada"
    )
    early = tick(importer, instance)
    opened.close()
    move_clock(timedelta(hours=2))

    asked = tick(importer, instance)
    served = launch(process_steps, importer, instance)

    assert (started.success, answered.success, served.success) == (True, True, True)
    assert (approval.data["question"], approval.data["who"]) == ("Load March?", "Ada")
    assert isinstance(early, SkipReason)
    assert isinstance(asked, RunRequest)
    (row,) = tables(served)["instances"]
    assert (row.data["workflow"], row.data["key"], row.data["status"]) == ("budget v1", "m", "completed")
    assert tables(served)["waiting_for_people"] == 0


def test_one_run_at_a_time(importer: Importer, instance: DagsterInstance, move_clock: MoveClock) -> None:
    """While a run is at work the sensor asks for no other."""
    im.start(flow(node("w", "timer", hours=1), node("end", "end"), ways=[("w", "end")]), db=importer.db)
    opened.close()
    move_clock(timedelta(hours=2))
    run = instance.create_run_for_job(process_steps)
    instance.delete_run(run.run_id)
    instance.add_run(run.with_status(DagsterRunStatus.STARTED))

    answer = tick(importer, instance)

    assert isinstance(answer, SkipReason)
    assert answer.skip_message == "1 due; a run is at work"


@pytest.mark.parametrize(
    ("job", "config", "sentence"),
    [
        (start_workflow, {"workflow": "absent"}, "no workflow 'absent' is stored and enabled"),
        (start_workflow, {"workflow": "budget", "variables": "{"}, "Expecting property name"),
        (answer_approval, {"approval": 9, "choice": "approve", "by": "Ada"}, "there is no approval 9"),
        (cancel_workflow, {"instance": 9}, "there is no workflow instance 9"),
    ],
)
def test_a_refusal_is_a_sentence(
    importer: Importer, instance: DagsterInstance, job: JobDefinition, config: dict[str, object], sentence: str
) -> None:
    """The run fails with what the importer says, and is not tried again."""
    im.store_workflow(ASKED, db=importer.db)

    result = launch(job, importer, instance, **config)

    assert not result.success
    (failure,) = (each for each in result.all_events if each.event_type == DagsterEventType.STEP_FAILURE)
    assert sentence in str(failure.event_specific_data)


def test_cancelled_from_the_launchpad(importer: Importer, instance: DagsterInstance) -> None:
    """With its approval, and shown so."""
    started = im.start(ASKED, {"month": "March"}, db=importer.db)

    result = launch(cancel_workflow, importer, instance, instance=started.id, by="Bo")

    assert (tables(result)["running"], tables(result)["waiting_for_people"]) == (0, 0)
    assert im.workflow(started, db=importer.db).status == "cancelled"
