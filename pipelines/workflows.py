"""Workflows in Dagster: a sensor for what is due, a short asset job that serves it, and asset jobs for people.

Where `rowlease work` runs besides, both serve: what one has claimed the other does not see.
"""

import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

from dagster import (
    AssetObservation,
    Config,
    DagsterRunStatus,
    DefaultSensorStatus,
    Failure,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    TableColumn,
    TableRecord,
    TableSchema,
    in_process_executor,
    job,
    op,
    sensor,
)
from pydantic import Field

import importer as im
from pipelines.resources import Importer

PROCESS_STEPS = "process_steps"

#: The asset that instances and open approvals are shown with.
WORKFLOWS = "workflows"

#: Instances and approvals that are shown; all of them are in the database.
SHOWN = 50

#: A run begins no other slice after this time: the next tick starts the next one.
PASS = dt.timedelta(seconds=60)

_OPEN = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)

_INSTANCES = TableSchema(
    columns=[
        TableColumn("instance", "int"),
        TableColumn("workflow", "string"),
        TableColumn("key", "string"),
        TableColumn("status", "string"),
        TableColumn("started", "string"),
        TableColumn("took", "string"),
        TableColumn("waits_or_why", "string", description="what it waits for, or why it failed"),
    ]
)
_APPROVALS = TableSchema(
    columns=[
        TableColumn("approval", "int", description="what answer_approval takes"),
        TableColumn("workflow", "string"),
        TableColumn("question", "string"),
        TableColumn("choices", "string"),
        TableColumn("who", "string", description="who may answer"),
        TableColumn("asked", "string"),
        TableColumn("until", "string"),
        TableColumn("answer", "string"),
    ]
)


@sensor(
    job_name=PROCESS_STEPS,
    minimum_interval_seconds=5,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts process_steps when timers or outbox messages are due, and no run is at work on them.",
)
def due_steps(context: SensorEvaluationContext, importer: Importer) -> RunRequest | SkipReason:
    """Start a run when something is due and none is at work."""
    due = im.steps_due(db=importer.db)
    if not due:
        return SkipReason("no timer and no message is due")
    if context.instance.get_runs_count(RunsFilter(job_name=PROCESS_STEPS, statuses=list(_OPEN))):
        return SkipReason(f"{due:,} due; a run is at work")
    return RunRequest()


@op
def run_due_steps(context: OpExecutionContext, importer: Importer) -> None:
    """Fire due timers and deliver due messages in slices, the oldest first."""
    done = im.run_steps(db=importer.db, within=PASS)
    context.log.info(f"{done['timer_jobs']:,} timers, {done['outbox_messages']:,} messages")
    show(context, importer)


@job(name=PROCESS_STEPS, executor_def=in_process_executor)
def process_steps() -> None:
    """Serve the timers and outbox messages that are due."""
    run_due_steps()


class StartConfig(Config):
    """Which workflow is started, and with what."""

    workflow: str = Field(description="Name of a stored workflow (`rowlease workflow store FILE`).")
    variables: str = Field(default="{}", description='Variables as JSON: {"month": "2026-03"}.')
    files: dict[str, str] = Field(
        default={}, description="Workbooks by variable: a path below the inbox, or a content hash of the store."
    )
    key: str | None = Field(default=None, description="A name of your own; the same one is one instance.")


@op
def start_one_workflow(context: OpExecutionContext, config: StartConfig, importer: Importer) -> None:
    """Start an instance and move it until it waits."""
    try:
        variables = json.loads(config.variables)
        files = {name: im.locate(file, db=importer.db) for name, file in config.files.items()}
        started = im.start(config.workflow, variables, files=files, key=config.key, db=importer.db)
    except (ValueError, im.ImporterError) as error:
        raise Failure(str(error), allow_retries=False) from error
    tell(context, started)
    show(context, importer)


@job(name="start_workflow", executor_def=in_process_executor)
def start_workflow() -> None:
    """Start a stored workflow: name it and give its variables in the launchpad."""
    start_one_workflow()


class AnswerConfig(Config):
    """Which question is answered, how, and by whom."""

    approval: int = Field(gt=0, description="Number of the approval, as the asset `workflows` shows it.")
    choice: str = Field(description="One of its choices, for example approve.")
    by: str = Field(description="Who answers.")
    note: str | None = Field(default=None, description="Why.")


@op
def answer_one_approval(context: OpExecutionContext, config: AnswerConfig, importer: Importer) -> None:
    """Answer an approval; its workflow goes on in the same transaction."""
    try:
        moved = im.answer(config.approval, config.choice, by=config.by, note=config.note, db=importer.db)
    except im.ImporterError as error:
        raise Failure(str(error), allow_retries=False) from error
    tell(context, moved)
    show(context, importer)


@job(name="answer_approval", executor_def=in_process_executor)
def answer_approval() -> None:
    """Answer an open approval from the launchpad."""
    answer_one_approval()


class CancelConfig(Config):
    """Which instance is cancelled."""

    instance: int = Field(gt=0, description="Number of the instance, as the asset `workflows` shows it.")
    by: str | None = Field(default=None, description="Who cancels it, for the history.")


@op
def cancel_one_workflow(context: OpExecutionContext, config: CancelConfig, importer: Importer) -> None:
    """Cancel a running instance; work done stays."""
    try:
        cancelled = im.cancel_workflow(config.instance, by=config.by, db=importer.db)
    except im.ImporterError as error:
        raise Failure(str(error), allow_retries=False) from error
    tell(context, cancelled)
    show(context, importer)


@job(name="cancel_workflow", executor_def=in_process_executor)
def cancel_workflow() -> None:
    """Cancel a running workflow instance from the launchpad."""
    cancel_one_workflow()


#: The asset jobs and the sensor of workflows.
JOBS: Sequence[JobDefinition] = (process_steps, start_workflow, answer_approval, cancel_workflow)
SENSORS: Sequence[SensorDefinition] = (due_steps,)


def tell(context: OpExecutionContext, found: im.Instance) -> None:
    """Say in the run's log how an instance stands."""
    waits = "; ".join(map(str, found.waits))
    context.log.info(f"workflow instance {found.id} is {found.status}" + (f": {waits}" if waits else ""))


def show(context: OpExecutionContext, importer: Importer) -> None:
    """Show the newest instances and the open approvals with the asset `workflows`."""
    instances = im.workflows(limit=SHOWN, db=importer.db)
    approvals = im.approvals(db=importer.db)
    metadata: dict[str, MetadataValue[Any]] = {
        "instances": _table(instances.rows(), _INSTANCES),
        "open_approvals": _table(approvals.rows()[:SHOWN], _APPROVALS),
        "running": MetadataValue.int(sum(not each.ended for each in instances)),
        "waiting_for_people": MetadataValue.int(len(approvals)),
    }
    context.log_event(AssetObservation(WORKFLOWS, metadata=metadata))


def _table(rows: Sequence[Sequence[object]], schema: TableSchema) -> MetadataValue[Any]:
    names = [column.name for column in schema.columns]
    records = [TableRecord({name: _plain(value) for name, value in zip(names, row, strict=True)}) for row in rows]
    return MetadataValue.table(records=records, schema=schema)


def _plain(value: object) -> str | int:
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return value if isinstance(value, int) else "" if value is None else str(value)
