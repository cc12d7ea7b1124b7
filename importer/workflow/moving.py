"""What moves a token that waits: a due timer, an answer, the end of an import.

A timer and a message are leased rows. Their firing locks the instance, its tokens, then the leased row by its fence;
whoever lost the lease changes nothing. What a firing raises rolls it back and is counted with the leased row, which
waits for its delay; at the last attempt the instance fails with it, in one transaction. An answer has no second
attempt: what its firing raises is told to the person, and nothing was answered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from importer import lease as leases
from importer import timer_job
from importer.db import Connection, Database, repeat_on_conflict
from importer.errors import (
    ApprovalError,
    DatabaseUnavailableError,
    LeaseLostError,
    NodeError,
    NodeTypeMissingError,
    WorkflowNotFoundError,
)
from importer.lease import Lease, Leased
from importer.outbox_message import Died, OutboxMessage, Route, sentence
from importer.settings import Settings
from importer.workflow import imports, instances, tasks
from importer.workflow.configs import TIMED_OUT, Approval
from importer.workflow.firing import ST, At, Firing, open_firing
from importer.workflow.node_types import DONE

log = logging.getLogger(__name__)


def timers_due(
    db: Database,
    holder: str,
    *,
    limit: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    at: At = lambda _point: None,
) -> int:
    """Fire due timers, the oldest first, until none is due or `limit` were fired; return how many were tried."""
    _fail_exhausted(db)
    done = 0
    with db.connection() as conn:
        for lease in leases.slices(
            db, Leased.TIMER_JOBS, holder=holder, rhythm=db.settings.timers, limit=limit, stopping=stopping
        ):
            at("claimed")
            with suppress(LeaseLostError):
                _fire_timer(db, conn, lease, at)
            done += 1
    return done


def _fire_timer(db: Database, conn: Connection, lease: Lease, at: At) -> None:
    """Fire one claimed timer, or say why not. Raises: LeaseLostError, DatabaseUnavailableError."""
    try:
        repeat_on_conflict(lambda: _fire(conn, lease, db.settings, at))
        at("committed")
    except (LeaseLostError, DatabaseUnavailableError):
        raise
    except NodeTypeMissingError as error:
        with db.connection() as own:
            leases.postpone(own, lease, delay=db.settings.timers.retry_delay, error=str(error))
    except Exception as error:  # noqa: BLE001 - whatever a node raises is counted and kept with the timer
        log.warning("timer %s: attempt %s failed (%s)", lease.id, lease.attempt, type(error).__name__)
        _failed(db, lease, error)


def _fire(conn: Connection, lease: Lease, settings: Settings, at: At) -> None:
    # In a pipeline what need not be answered at once goes along with the next statement: two to three times the rate.
    with conn.pipeline(), conn.transaction():
        opened = open_firing(conn, "lock_of_timer", lease.id, settings=settings)
        if opened is None:
            raise LeaseLostError(lease.table.table, lease.id, lease.fence)
        firing, row = opened
        at("locked")
        leases.renew(conn, lease)
        if not firing.is_active(row["token"]):
            leases.end(conn, lease, status="cancelled")
            return
        _time_up(firing, row["token"])
        at("advanced")
        firing.write()
        at("written")
        leases.end(conn, lease, status="completed")
        at("ended")


def _time_up(firing: Firing, token: int) -> None:
    """The timer of a token is due: a timer node is done, an approval was not answered in time."""
    node = firing.node_of(token)
    config = node.model
    if node.kind.waits == "approval":
        assert isinstance(config, Approval)
        params = {"id": firing.instance, "token": token, "now": firing.now}
        firing.conn.execute(ST["time_out"], params)
        firing.go(token, TIMED_OUT, values={config.into: {"choice": TIMED_OUT, "by": None, "note": None}})
    else:
        firing.go(token, DONE)


def _failed(db: Database, lease: Lease, error: Exception) -> None:
    """Count the attempt; at the last one the instance fails with the timer."""
    said = sentence(error, db.label)
    with db.connection() as conn, conn.transaction():
        opened = open_firing(conn, "lock_of_timer", lease.id, settings=db.settings)
        status = leases.retry_later(conn, lease, delay=db.settings.timers.retry_delay, error=said)
        if status == "failed" and opened is not None:
            firing, row = opened
            node = error.node if isinstance(error, NodeError) else row["node"]
            instances.fail(firing, node=node, error=said)


def _fail_exhausted(db: Database) -> None:
    """Timers whose worker died at the last attempt fail, and their instances with them."""
    with db.connection() as conn:
        for id_, fence in leases.exhausted(conn, Leased.TIMER_JOBS):
            with conn.transaction():
                opened = open_firing(conn, "lock_of_timer", id_, settings=db.settings)
                error = leases.fail_exhausted_one(conn, Leased.TIMER_JOBS, id_, fence)
                if error is not None and opened is not None:
                    firing, row = opened
                    instances.fail(firing, node=row["node"], error=error)


def answer(
    conn: Connection,
    approval: int,
    choice: str,
    *,
    by: str,
    note: str | None,
    settings: Settings,
    at: At = lambda _point: None,
) -> None:
    """Answer an open approval and move its token, in one transaction.

    Raises:
        ApprovalError: it was answered, is over, is not asked of `by`, or has no such choice.
        NodeError: a node after it could not do its work; the approval is open as before.
        WorkflowNotFoundError: there is no such approval.
    """
    with conn.transaction():
        opened = open_firing(conn, "lock_of_approval", approval, settings=settings)
        row = conn.execute(ST["lock_approval"], {"id": approval}).fetchone()
        if opened is None or row is None:
            raise WorkflowNotFoundError(f"there is no approval {approval}")
        firing, _ = opened
        at("locked")
        _refuse_answer(row, firing, choice, by)
        params = {"id": approval, "by": by, "choice": choice, "note": note, "now": firing.now}
        conn.execute(ST["answer"], params)
        timer_job.cancel(conn, instance_id=firing.instance, tokens=[row["token"]])
        config = firing.node_of(row["token"]).model
        assert isinstance(config, Approval)
        answered = {"choice": choice, "by": by, "note": note, "at": firing.now.isoformat()}
        firing.go(row["token"], choice, values={config.into: answered}, detail={"by": by, "note": note})
        at("advanced")
        firing.write()
        at("written")
    at("committed")


def _refuse_answer(row: Mapping[str, Any], firing: Firing, choice: str, by: str) -> None:
    id_, ended = int(row["id"]), row["ended_at"]
    match row["status"]:
        case "answered":
            raise ApprovalError(
                id_,
                f"{row['answered_by']} answered it with {row['choice']!r} at {ended:%Y-%m-%d %H:%M:%S} UTC",
                answered_by=row["answered_by"],
                answered_at=ended,
            )
        case "timed_out":
            raise ApprovalError(id_, f"its time was over at {row['due_at']:%Y-%m-%d %H:%M:%S} UTC")
        case "cancelled":
            raise ApprovalError(id_, f"it was cancelled at {ended:%Y-%m-%d %H:%M:%S} UTC")
        case _:
            pass
    if row["due_at"] is not None and row["due_at"] <= firing.now:
        raise ApprovalError(id_, f"its time was over at {row['due_at']:%Y-%m-%d %H:%M:%S} UTC")
    if not by.strip():
        raise ApprovalError(id_, "say who answers (by)")
    if row["who"] and by not in row["who"]:
        raise ApprovalError(id_, f"it is asked of {', '.join(row['who'])}, and not of {by}")
    if choice not in row["choices"]:
        raise ApprovalError(id_, f"{choice!r} is none of its choices: {', '.join(row['choices'])}")
    if not firing.is_active(row["token"]):
        raise ApprovalError(id_, f"its workflow instance {firing.instance} is {firing.status}")


def import_route(settings: Settings, *, at: At = lambda _point: None) -> Route:
    """Return how the end of an import reaches the tokens that wait for it."""

    def deliver(db: Database, lease: Lease, message: OutboxMessage) -> None:
        with db.connection() as conn:
            waiting = conn.execute(ST["waiting_for_job"], message.payload).fetchall()
            for row in waiting:
                instance, token = int(row["instance_id"]), int(row["token"])
                repeat_on_conflict(lambda i=instance, t=token: _deliver(conn, lease, message, i, t, db.settings, at))  # type: ignore[misc]
                at("committed")

    def dying(conn: Connection, message: OutboxMessage) -> Died:
        rows = conn.execute(ST["waiting_for_job"], message.payload).fetchall()
        found = [open_firing(conn, "lock", row["instance_id"], settings=settings) for row in rows]

        def died(error: str) -> None:
            for row, opened in zip(rows, found, strict=True):
                if opened is not None and opened[0].is_active(row["token"]):
                    firing = opened[0]
                    instances.fail(firing, node=firing.node_of(row["token"]).id, error=error)

        return died

    return Route(deliver=deliver, dying=dying)


def task_route(settings: Settings, *, at: At = lambda _point: None) -> Route:
    """Return how the end of a task's run reaches the token that waits for it."""

    def deliver(db: Database, lease: Lease, message: OutboxMessage) -> None:
        place = tasks.place_of(message.payload)
        if place is not None:
            with db.connection() as conn:
                repeat_on_conflict(lambda: _deliver(conn, lease, message, *place, db.settings, at))
            at("committed")

    def dying(conn: Connection, message: OutboxMessage) -> Died:
        place = tasks.place_of(message.payload)
        opened = None if place is None else open_firing(conn, "lock", place[0], settings=settings)

        def died(error: str) -> None:
            if opened is not None and place is not None and opened[0].is_active(place[1]):
                instances.fail(opened[0], node=opened[0].node_of(place[1]).id, error=error)

        return died

    return Route(deliver=deliver, dying=dying)


def _deliver(
    conn: Connection,
    lease: Lease,
    message: OutboxMessage,
    instance: int,
    token: int,
    settings: Settings,
    at: At,
) -> None:
    with conn.pipeline(), conn.transaction():
        opened = open_firing(conn, "lock", instance, settings=settings)
        at("locked")
        leases.renew(conn, lease)
        if opened is None or not opened[0].is_active(token):
            return
        firing = opened[0]
        model = firing.node_of(token).model
        if message.topic == tasks.TOPIC:
            outcome, values = tasks.told(message.payload, model)
            firing.go(token, outcome, values=values, detail={"run": message.payload["run_id"]})
        else:
            told = imports.told(message.payload, model)
            firing.go(token, told.outcome, values=told.values, detail={"job": message.payload["job_id"]})
        at("advanced")
        firing.write()
        at("written")
