"""How a workflow waits for a durable task: its node enqueues a run of its own, and the outbox says when that has ended.

The run and the wait commit together. The key of the run names instance and token, so that the message about its end
finds the token without a table of waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from importer import expressions
from importer.db import Connection, statements
from importer.errors import NodeTypeMissingError, TaskNotFoundError, TaskStateError
from importer.settings import Settings
from importer.task_run import queue
from importer.task_run.definition import newest
from importer.task_run.record import ENDED
from importer.workflow.configs import TASK_OUTCOMES, Task

_ST = statements("workflow")

#: Topic of the message about the end of a run.
TOPIC = queue.TOPIC


def enqueue(
    conn: Connection,
    config: pydantic.BaseModel | None,
    variables: Mapping[str, Any],
    *,
    node: str,
    place: tuple[int, int],
    settings: Settings,
) -> int:
    """Enqueue the run of a token (`place`: instance and token) in the caller's transaction; return its number.

    Raises:
        NodeTypeMissingError: the task is not known here. ExpressionError, TaskInputError: its input cannot be.
    """
    assert isinstance(config, Task)
    name = expressions.as_text(expressions.render(config.task, variables))
    try:
        task = newest(name)
    except TaskNotFoundError as error:
        raise NodeTypeMissingError(node, f"task {name}") from error
    return queue.enqueue(
        conn,
        task,
        expressions.render_all(config.input, variables),
        key=_key(*place),
        priority=config.priority,
        announces=True,
        rhythm=settings.tasks,
    )


def place_of(payload: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return instance and token of a run whose end is announced; none when it is no workflow's."""
    parts = str(payload.get("key") or "").split(":")
    if len(parts) != 3 or parts[0] != "workflow" or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None
    return int(parts[1]), int(parts[2])


def told(payload: Mapping[str, Any], config: pydantic.BaseModel | None) -> tuple[str, dict[str, Any]]:
    """Say what the end of a run means for its node: the outcome, and the variable."""
    assert isinstance(config, Task)
    outcome = str(payload["status"])
    assert outcome in TASK_OUTCOMES
    values = {"run": payload["run_id"], **{name: payload[name] for name in ("status", "result", "error")}}
    return outcome, {config.into: values}


def adopt(conn: Connection, run: int, place: tuple[int, int]) -> None:
    """Let another token have the run, after a retry; an end that has come is announced anew."""
    row = conn.execute(_ST["adopt_run"], {"id": run, "key": _key(*place)}).fetchone()
    if row is not None and row["status"] in ENDED:
        queue.announce(conn, run)


def cancel_unbegun(conn: Connection, instance: int, tokens: Sequence[int]) -> list[int]:
    """Cancel the runs of these tokens that nobody has begun; return them."""
    cancelled = []
    for row in conn.execute(_ST["unbegun_runs"], {"id": instance, "tokens": list(tokens)}).fetchall():
        try:
            queue.cancel(conn, row["id"], error=f"workflow instance {instance} was cancelled")
        except TaskStateError:  # pragma: no cover - the row is locked and pending
            continue
        cancelled.append(int(row["id"]))
    return cancelled


def _key(instance: int, token: int) -> str:
    return f"workflow:{instance}:{token}"
