"""Triggers and their firings as they may be seen."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from importer.db import Connection, statements
from importer.errors import TriggerNotFoundError
from importer.triggers.definition import Type

ST = statements("triggers")


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """One trigger as it stood when it was read; moments are aware and in UTC."""

    id: int
    name: str
    type: Type
    config: Mapping[str, Any]
    condition: str | None
    target: Mapping[str, Any] | None
    expected_within: dt.timedelta | None
    #: What the last check saw.
    state: Mapping[str, Any]
    status: Literal["idle", "checking", "disabled"]
    #: When it is looked at next; null: it waits for an event.
    due_at: dt.datetime | None
    fence: int
    #: Errors in a row, a running check included.
    attempt_count: int
    max_attempts: int
    last_checked_at: dt.datetime | None
    last_fired_at: dt.datetime | None
    fire_count: int
    last_error: str | None
    created_by: str | None
    created_at: dt.datetime
    #: When it was switched off.
    finished_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class Firing:
    """One firing: its slot, and what it started."""

    slot: str
    fired_at: dt.datetime
    #: task_run workflow_instance import_job, or null when the trigger has no target.
    started: str | None
    started_id: int | None


def trigger(conn: Connection, name: str) -> Trigger:
    """Read one trigger. Raises: TriggerNotFoundError."""
    row = conn.execute(ST["trigger"], {"name": name}).fetchone()
    if row is None:
        raise TriggerNotFoundError(name, "there is no such trigger")
    return Trigger(**row)


def by_id(conn: Connection, id: int) -> Trigger | None:  # noqa: A002 - the column's name
    """Read one trigger by its number; none when it was removed."""
    row = conn.execute(ST["by_id"], {"id": id}).fetchone()
    return None if row is None else Trigger(**row)


def triggers(conn: Connection, *, type: str | None = None) -> list[Trigger]:  # noqa: A002 - the column's name
    """Read all triggers by name."""
    return [Trigger(**row) for row in conn.execute(ST["triggers"], {"type": type}).fetchall()]
