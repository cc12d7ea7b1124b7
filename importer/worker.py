"""The one loop: do what is due, then wait until something may be due again.

```
for each kind of work: due(db, holder) -> how many were done        nothing done: wait for the earliest of
                                                                    a NOTIFY, the poll, the next due moment, the next
                                                                    run-out lease
```

`work` goes through the kinds until nothing is due. `follow` runs the loop in four lanes, a thread each: what takes
milliseconds (timers, outbox messages), triggers (which ask outside), durable tasks, and what takes minutes (imports),
so that none waits for another.

A worker has no register and no rescuer: whoever asks next finds an expired lease due again. It survives a restart of
the database, also in the middle of a job: what was committed stands, and the rest is due when the lease runs out.
NOTIFY only wakes it early; where a pooler swallows notifications, polling goes on.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from importer import import_job, import_run, outbox_message, timer_job
from importer.batch import Progress, Ran, run
from importer.db import Connection, Database, connect, statements
from importer.errors import DatabaseError, LeaseLostError
from importer.import_job import Job
from importer.lease import Lease, holder_name
from importer.outbox_route import TOPIC as TO_ROUTE
from importer.outbox_route import hand_on, route_route
from importer.settings import Rhythm, Settings
from importer.store import Store
from importer.task_run import next_moment_s as next_task_moment_s
from importer.task_run import tasks_due
from importer.task_run.queue import TOPIC as TASK_ENDED
from importer.triggers import completed_route, event_route, triggers_due
from importer.triggers import next_moment_s as next_trigger_moment_s
from importer.triggers.firing import TOPIC as TRIGGER_FIRED
from importer.triggers.routes import EVENT_TOPIC as EVENT_FIRED
from importer.workflow import import_route, task_route, timers_due
from importer.workflow.firing import TOPIC as WORKFLOW_ENDED

log = logging.getLogger(__name__)

#: A stop that was asked for.
Stopping = Callable[[], bool]


def run_due(
    db: Database,
    *,
    form: str | None = None,
    limit: int | None = None,
    within: dt.timedelta | None = None,
    stopping: Stopping = lambda: False,
    run_ref: str | None = None,
    started: Callable[[Job], Progress] = lambda _job: _unseen,
    holder: str | None = None,
) -> Iterator[Ran]:
    """Run due import jobs one after another, each claimed just before it runs, and yield each as it ended.

    Until none is due, `limit` were run, or `within` is over: then no other job is claimed. `form`: only jobs of this
    form. `started` is called with each job as it begins and returns what is called with (rows dealt with, rows failed)
    as it goes. An error of one job does not stop the others: it is in `Ran.error`, and the job's row says it.

    Raises:
        DatabaseUnavailableError: the database is away; what was committed stands.
    """
    store = Store(db.settings.store)
    name = holder or holder_name("import")
    ends = None if within is None else time.monotonic() + within.total_seconds()
    done = 0
    while (limit is None or done < limit) and not stopping() and (ends is None or time.monotonic() < ends):
        with db.connection() as conn:
            lease = _claim(conn, db, name, form=form, run_ref=run_ref)
            if lease is None:
                return
            job = import_job.job(conn, lease.id)
        log.info("import job %s: claimed as %s, attempt %s", lease.id, name, lease.attempt)
        ran = run(db, lease, store=store, stopping=stopping, progress=started(job))
        if isinstance(ran.error, LeaseLostError):
            log.warning("import job %s: lease lost, nothing more was written", lease.id)
        elif ran.error is not None:
            log.error("import job %s: %s (%s)", lease.id, ran.job.status, type(ran.error).__name__)
        else:
            rows, failed = ran.job.success_rows, ran.job.failed_rows
            log.info("import job %s: %s, %s rows in, %s failed", lease.id, ran.job.status, rows, failed)
        done += 1
        yield ran


def _unseen(_rows: int, _failed: int) -> None:
    """Progress that nobody watches."""


def _claim(conn: Connection, db: Database, holder: str, *, form: str | None, run_ref: str | None) -> Lease | None:
    """Claim the next due job; of one form, the first of its due jobs that nobody takes before us."""
    ttl = db.settings.imports.lease
    if form is None:
        return import_job.claim(conn, holder=holder, ttl=ttl, run_ref=run_ref)
    while due := import_run.due_of_form(conn, form, limit=20):
        for job_id in due:
            lease = import_job.claim(conn, holder=holder, ttl=ttl, id=job_id, run_ref=run_ref)
            if lease is not None:
                return lease
        if len(due) < 20:  # all of them are being taken by others
            break
    return None


def imports_due(
    db: Database,
    holder: str,
    *,
    limit: int | None = None,
    stopping: Stopping = lambda: False,
    run_ref: str | None = None,
) -> int:
    """Run due import jobs, each claimed just before it runs, until none is due or `limit` were run.

    Return how many were run.
    """
    return sum(1 for _ in run_due(db, limit=limit, stopping=stopping, run_ref=run_ref, holder=holder))


def messages_due(db: Database, holder: str, *, limit: int | None = None, stopping: Stopping = lambda: False) -> int:
    """Deliver due outbox messages by their routes; return how many were tried."""
    return outbox_message.relay(db, holder, routes(db.settings), limit=limit, stopping=stopping)


def routes(settings: Settings) -> dict[str, outbox_message.Route]:
    """Give the routes of every topic: ends wake what waits for them, start what they trigger, and are handed on."""
    first = {
        import_job.TOPIC: (import_route(settings), completed_route("import", "form", "job_id")),
        TASK_ENDED: (task_route(settings), completed_route("task", "task", "run_id")),
        WORKFLOW_ENDED: (completed_route("workflow", "workflow", "instance_id"),),
        EVENT_FIRED: (event_route(),),
        TRIGGER_FIRED: (),
    }
    found = {topic: outbox_message.in_turn(*before, hand_on()) for topic, before in first.items()}
    return {**found, TO_ROUTE: route_route()}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of work."""

    #: What counts call it: its table.
    name: str
    #: What its holders are called.
    holder: str
    #: Does what is due, at most `limit`, until `stopping`; returns how many were done.
    due: Callable[..., int]
    #: Seconds until something becomes due.
    next_moment_s: Callable[[Connection], float | None]
    #: Its settings.
    rhythm: Callable[[Settings], Rhythm]
    #: The most per pass, when it is not the batch of its settings.
    per_pass: int | None = None


TIMERS = Kind(
    name="timer_jobs",
    holder="timer",
    due=timers_due,
    next_moment_s=timer_job.next_moment_s,
    rhythm=lambda settings: settings.timers,
)
MESSAGES = Kind(
    name="outbox_messages",
    holder="outbox",
    due=messages_due,
    next_moment_s=outbox_message.next_moment_s,
    rhythm=lambda settings: settings.timers,
)
IMPORTS = Kind(
    name="import_jobs",
    holder="import",
    due=imports_due,
    next_moment_s=import_job.next_moment_s,
    rhythm=lambda settings: settings.imports,
)

TRIGGERS = Kind(
    name="triggers",
    holder="trigger",
    due=triggers_due,
    next_moment_s=next_trigger_moment_s,
    rhythm=lambda settings: settings.timers,
)
TASKS = Kind(
    name="task_runs",
    holder="task",
    due=tasks_due,
    next_moment_s=next_task_moment_s,
    rhythm=lambda settings: settings.tasks,
    per_pass=10_000,
)

#: The lanes of `follow`; `work` goes through all of them in order.
LANES = ((TIMERS, MESSAGES), (TRIGGERS,), (TASKS,), (IMPORTS,))


def work(
    *,
    db: Database | None = None,
    limit: int | None = None,
    stopping: Stopping = lambda: False,
    run_ref: str | None = None,
) -> dict[str, int]:
    """Run what is due, here, until nothing is, and return how many of each kind.

    Such as `{"timer_jobs": 1, "outbox_messages": 2, "import_jobs": 3}`. `limit` is the most per kind.
    """
    if db is None:
        with connect() as own:
            return work(db=own, limit=limit, stopping=stopping, run_ref=run_ref)
    kinds = [kind for lane in LANES for kind in lane]
    done = dict.fromkeys((kind.name for kind in kinds), 0)
    while True:
        before = sum(done.values())
        for kind in kinds:
            left = None if limit is None else limit - done[kind.name]
            if left is None or left > 0:
                more = {"run_ref": run_ref} if kind is IMPORTS else {}
                done[kind.name] += kind.due(db, holder_name(kind.holder), limit=left, stopping=stopping, **more)
        if sum(done.values()) == before or stopping():
            return done


def steps_due(*, db: Database) -> int:
    """Count the timers and outbox messages that a worker would serve now (a thousand of each, when there are more)."""
    with db.connection() as conn:
        return timer_job.due(conn) + outbox_message.due(conn)


def run_steps(
    *,
    db: Database,
    limit: int | None = None,
    within: dt.timedelta | None = None,
    stopping: Stopping = lambda: False,
) -> dict[str, int]:
    """Fire due timers and deliver due messages in slices, the oldest first, and return how many of each.

    Until none is due, `limit` of a kind were served, or `within` is over: then no other slice is begun.
    """
    ends = None if within is None else time.monotonic() + within.total_seconds()

    def over() -> bool:
        return stopping() or (ends is not None and time.monotonic() >= ends)

    done = {TIMERS.name: 0, MESSAGES.name: 0}
    while not over():
        before = sum(done.values())
        for kind in (TIMERS, MESSAGES):
            left = kind.rhythm(db.settings).batch if limit is None else limit - done[kind.name]
            if left > 0:
                size = min(left, kind.rhythm(db.settings).batch)
                done[kind.name] += kind.due(db, holder_name(kind.holder), limit=size, stopping=over)
        if sum(done.values()) == before:
            break
    return done


def follow(
    db: Database, *, stop: threading.Event, on_pass: Callable[[Mapping[str, int]], None] = lambda _counts: None
) -> None:
    """Run what is due until `stop` is set, waiting for a notification in between; outlives restarts of the database.

    `on_pass` is called after each pass of a lane with the counts of its kinds.
    """
    failed: list[BaseException] = []

    def aside(lane: tuple[Kind, ...]) -> None:
        try:
            _follow(db, lane, stop, on_pass)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failed.append(error)
            stop.set()

    threads = [threading.Thread(target=aside, args=(lane,), name=lane[0].name, daemon=True) for lane in LANES[:-1]]
    for thread in threads:
        thread.start()
    try:
        _follow(db, LANES[-1], stop, on_pass)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def _follow(
    db: Database, lane: tuple[Kind, ...], stop: threading.Event, on_pass: Callable[[Mapping[str, int]], None]
) -> None:
    rhythm = lane[0].rhythm(db.settings)
    stop.wait(rhythm.start_delay.total_seconds())
    while not stop.is_set():
        try:
            with db.dedicated() as conn:
                conn.execute(statements("connection")["name_worker"])
                conn.execute(import_job.LISTEN)
                _serve(db, lane, conn, stop, on_pass)
        except DatabaseError as error:
            log.warning("database: %s; trying again in %.0f s", error, rhythm.poll.total_seconds())
            stop.wait(rhythm.poll.total_seconds())


def _serve(
    db: Database,
    lane: tuple[Kind, ...],
    conn: Connection,
    stop: threading.Event,
    on_pass: Callable[[Mapping[str, int]], None],
) -> None:
    while not stop.is_set():
        counts = {
            kind.name: kind.due(
                db,
                holder_name(kind.holder),
                limit=kind.per_pass or kind.rhythm(db.settings).batch,
                stopping=stop.is_set,
            )
            for kind in lane
        }
        on_pass(counts)
        if any(counts.values()):
            continue
        waits_s = [kind.rhythm(db.settings).poll.total_seconds() for kind in lane]
        waits_s += [moment_s for kind in lane if (moment_s := kind.next_moment_s(conn)) is not None]
        _wait(conn, stop, max(min(waits_s), SHORTEST_WAIT_S), {kind.name for kind in lane})


#: The shortest wait of a worker that found nothing to do: what looked due may be locked by another just now.
SHORTEST_WAIT_S = 0.01


def _wait(conn: Connection, stop: threading.Event, seconds: float, kinds: Collection[str]) -> None:
    """Wait for a notification of one of these kinds, a stop, or the time; a stop is seen within half a second."""
    ends = time.monotonic() + seconds
    while (left_s := ends - time.monotonic()) > 0 and not stop.is_set():
        for told in conn.notifies(timeout=min(left_s, 0.5), stop_after=1):
            if told.payload in kinds:
                return
