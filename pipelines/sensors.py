"""What starts imports, and what notices that a run is gone.

Each sensor asks one cheap question and answers most ticks with a reason to do nothing. None has a run key: a run key is
used once for ever, whatever became of its run, and an import that was cut off has to be started again. What keeps runs
from piling up is the question whether one is at work already; what keeps rows from doubling is the importer.
"""

import datetime as dt
import json
from collections.abc import Sequence

from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunFailureSensorContext,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    run_failure_sensor,
    sensor,
)

import importer as im
from pipelines.asset_jobs import IMPORT_WORKBOOK, PROCESS_IMPORTS
from pipelines.resources import Importer

#: Runs that work, or will.
OPEN = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)

#: Runs whose worker may be gone without anybody saying so. One that is starting may just be slow; Dagster's own
#: monitoring gives it a time.
MAY_BE_LOST = (DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING)

#: Asset jobs that do nothing but import, so that a run of theirs without a lease is a run that does nothing.
ONLY_IMPORT = frozenset({PROCESS_IMPORTS, IMPORT_WORKBOOK})

#: A look at the inbox leaves the rest for the next one after this time; a tick has a minute.
LOOK = dt.timedelta(seconds=20)

#: Lines of a tick that are shown one by one.
_SHOWN = 20


@sensor(
    job_name=PROCESS_IMPORTS,
    minimum_interval_seconds=1,
    default_status=DefaultSensorStatus.RUNNING,
    description="Takes workbooks from the inbox: each whole one becomes an import job of its form, once.",
)
def inbox(context: SensorEvaluationContext, importer: Importer) -> SensorResult | SkipReason:
    """Submit the workbooks that are whole, and start a run when none is at work."""
    forms = _forms(context, importer)
    arrivals = im.take_in(importer.db, forms, within=LOOK, wait=True)
    for away in arrivals.turned_away:
        context.log.error(away.message)
    said = _said(arrivals)
    if not arrivals.taken:
        return SkipReason(said or "nothing new")
    context.log.info(said)
    starts = [RunRequest()] if _may_start(context.instance, importer) else []
    return SensorResult(run_requests=starts, skip_reason=None if starts else f"{said}; a run is at work")


@sensor(
    job_name=PROCESS_IMPORTS,
    minimum_interval_seconds=1,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts process_imports when import jobs are due, among them those whose holder did not come back.",
)
def due_imports(context: SensorEvaluationContext, importer: Importer) -> RunRequest | SkipReason:
    """Start a run when jobs are due and no run is at work on them."""
    due = im.due(db=importer.db)
    if not due:
        return SkipReason("no import job is due")
    if not _may_start(context.instance, importer):
        return SkipReason(f"{due:,} due; a run is at work")
    return RunRequest()


@sensor(
    minimum_interval_seconds=5,
    default_status=DefaultSensorStatus.RUNNING,
    description="Reports runs failed whose worker is gone: their lease ran out, or they hold none for a lease's time.",
)
def lost_runs(context: SensorEvaluationContext, importer: Importer) -> SensorResult | SkipReason:
    """End the runs that nobody works on. The cursor holds since when a run is seen without a lease."""
    runs = [run for run in context.instance.get_runs(RunsFilter(statuses=list(MAY_BE_LOST))) if _is_ours(run, context)]
    seen = json.loads(context.cursor or "{}")
    if not runs:
        return SensorResult(skip_reason="no run is started", cursor="{}") if seen else SkipReason("no run is started")
    leases = im.run_leases([run.run_id for run in runs], db=importer.db)
    idle_since: dict[str, str] = {}
    lost = []
    for run in runs:
        lease = leases.of(run.run_id)
        if lease.live:
            continue
        since = dt.datetime.fromisoformat(seen.get(run.run_id, leases.now.isoformat()))
        idle = run.job_name in ONLY_IMPORT and leases.now - since >= importer.settings().imports.lease
        if (lease.ran_out or idle) and _is_open(context.instance, run):
            _end(context.instance, run, "its lease ran out" if lease.ran_out else "it held no lease for a lease's time")
            context.log.error(f"run {run.run_id} of {run.job_name} is lost")
            lost.append(run.run_id)
        else:
            idle_since[run.run_id] = since.isoformat()
    said = f"{len(lost)} lost: {', '.join(lost)}" if lost else f"{len(runs)} at work"
    return SensorResult(skip_reason=said, cursor=json.dumps(idle_since))


@run_failure_sensor(
    minimum_interval_seconds=5,
    default_status=DefaultSensorStatus.RUNNING,
    description="Writes which run failed and why, and how its import jobs stand.",
)
def failed_runs(context: RunFailureSensorContext, importer: Importer) -> None:
    """Say in one line what failed, why, and what becomes of the imports."""
    run = context.dagster_run
    jobs = im.run_jobs(run.run_id, db=importer.db)
    stand = "; ".join(
        f"import job {job.id} ({job.file_name}) is {job.status} after {job.cursor:,} rows"
        + ("" if job.ended else " and goes on")
        for job in jobs[:_SHOWN]
    )
    why = " ".join((context.failure_event.message or "").split())
    context.log.error(f"run {run.run_id} of {run.job_name} failed: {why} | {stand or 'it had begun no import'}")


SENSORS: Sequence[SensorDefinition] = (inbox, due_imports, lost_runs, failed_runs)


def _forms(context: SensorEvaluationContext, importer: Importer) -> Sequence[im.Form]:
    known = importer.forms()
    for name, why in known.broken.items():
        context.log.warning(f"{name} is no form: {why}")
    return known.enabled


def _said(arrivals: im.Arrivals) -> str:
    parts = []
    if arrivals.taken:
        names = ", ".join(f"{taken.path} (job {taken.job.id})" for taken in arrivals.taken[:_SHOWN])
        more = len(arrivals.taken) - _SHOWN
        parts.append(f"{len(arrivals.taken):,} taken: {names}" + (f" and {more:,} more" if more > 0 else ""))
    if arrivals.turned_away:
        parts.append(
            f"{len(arrivals.turned_away):,} turned away: "
            + " | ".join(away.message for away in arrivals.turned_away[:_SHOWN])
        )
    if arrivals.waiting:
        parts.append(f"{arrivals.waiting:,} still being written or left for the next look")
    return "; ".join(parts)


def _may_start(instance: DagsterInstance, importer: Importer) -> bool:
    """Whether fewer runs are queued or at work than may be."""
    open_runs = instance.get_runs_count(RunsFilter(job_name=PROCESS_IMPORTS, statuses=list(OPEN)))
    return open_runs < importer.parallel_runs


def _is_ours(run: DagsterRun, context: SensorEvaluationContext) -> bool:
    """Whether the run is of this code location: leases of another one stand in another database."""
    origin, ours = run.remote_job_origin, context.code_location_origin
    return origin is None or ours is None or origin.location_name == ours.location_name


def _is_open(instance: DagsterInstance, run: DagsterRun) -> bool:
    """Whether the run is still what it was when it was read: it may have ended by itself meanwhile."""
    now = instance.get_run_by_id(run.run_id)
    return now is not None and now.status == run.status


def _end(instance: DagsterInstance, run: DagsterRun, why: str) -> None:
    """Write into Dagster's books that a run is over whose worker cannot say so itself."""
    if run.status == DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, f"the worker of this run is gone: {why}")
    else:
        instance.report_run_failed(run, f"the worker of this run is gone: {why}; its imports go on by themselves")
