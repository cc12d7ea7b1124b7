"""Instances: started, moved on, failed, set running again, cancelled. All in the caller's transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from importer import import_job, outbox_message, timer_job
from importer.db import Connection, Jsonb
from importer.errors import (
    JobStateError,
    WorkflowConflictError,
    WorkflowError,
    WorkflowNotFoundError,
    WorkflowStateError,
)
from importer.lease import storable
from importer.settings import Settings
from importer.workflow import tasks
from importer.workflow.definition import Workflow
from importer.workflow.firing import ST, Firing, announce_end, execute, open_firing, variables_problem
from importer.workflow.marking import Token


def store(conn: Connection, workflow: Workflow) -> int:
    """Store a workflow unless this very one is stored; return its version.

    Raises:
        WorkflowError: this version is disabled.
    """
    params = {"name": workflow.name, "digest": workflow.digest, "definition": Jsonb(workflow.to_dict())}
    with conn.transaction():
        row = conn.execute(ST["by_digest"], params).fetchone()
        if row is None:
            conn.execute(ST["lock_name"], params)
            row = conn.execute(ST["by_digest"], params).fetchone()
        if row is None:
            row = conn.execute(ST["store"], params).fetchone()
        assert row is not None  # an insert that returns
        return int(row["version"])


def newest(conn: Connection, name: str) -> tuple[int, str]:
    """Return version and digest of the newest enabled version. Raises: WorkflowNotFoundError."""
    row = conn.execute(ST["newest_enabled"], {"name": name}).fetchone()
    if row is None:
        raise WorkflowNotFoundError(
            f"no workflow {name!r} is stored and enabled; store it with: rowlease workflow store FILE"
        )
    return int(row["version"]), str(row["digest"])


def start(
    conn: Connection,
    *,
    name: str,
    version: int,
    variables: Mapping[str, Any],
    key: str | None,
    settings: Settings,
) -> int:
    """Start an instance and move it until every token waits; return its number, or that of the one this key made.

    Raises:
        WorkflowConflictError: the key came before with other variables.
        WorkflowError: the variables are no JSON, or too large.
        NodeError: a node on the way could not do its work; nothing was started.
    """
    plain = _plain(variables)
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    params = {"name": name, "version": version, "key": key, "digest": digest, "variables": Jsonb(plain)}
    with conn.transaction():
        row = conn.execute(ST["start"], params).fetchone()
        if row is None:
            return _same_key(conn, name, key, digest, plain)
        opened = open_firing(conn, "lock", row["id"], settings=settings)
        assert opened is not None  # just inserted
        firing, _ = opened
        firing.begin()
        firing.write()
        return firing.instance


def _plain(variables: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(variables), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise WorkflowError(f"the variables are no JSON: {error}") from error
    for name in plain:
        if not name.isidentifier():
            raise WorkflowError(f"{name!r} is no name of a variable: letters, digits and underscores")
    problem = variables_problem(plain)
    if problem:
        raise WorkflowError(problem)
    return plain


def _same_key(conn: Connection, name: str, key: str | None, digest: str, variables: Mapping[str, Any]) -> int:
    row = conn.execute(ST["by_key"], {"name": name, "key": key}).fetchone()
    assert row is not None  # it stood in the way of the insert
    if row["start_digest"] == digest:
        return int(row["id"])
    said = conn.execute(ST["started_with"], {"id": row["id"]}).fetchone()
    before = {} if said is None else said["variables"]
    differs = [
        f"{each} was {_shown(before, each)}, is now {_shown(variables, each)}"
        for each in sorted(before.keys() | variables.keys())
        if before.get(each) != variables.get(each) or (each in before) != (each in variables)
    ]
    raise WorkflowConflictError(
        int(row["id"]),
        f"the key {key!r} belongs to workflow instance {row['id']}, which was started with other variables: "
        f"{'; '.join(differs)}",
        differs,
    )


def _shown(variables: Mapping[str, Any], name: str) -> str:
    if name not in variables:
        return "not there"
    shown = json.dumps(variables[name], ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def fail(firing: Firing, *, node: str, error: str) -> None:
    """Fail a locked instance: its tokens, timers and approvals are cancelled, and a retry can restore them."""
    if firing.status != "running":
        return
    error = storable(error)
    _stop(firing, "failed", node=node, error=error)
    _event(firing, "failed", node=node, detail={"error": error})


def cancel(conn: Connection, id: int, *, by: str | None, settings: Settings) -> None:  # noqa: A002 - the column's name
    """Cancel a running instance with its tokens, timers, approvals, and jobs of its own that nobody has begun.

    Work done stays; the history says what.

    Raises: WorkflowNotFoundError, WorkflowStateError.
    """
    with conn.transaction():
        firing = opened(conn, id, settings=settings)
        if firing.status != "running":
            raise WorkflowStateError(id, firing.status, "it has ended and cannot be cancelled")
        gone = _stop(firing, "cancelled", node=None, error=None)
        runs = tasks.cancel_unbegun(conn, id, gone)
        cancelled = []
        for row in conn.execute(ST["own_jobs"], {"id": id}).fetchall():
            try:
                import_job.cancel(conn, row["id"], error=f"workflow instance {id} was cancelled")
            except JobStateError:  # pragma: no cover - the row is locked and pending
                continue
            cancelled.append(row["id"])
        _event(firing, "cancelled", detail={"by": by, "import_jobs_cancelled": cancelled, "task_runs_cancelled": runs})


def retry(conn: Connection, id: int, *, settings: Settings) -> None:  # noqa: A002 - the column's name
    """Set a failed instance running from where it failed: every token the failure cancelled stands there again.

    A timer keeps its moment, and the one that failed is due at once; an approval is asked again; a wait for a job goes
    on, and its end is announced again if it has ended.

    Raises: WorkflowNotFoundError, WorkflowStateError.
    """
    with conn.transaction():
        firing = opened(conn, id, settings=settings)
        if firing.status != "failed":
            raise WorkflowStateError(id, firing.status, "only a failed instance can be set running again")
        conn.execute(ST["resume"], {"id": id})
        firing.status = "running"
        firing.event("retried")
        for row in conn.execute(ST["to_restore"], {"id": id}).fetchall():
            _restore(firing, row)
        firing.write()


def _restore(firing: Firing, row: Mapping[str, Any]) -> None:
    scope = tuple((fork, at) for fork, at in row["scope"])
    new = firing.restore(Token(number=row["number"], node=row["node"], scope=scope))
    params = {"id": firing.instance, "number": row["number"], "new": new.number}
    firing.after_tokens(partial(execute, firing.conn, "restored", params))
    if row["question"] is not None:
        until = None if row["answer_until"] is None else max(row["answer_until"], firing.now)
        firing.ask(new, who=list(row["who"]), question=row["question"], choices=tuple(row["choices"]), until=until)
    elif row["timer_status"] is not None:
        due_at = firing.now if row["timer_status"] == "failed" else row["due_at"] or firing.now
        firing.event("waits", token=new, detail={"for": "timer", "until": due_at.isoformat()})
        firing.set_timer(new, due_at)
    elif row["run"] is not None:
        firing.event("waits", token=new, detail={"for": "task", "run": row["run"]})
        tasks.adopt(firing.conn, row["run"], (firing.instance, new.number))
    elif row["job_id"] is not None:
        _wait_again(firing, new, int(row["job_id"]), own=row["own"])
    else:
        firing.event("waits", token=new, detail={"for": "join"})


def _wait_again(firing: Firing, token: Token, job_id: int, *, own: bool) -> None:
    """Wait for a job; one that has ended is announced anew, and a worker delivers that."""
    conn = firing.conn
    held = conn.execute(ST["hold_job"], {"id": job_id}).fetchone()
    assert held is not None  # the foreign key
    ended = held["status"] in import_job.ENDED
    firing.event("waits", token=token, detail={"for": "import", "job": job_id})
    firing.wait_for_job(token, job_id, fence=held["fence"] - 1 if ended else held["fence"], own=own)
    if ended:
        announced = import_job.announcement(conn, job_id)
        firing.after_tokens(partial(_announce, conn, job_id, announced))


def _announce(conn: Connection, job_id: int, announced: Mapping[str, Any]) -> None:
    outbox_message.put(conn, topic=import_job.TOPIC, key=f"import_job:{job_id}", payload=announced)


def opened(conn: Connection, id: int, *, settings: Settings) -> Firing:  # noqa: A002 - the column's name
    """Lock an instance. Raises: WorkflowNotFoundError."""
    found = open_firing(conn, "lock", id, settings=settings)
    if found is None:
        raise WorkflowNotFoundError(f"there is no workflow instance {id}")
    return found[0]


def _stop(firing: Firing, status: str, *, node: str | None, error: str | None) -> list[int]:
    """End a locked instance and what it waits for; return its tokens."""
    conn = firing.conn
    params = {"id": firing.instance, "now": firing.now, "status": status, "node": node, "error": error}
    gone = conn.execute(ST["cancel_tokens"], params).fetchall()
    timer_job.cancel(conn, instance_id=firing.instance, tokens=[row["number"] for row in gone])
    conn.execute(ST["cancel_approvals"], params)
    conn.execute(ST["stop"], params)
    firing.status = status
    announce_end(firing)
    for row in gone:
        _event(firing, "cancelled", token=row["number"], node=row["node"])
    return [row["number"] for row in gone]


def _event(
    firing: Firing,
    what: str,
    *,
    token: int | None = None,
    node: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    params = {
        "id": firing.instance,
        "token": token,
        "node": node,
        "what": what,
        "now": firing.now,
        "detail": Jsonb(dict(detail or {})),
    }
    firing.conn.execute(ST["add_event"], params)
