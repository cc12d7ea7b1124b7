"""What a program calls: put, look at, switch and remove triggers, and fire events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from importer import outbox_message
from importer.db import Connection, Database, Jsonb, connect, dict_rows
from importer.errors import TriggerError
from importer.task_run.definition import as_json, from_json
from importer.triggers import record
from importer.triggers.checking import first_look
from importer.triggers.definition import Definition, read
from importer.triggers.loops import refuse_loop
from importer.triggers.record import ST, Firing, Trigger
from importer.triggers.routes import EVENT_TOPIC


def put_trigger(definition: Mapping[str, Any] | Definition, *, db: Database | None = None) -> Trigger:
    """Write a trigger under its name: a new one, or the one there is changed and switched on.

        im.put_trigger({
            "name": "stars", "type": "api_poll", "config": {"url": "https://example.com/repo", "every": "15m"},
            "condition": "{{body.stars}} > 1000", "target": {"task": "tell"},
        })

    Raises:
        TriggerError: it is no valid trigger, or would start itself in the end.
    """
    found = read(definition.model_dump() if isinstance(definition, Definition) else definition)
    with _connection(db) as conn, conn.transaction():
        conn.execute(ST["lock_all"])
        refuse_loop(found, record.triggers(conn, type="completed"))
        params = {
            **{name: getattr(found, name) for name in ("name", "type", "condition", "expected_within", "max_attempts")},
            "config": Jsonb(found.config),
            "target": None if found.target is None else Jsonb(found.target.model_dump(exclude_none=True)),
            **first_look(conn, found.type, found.config),
        }
        conn.execute(ST["put"], params)
        conn.execute(ST["wake"])
        return record.trigger(conn, found.name)


def read_triggers(path: str | os.PathLike[str]) -> list[Definition]:
    """Read a YAML or JSON file: one trigger, or a list of them.

    Raises:
        TriggerError: the file cannot be read, or one of them is no valid trigger.
    """
    try:
        written = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TriggerError("", f"{path} cannot be read: {error}") from error
    return [read(each) for each in (written if isinstance(written, list) else [written])]


def triggers(*, db: Database | None = None) -> list[Trigger]:
    """Read all triggers by name."""
    with _connection(db) as conn:
        return record.triggers(conn)


def trigger(name: str, *, db: Database | None = None) -> Trigger:
    """Read one trigger. Raises: TriggerNotFoundError."""
    with _connection(db) as conn:
        return record.trigger(conn, name)


def firings(name: str, *, limit: int | None = 20, db: Database | None = None) -> list[Firing]:
    """Read the newest firings of a trigger, newest first. Raises: TriggerNotFoundError."""
    with _connection(db) as conn:
        id_ = record.trigger(conn, name).id
        return [Firing(**row) for row in conn.execute(ST["firings"], {"id": id_, "limit": limit}).fetchall()]


def disable_trigger(name: str, *, db: Database | None = None) -> Trigger:
    """Switch a trigger off; what it started goes on. Raises: TriggerNotFoundError."""
    with _connection(db) as conn:
        conn.execute(ST["disable"], {"name": name, "error": None})
        return record.trigger(conn, name)


def enable_trigger(name: str, *, db: Database | None = None) -> Trigger:
    """Switch a trigger on again, with all its attempts; a schedule goes on with its next slot.

    Raises:
        TriggerNotFoundError: there is no such trigger.
    """
    with _connection(db) as conn, conn.transaction():
        found = record.trigger(conn, name)
        conn.execute(ST["enable"], {"name": name, **first_look(conn, found.type, found.config)})
        conn.execute(ST["wake"])
        return record.trigger(conn, name)


def remove_trigger(name: str, *, db: Database | None = None) -> None:
    """Remove a trigger with its memory of what fired. Raises: TriggerNotFoundError."""
    with _connection(db) as conn, conn.transaction():
        record.trigger(conn, name)
        conn.execute(ST["remove"], {"name": name})


def fire(
    event: str,
    payload: object = None,
    *,
    key: str | None = None,
    conn: Connection | None = None,
    db: Database | None = None,
) -> int:
    """Say that something happened; triggers of this event fire when a worker delivers it. Returns the message's number.

    Args:
        event: its name.
        payload: what came with it, a value of JSON.
        key: a name of the caller's: with the same key each trigger fires once.
        conn: say it in this connection's transaction (psycopg 3); it counts once that commits.
        db: the database; else the one of `connect()`.

    Raises:
        TaskInputError: the payload cannot be kept as JSON.
    """
    said = from_json(as_json(payload, f"the payload of the event {event}"))
    with _connection(db, conn) as own, own.transaction():
        return outbox_message.put(
            own, topic=EVENT_TOPIC, key=f"event:{event}", payload={"event": event, "payload": said, "key": key}
        )


@contextmanager
def _connection(db: Database | None, conn: Any = None) -> Iterator[Connection]:  # noqa: ANN401 - a caller's connection has rows of any kind
    if conn is not None:
        with dict_rows(conn) as own:
            yield own
    elif db is not None:
        with db.connection() as own:
            yield own
    else:
        with connect() as database, database.connection() as own:
            yield own
