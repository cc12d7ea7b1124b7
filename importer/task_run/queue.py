"""Putting runs into the queue and moving them from outside: enqueue, signal, cancel, retry."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from importer import lease as leases
from importer import outbox_message
from importer.db import Connection, statements
from importer.errors import TaskConflictError, TaskInputError, TaskNotFoundError, TaskStateError
from importer.settings import TASKS, Rhythm
from importer.task_run.definition import Task, as_json, differences, from_json
from importer.task_run.record import ENDED, Fact, TaskRun, task_run

#: What the ends of runs are announced under.
TOPIC = "task_run_ended"

#: About so many bytes go to the server at once.
_BLOCK_BYTES = 1 << 18

_NOW = dt.timedelta(0)
_ST = statements("task_run")


def enqueue(
    conn: Connection,
    task: Task,
    input: object = None,  # noqa: A002 - the word of the front door
    *,
    key: str | None = None,
    priority: int = 2,
    due: dt.datetime | dt.timedelta | None = None,
    trace_id: str | None = None,
    announces: bool = False,
    rhythm: Rhythm = TASKS,
) -> int:
    """Write a run in the caller's transaction; return its number, or that of the run of this key.

    Raises:
        TaskInputError: the input is not what the task asks for.
        TaskConflictError: the key has a run with other input.
    """
    text = task.input_json(input)
    params = {
        "task_name": task.name,
        "task_version": task.version,
        "input": text,
        "run_key": key,
        "trace_id": trace_id or uuid.uuid4().hex,
        "announces": announces,
        "priority": priority,
        "max_attempts": task.policy(rhythm).attempts,
        **_due(due),
    }
    row = conn.execute(_ST["enqueue"], params).fetchone()
    if row is not None:
        return int(row["id"])
    earlier = conn.execute(_ST["by_key"], {"task_name": task.name, "run_key": key}).fetchone()
    assert earlier is not None  # the key is there, and no run is taken away meanwhile
    _require_same(task, str(key), earlier["id"], earlier["input"], from_json(text))
    return int(earlier["id"])


def enqueue_many(
    conn: Connection,
    task: Task,
    inputs: Iterable[object],
    *,
    keys: Iterable[str] | None = None,
    priority: int = 2,
    due: dt.datetime | dt.timedelta | None = None,
    trace_id: str | None = None,
    rhythm: Rhythm = TASKS,
) -> int:
    """Write many runs of one task by COPY in one transaction; return how many are new.

    With `keys`, one for each input, a key that has a run already is left as it is.

    Raises:
        TaskInputError: an input is not what the task asks for; nothing was enqueued.
        TaskConflictError: a key has a run with other input; nothing was enqueued.
    """
    params = {
        "task_name": task.name,
        "task_version": task.version,
        "trace_id": trace_id or uuid.uuid4().hex,
        "priority": priority,
        "max_attempts": task.policy(rhythm).attempts,
        **_due(due),
    }
    with conn.transaction():
        if keys is not None:
            count = _copy_keyed(conn, task, list(inputs), list(keys), params)
        else:
            count = _copy(conn, task, inputs, params)
        if count:
            conn.execute(_ST["wake"])
    return count


def _copy(conn: Connection, task: Task, inputs: Iterable[object], params: dict[str, Any]) -> int:
    """COPY runs: only the input differs from row to row, so the rest of a line is made once."""
    moment = conn.execute(_ST["moment"], {"delay": params["delay"]}).fetchone()
    assert moment is not None
    due = moment["later"] if params["due_at"] is None else params["due_at"].isoformat()
    rest = (
        task.name,
        str(task.version),
        params["trace_id"],
        str(params["priority"]),
        str(params["max_attempts"]),
        due,
        moment["now"],
        moment["by"],
    )
    end = "".join(f"\t{_copied(text)}" for text in rest) + "\n"
    count = size = 0
    lines: list[str] = []
    with conn.cursor() as cur, cur.copy(_ST["copy_runs"]) as copy:
        for value in inputs:
            line = _copied(task.input_json(value)) + end
            lines.append(line)
            count += 1
            size += len(line)
            if size > _BLOCK_BYTES:
                copy.write("".join(lines))
                lines, size = [], 0
        copy.write("".join(lines))
    return count


def _copy_keyed(
    conn: Connection, task: Task, inputs: Sequence[object], keys: Sequence[str], params: dict[str, Any]
) -> int:
    if len(keys) != len(inputs):
        raise TaskInputError(f"{len(keys)} keys for {len(inputs)} inputs; there must be one for each")
    conn.execute(_ST["create_keyed"])
    with conn.cursor() as cur, cur.copy(_ST["copy_keyed"]) as copy:
        for position, (key, value) in enumerate(zip(keys, inputs, strict=True)):
            copy.write(f"{position}\t{_copied(key)}\t{_copied(task.input_json(value))}\n")
    count = conn.execute(_ST["enqueue_keyed"], params).rowcount
    other = conn.execute(_ST["keyed_otherwise"], {"task_name": task.name}).fetchone()
    if other is not None:
        _require_same(task, other["run_key"], other["id"], other["input"], other["wanted"])
    return count


def _copied(text: str) -> str:
    """Write a text as COPY reads it (PostgreSQL manual, COPY, text format)."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _due(due: dt.datetime | dt.timedelta | None) -> dict[str, Any]:
    if isinstance(due, dt.datetime):
        if due.tzinfo is None:
            raise TaskInputError("a due moment has a time zone, e.g. datetime.now(timezone.utc)")
        return {"due_at": due, "delay": _NOW}
    return {"due_at": None, "delay": due or _NOW}


def _require_same(task: Task, key: str, run_id: int, was: object, now: object) -> None:
    differs = differences(was, now)
    if differs:
        raise TaskConflictError(
            run_id,
            f"the key {key!r} belongs to task run {run_id} of {task.name}, which has other input: {'; '.join(differs)}",
            differs,
        )


def signal(conn: Connection, run_id: int, name: str, payload: object = None) -> Fact:
    """Write a fact and wake the run if it waits for it; return the fact that stands, which may be an earlier one.

    The run's row is locked first: a run that is just going to wait either sees the fact or is woken by it.

    Raises:
        TaskNotFoundError: there is no such run.
        TaskInputError: the payload cannot be kept as JSON.
    """
    text = as_json(payload, f"the payload of the fact {name}")
    with conn.transaction():
        if conn.execute(_ST["lock"], {"id": run_id}).fetchone() is None:
            raise TaskNotFoundError(f"there is no task run {run_id}")
        conn.execute(_ST["put_fact"], {"id": run_id, "name": name, "payload": text})
        if conn.execute(_ST["wake_run"], {"id": run_id, "name": name}).fetchone() is not None:
            conn.execute(_ST["wake"])
        row = conn.execute(_ST["fact"], {"id": run_id, "name": name}).fetchone()
        assert row is not None  # it was just written, or stood before
        return Fact(**row)


def cancel(conn: Connection, run_id: int, *, error: str | None = None) -> TaskRun:
    """End an open run; a worker that runs it sees it within a second, and before each step.

    Raises:
        TaskNotFoundError: there is no such run.
        TaskStateError: it has ended.
    """
    with conn.transaction():
        text = None if error is None else leases.storable(error)
        row = conn.execute(_ST["cancel"], {"id": run_id, "error": text}).fetchone()
        found = task_run(conn, run_id)
        if row is None:
            raise TaskStateError(run_id, found.status, "it has ended and cannot be cancelled")
        announce_if_asked(conn, run_id)
        return found


def retry(conn: Connection, run_id: int) -> TaskRun:
    """Let a failed or cancelled run wait again with all its attempts; what its steps stored stands.

    Raises:
        TaskNotFoundError: there is no such run.
        TaskStateError: it is open, or succeeded.
    """
    with conn.transaction():
        row = conn.execute(_ST["retry"], {"id": run_id}).fetchone()
        found = task_run(conn, run_id)
        if row is None:
            why = "it has succeeded, so there is nothing to do again" if found.status in ENDED else "it is still open"
            raise TaskStateError(run_id, found.status, why)
        conn.execute(_ST["wake"])
        return found


def announce_if_asked(conn: Connection, run_id: int) -> None:
    """Announce the end of a run in the transaction that ends it, when its caller or a trigger waits for that."""
    row = conn.execute(_ST["announces"], {"id": run_id}).fetchone()
    if row is not None and row["announces"]:
        announce(conn, run_id)


def announce(conn: Connection, run_id: int) -> None:
    """Write the outbox message about the end of a run in the transaction that ends it."""
    payload = conn.execute(_ST["announcement"], {"id": run_id}).fetchone()
    assert payload is not None  # its row is locked by this transaction
    outbox_message.put(conn, topic=TOPIC, key=f"task_run:{run_id}", payload=payload)
