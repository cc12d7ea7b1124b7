"""Task runs as they may be seen: one run, the newest ones, and what happened to them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from importer.db import Connection, statements
from importer.display import table
from importer.errors import TaskNotFoundError

Status = Literal["pending", "running", "succeeded", "failed", "cancelled"]

#: Words for a run that does not go on by itself.
ENDED = frozenset({"succeeded", "failed", "cancelled"})

_ST = statements("task_run")


@dataclass(frozen=True, kw_only=True)
class TaskAttempt:
    """One time that a worker held a run."""

    #: The number of its lease.
    fence: int
    #: running succeeded failed cancelled; error interrupted asleep waiting handed_back.
    how: str
    #: Its claim or its last renewal.
    last_seen_at: dt.datetime | None
    ended_at: dt.datetime | None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What `wait_for` gives: a fact that came, or that none did in time."""

    name: str
    payload: Any = None
    came_at: dt.datetime | None = None
    #: None came in time.
    timed_out: bool = False


@dataclass(frozen=True, kw_only=True)
class TaskRun:
    """One run of a task as it stood when it was read; moments are aware and in UTC."""

    id: int
    #: Name and version of the task.
    task: str
    version: int
    #: pending running succeeded failed cancelled.
    status: Status
    #: The status, or what it means now: interrupted (its worker did not come back), asleep, waiting (for a fact).
    state: str
    input: Any
    #: What the task returned.
    result: Any
    #: The caller's own name for this run.
    key: str | None
    #: What belongs together has the same.
    trace_id: str
    #: 0 first to 3 last.
    priority: int
    #: When it may run; null: it waits for a fact without a limit, or has ended.
    due_at: dt.datetime | None
    #: The fact it waits for.
    waits_for: str | None
    #: Attempts that crashed, failed or are running now.
    attempt_count: int
    max_attempts: int
    last_error: str | None
    #: Why a due run is not run by anybody.
    unserved: str | None
    created_by: str | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    #: Only of a run that is read by itself: its attempts, oldest first, the running one included.
    attempts: tuple[TaskAttempt, ...] = field(default=(), repr=False)
    #: The same: the facts that came, and the ledger of its outside operations.
    facts: tuple[Fact, ...] = field(default=(), repr=False)
    operations: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def ended(self) -> bool:
        """It does not go on by itself."""
        return self.status in ENDED

    @property
    def duration(self) -> dt.timedelta | None:
        """From the first start to the end."""
        return None if self.started_at is None or self.finished_at is None else self.finished_at - self.started_at


class TaskRuns(list[TaskRun]):
    """Task runs, shown as a table in a notebook."""

    def _repr_html_(self) -> str:
        return task_runs_html(self)


def task_run(conn: Connection, run_id: int) -> TaskRun:
    """Read one run with its attempts, facts and operations.

    Raises:
        TaskNotFoundError: there is no such run.
    """
    row = conn.execute(_ST["run"], {"id": run_id}).fetchone()
    if row is None:
        raise TaskNotFoundError(f"there is no task run {run_id}")
    attempts = [TaskAttempt(**each) for each in conn.execute(_ST["attempts"], {"id": run_id}).fetchall()]
    facts = [Fact(**each) for each in conn.execute(_ST["facts"], {"id": run_id}).fetchall()]
    operations = conn.execute(_ST["operations"], {"id": run_id}).fetchall()
    return _run(row, (*attempts, *_last_attempt(row, attempts)), tuple(facts), tuple(operations))


def task_runs(
    conn: Connection,
    *,
    task: str | None = None,
    status: str | None = None,
    since: dt.datetime | None = None,
    limit: int | None = None,
) -> TaskRuns:
    """Read the newest runs, newest first; `limit` null reads all."""
    params = {"task_name": task, "status": status, "since": since, "limit": limit}
    return TaskRuns(_run(row) for row in conn.execute(_ST["runs"], params).fetchall())


def _last_attempt(row: Mapping[str, Any], earlier: Sequence[TaskAttempt]) -> list[TaskAttempt]:
    """Tell the attempt that runs now, or that ended the run, from the row itself."""
    if row["status"] == "pending" or row["started_at"] is None:
        return []
    fence = row["fence"] if row["status"] == "running" else row["fence"] - 1
    if row["interrupted"]:
        how, ended = "interrupted", row["lease_until"]
    else:
        how, ended = row["status"], row["finished_at"]
    if any(each.fence == fence for each in earlier):
        return []
    error = row["last_error"] if how == "failed" else None
    return [TaskAttempt(fence=fence, how=how, last_seen_at=row["last_seen_at"], ended_at=ended, error=error)]


def _run(
    row: Mapping[str, Any],
    attempts: tuple[TaskAttempt, ...] = (),
    facts: tuple[Fact, ...] = (),
    operations: tuple[Mapping[str, Any], ...] = (),
) -> TaskRun:
    names = (
        "id status input result trace_id priority due_at waits_for attempt_count max_attempts last_error unserved"
        " created_by created_at started_at finished_at"
    )
    return TaskRun(
        task=row["task_name"],
        version=row["task_version"],
        key=row["run_key"],
        state=_state(row),
        attempts=attempts,
        facts=facts,
        operations=operations,
        **{name: row[name] for name in names.split()},
    )


def _state(row: Mapping[str, Any]) -> str:
    if row["interrupted"]:
        return "interrupted"
    if row["asleep"]:
        return "waiting" if row["waits_for"] is not None else "asleep"
    return str(row["status"])


def task_runs_html(runs: Sequence[TaskRun]) -> str:
    """Runs as an escaped HTML table."""
    headers = ("run", "task", "key", "state", "priority", "attempts", "due", "took", "error")
    rows = [
        (
            each.id,
            f"{each.task} v{each.version}",
            each.key or "",
            each.state if each.waits_for is None else f"{each.state} for {each.waits_for}",
            each.priority,
            f"{each.attempt_count} of {each.max_attempts}",
            each.due_at or "",
            "" if each.duration is None else f"{each.duration.total_seconds():.1f} s",
            each.unserved or each.last_error or "",
        )
        for each in runs
    ]
    return table(headers, rows)
