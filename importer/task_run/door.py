"""What a program calls: enqueue, signal, look at runs, cancel, retry."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from importer.db import Connection, Database, connect, dict_rows
from importer.settings import TASKS, Rhythm
from importer.task_run import queue, record
from importer.task_run.definition import Task, newest
from importer.task_run.record import Fact, TaskRun, TaskRuns


def enqueue(
    task: Task | str,
    input: object = None,  # noqa: A002 - the word of the front door
    *,
    key: str | None = None,
    priority: int = 2,
    due: dt.datetime | dt.timedelta | None = None,
    trace_id: str | None = None,
    announces: bool = False,
    conn: Connection | None = None,
    db: Database | None = None,
) -> int:
    """Let a worker run a task; return the number of the run.

    Args:
        task: the task, or the name of one: then its newest version that is known here.
        input: what the task's model validates.
        key: a name of the caller's: within the task it is one run, as long as its row is kept.
        priority: 0 (first) to 3.
        due: not before this moment, or so long from now.
        trace_id: what belongs together; a new one when not given.
        announces: its end is written to the outbox.
        conn: write the run in this connection's transaction (psycopg 3); it counts once that commits.
        db: the database; else the one of `connect()`.

    Raises:
        TaskInputError: the input is not what the task asks for.
        TaskConflictError: the key has a run with other input.
        TaskNotFoundError: no task of this name is known here.
    """
    with _connection(db, conn) as own:
        return queue.enqueue(
            own,
            _task(task),
            input,
            key=key,
            priority=priority,
            due=due,
            trace_id=trace_id,
            announces=announces,
            rhythm=_rhythm(db),
        )


def enqueue_many(
    task: Task | str,
    inputs: Iterable[object],
    *,
    keys: Iterable[str] | None = None,
    priority: int = 2,
    due: dt.datetime | dt.timedelta | None = None,
    trace_id: str | None = None,
    conn: Connection | None = None,
    db: Database | None = None,
) -> int:
    """Enqueue many runs of one task by COPY, all or none; return how many are new.

    The arguments are those of `enqueue`; `keys`, one for each input, leaves alone what has a run.

    Raises:
        TaskInputError: an input is not what the task asks for.
        TaskConflictError: a key has a run with other input.
    """
    with _connection(db, conn) as own:
        return queue.enqueue_many(
            own, _task(task), inputs, keys=keys, priority=priority, due=due, trace_id=trace_id, rhythm=_rhythm(db)
        )


def signal(
    run: TaskRun | int,
    name: str,
    payload: object = None,
    *,
    conn: Connection | None = None,
    db: Database | None = None,
) -> Fact:
    """Tell a run that something happened outside: the fact is written first, then the run is woken if it waits for it.

    Returns the fact that stands: the first of its name.

    Raises:
        TaskNotFoundError: there is no such run.
    """
    with _connection(db, conn) as own:
        return queue.signal(own, _id(run), name, payload)


def tasks(
    *,
    task: str | None = None,
    status: str | None = None,
    since: dt.datetime | None = None,
    limit: int | None = None,
    db: Database | None = None,
) -> TaskRuns:
    """Read task runs, newest first; `unserved` says why a due one is not run by anybody."""
    with _connection(db, None) as own:
        return record.task_runs(own, task=task, status=status, since=since, limit=limit)


def task_run(run: TaskRun | int, *, db: Database | None = None) -> TaskRun:
    """Read one task run with its attempts, facts and outside operations.

    Raises:
        TaskNotFoundError: there is no such run.
    """
    with _connection(db, None) as own:
        return record.task_run(own, _id(run))


def cancel_task(run: TaskRun | int, *, conn: Connection | None = None, db: Database | None = None) -> TaskRun:
    """Cancel an open task run; one that is running sees it within a second, and before each step.

    Raises:
        TaskNotFoundError: there is no such run.
        TaskStateError: it has ended.
    """
    with _connection(db, conn) as own:
        return queue.cancel(own, _id(run))


def retry_task(run: TaskRun | int, *, db: Database | None = None) -> TaskRun:
    """Let a failed or cancelled task run wait again with all its attempts; finished steps stay finished.

    Raises:
        TaskNotFoundError: there is no such run.
        TaskStateError: it is open, or succeeded.
    """
    with _connection(db, None) as own:
        return queue.retry(own, _id(run))


def _task(task: Task | str) -> Task:
    return newest(task) if isinstance(task, str) else task


def _rhythm(db: Database | None) -> Rhythm:
    """Attempts of a task that names none: those of the settings, by default when there is only a connection."""
    return TASKS if db is None else db.settings.tasks


def _id(run: TaskRun | int) -> int:
    return run.id if isinstance(run, TaskRun) else run


@contextmanager
def _connection(db: Database | None, conn: Any) -> Iterator[Connection]:  # noqa: ANN401 - a caller's connection has rows of any kind
    if conn is not None:
        with dict_rows(conn) as own:
            yield own
    elif db is not None:
        with db.connection() as own:
            yield own
    else:
        with connect() as database, database.connection() as own:
            yield own
