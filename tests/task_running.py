"""Tasks made of functions, and workers that see the clock as it is now: for tests of durable tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from importer.db import Database
from importer.lease import holder_name
from importer.task_run import Context, Task, TaskRun, task_run, tasks_due

T = TypeVar("T")


def made(function: Callable[[Context], Any], **more: Any) -> Task:  # noqa: ANN401 - fields of a task
    """Give a task of a function, by its name, in version 1 unless said otherwise."""
    return Task(**{"name": function.__name__, "version": 1, "function": function, **more})


def noted(calls: list[T], call: T, result: object = None) -> Any:  # noqa: ANN401 - whatever is given
    """Note a call and give its result."""
    calls.append(call)
    return result


def run_due(db: Database, *served: Task, **more: Any) -> int:  # noqa: ANN401 - arguments of tasks_due
    """Run what is due with connections of its own, which see the clock as it is now."""
    with Database(db.conninfo, db.settings) as now:
        return tasks_due(now, holder_name("task"), tasks=served, **more)


def seen(db: Database, run: int) -> TaskRun:
    """Read a run as the clock stands now."""
    with Database(db.conninfo, db.settings) as now:
        return task_run(run, db=now)
