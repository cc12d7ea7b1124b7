"""Events and ends reach their triggers through the outbox: `fire` writes a message, each end of a run writes one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from importer import lease as leases
from importer.db import Connection, Database, repeat_on_conflict
from importer.errors import DatabaseUnavailableError, LeaseLostError, TaskNotFoundError
from importer.lease import Lease
from importer.outbox_message import Died, OutboxMessage, Route, sentence
from importer.task_run.redaction import redacted_text
from importer.triggers.definition import CONFIGS, Completed, Event
from importer.triggers.firing import fire
from importer.triggers.record import ST, Trigger, triggers

log = logging.getLogger(__name__)

#: What events are written under.
EVENT_TOPIC = "event_fired"

#: Whether a trigger asks for a message: its slot and variables, or None.
Asked = Callable[[Trigger, OutboxMessage], tuple[str, Mapping[str, Any]] | None]


def event_route() -> Route:
    """Return how an event reaches the triggers that wait for it."""

    def asked(trigger: Trigger, message: OutboxMessage) -> tuple[str, Mapping[str, Any]] | None:
        config = CONFIGS["event"].model_validate(trigger.config)
        if not isinstance(config, Event) or config.event != message.payload["event"]:
            return None
        key = message.payload["key"]
        slot = f"message {message.id}" if key is None else f"key {key}"
        return slot, {name: message.payload[name] for name in ("event", "payload", "key")}

    return _route("event", asked)


def completed_route(kind: str, name_field: str, number_field: str) -> Route:
    """Return how the ends of one kind reach the triggers that wait for them."""

    def asked(trigger: Trigger, message: OutboxMessage) -> tuple[str, Mapping[str, Any]] | None:
        config = CONFIGS["completed"].model_validate(trigger.config)
        payload = message.payload
        if not isinstance(config, Completed) or (config.kind, config.name) != (kind, payload[name_field]):
            return None
        if config.status and payload["status"] not in config.status:
            return None
        slot = f"{kind} {payload[number_field]}, message {message.id}"
        return slot, {"kind": kind, "name": payload[name_field], "status": payload["status"], "result": dict(payload)}

    return _route("completed", asked)


def _route(type: str, asked: Asked) -> Route:  # noqa: A002 - the column's name
    def deliver(db: Database, lease: Lease, message: OutboxMessage) -> None:
        with db.connection() as conn:
            for trigger in triggers(conn, type=type):
                wanted = None if trigger.status == "disabled" else asked(trigger, message)
                if wanted is not None:
                    _serve(db, conn, lease, trigger, *wanted)

    def dying(_conn: Connection, _message: OutboxMessage) -> Died:
        return lambda _error: None

    return Route(deliver=deliver, dying=dying)


def _serve(
    db: Database, conn: Connection, lease: Lease, trigger: Trigger, slot: str, variables: Mapping[str, Any]
) -> None:
    """Fire one trigger in a transaction of its own; an error is the trigger's, and the others go on."""

    def go() -> None:
        with conn.transaction():
            leases.renew(conn, lease)
            if conn.execute(ST["lock"], {"id": trigger.id}).fetchone() is None:
                return
            fire(db, conn, trigger, slot, variables)
            conn.execute(ST["checked"], {"id": trigger.id})

    try:
        repeat_on_conflict(go)
    except (LeaseLostError, DatabaseUnavailableError, TaskNotFoundError):
        raise  # the message is tried again: by a worker that knows the task, it may be
    except Exception as error:  # noqa: BLE001 - whatever a firing raises is counted and kept with the trigger
        log.warning("trigger %s: failed (%s)", trigger.name, type(error).__name__)
        said = leases.storable(redacted_text(sentence(error, db.label)))
        conn.execute(ST["erred"], {"id": trigger.id, "error": said})
