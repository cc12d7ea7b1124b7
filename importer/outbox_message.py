"""The outbox: announcements that are written with their cause and delivered until they arrive.

```
cause ─┬─ its own rows ─┐ one
       └─ put ──────────┘ transaction        relay: claim ─► route.deliver ─► dispatched
                                                    │            └ error ──► pending, after a growing delay
                                                    └ attempts used up ────► dead, and route.dying says what that means
```

What is announced cannot be lost, because it commits with what it announces, and is not announced when that rolls
back.
A message is a leased row: relays on any number of workers share them, a dead relay's messages are due again. Within
a key the order of commits is kept: a message is claimed only when no earlier one of its key is open.

**A route** delivers a topic. Its `deliver` may be called again for the same message (a crash may come after it), so it
must see what was done; it writes in transactions of its own that renew the message's lease first, so that a relay that
lost the message changes nothing. A topic nobody here has a route for waits.

**Not guaranteed**: order across keys; that a message is delivered soon. A dead message does not hold up those behind
it.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from importer import lease as leases
from importer.db import Connection, Database, Jsonb, database_error, errors, statements
from importer.errors import DatabaseUnavailableError, ImporterError, LeaseLostError, NodeTypeMissingError
from importer.lease import Lease, Leased

log = logging.getLogger(__name__)

Status = Literal["pending", "delivering", "dispatched", "dead"]

#: The longest delay between two attempts.
LONGEST_DELAY = dt.timedelta(minutes=5)

_ST = statements("outbox_message")


@dataclass(frozen=True, kw_only=True)
class OutboxMessage:
    """One message as it stood when it was read; moments are aware and in UTC."""

    id: int
    #: What kind of thing is announced; a route serves one topic.
    topic: str
    #: Messages of one key are delivered in the order they were written.
    key: str
    payload: Mapping[str, Any]
    #: pending delivering dispatched dead.
    status: Status
    attempt_count: int
    max_attempts: int
    due_at: dt.datetime | None
    last_error: str | None
    created_at: dt.datetime
    finished_at: dt.datetime | None


#: Named moments of a delivery, at which a test may end the process.
At = Callable[[str], None]

#: Says what the death of a message means, given its error, in the transaction in which it dies.
Died = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Route:
    """How the messages of a topic are delivered."""

    #: Deliver; may run again for the same message. Errors are counted and tried again.
    deliver: Callable[[Database, Lease, OutboxMessage], None]
    #: Lock whatever the death of the message changes, and return what changes it.
    dying: Callable[[Connection, OutboxMessage], Died]


def in_turn(*routes: Route) -> Route:
    """Give the route that delivers by several, one after the other; each must bear a message it has seen before."""

    def deliver(db: Database, lease: Lease, message: OutboxMessage) -> None:
        for route in routes:
            route.deliver(db, lease, message)

    def dying(conn: Connection, message: OutboxMessage) -> Died:
        last_words = [route.dying(conn, message) for route in routes]

        def died(error: str) -> None:
            for each in last_words:
                each(error)

        return died

    return Route(deliver=deliver, dying=dying)


def put(conn: Connection, *, topic: str, key: str, payload: Mapping[str, Any], max_attempts: int = 5) -> int:
    """Write a message in the caller's transaction and wake the workers when it commits; return its number.

    Locks the key until the transaction ends.
    """
    conn.execute(_ST["lock_key"], {"key": key})
    params = {"topic": topic, "key": key, "payload": Jsonb(dict(payload)), "max_attempts": max_attempts}
    row = conn.execute(_ST["put"], params).fetchone()
    assert row is not None  # an insert that returns
    conn.execute(_ST["wake"])
    return int(row["id"])


def relay(
    db: Database,
    holder: str,
    routes: Mapping[str, Route],
    *,
    limit: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    at: At = lambda _point: None,
) -> int:
    """Deliver due messages, each by the route of its topic, until none is due or `limit` were tried; return how many.

    The rhythm is that of timers.
    """
    _bury_exhausted(db, routes)
    done = 0
    for lease in leases.slices(
        db, Leased.OUTBOX_MESSAGES, holder=holder, rhythm=db.settings.timers, limit=limit, stopping=stopping
    ):
        at("claimed")
        with suppress(LeaseLostError):
            _deliver(db, lease, routes, at)
        done += 1
    return done


def _deliver(db: Database, lease: Lease, routes: Mapping[str, Route], at: At) -> None:
    with db.connection() as conn:
        message = read(conn, lease.id)
        route = routes.get(message.topic)
        if route is None:
            delay = db.settings.timers.retry_delay
            leases.postpone(conn, lease, delay=delay, error=f"nobody here delivers the topic {message.topic}")
            return
    try:
        route.deliver(db, lease, message)
        at("delivered")
        with db.connection() as conn:
            leases.end(conn, lease, status="dispatched")
    except (LeaseLostError, DatabaseUnavailableError):
        raise
    except NodeTypeMissingError as error:
        with db.connection() as conn:
            leases.postpone(conn, lease, delay=db.settings.timers.retry_delay, error=str(error))
    except Exception as error:  # noqa: BLE001 - whatever a route raises is counted and kept with the message
        log.warning("outbox message %s: attempt %s failed (%s)", lease.id, lease.attempt, type(error).__name__)
        _failed(db, lease, message, route, sentence(error, db.label))


def _failed(db: Database, lease: Lease, message: OutboxMessage, route: Route, error: str) -> None:
    delay = min(db.settings.timers.retry_delay * 2 ** min(lease.attempt - 1, 20), LONGEST_DELAY)
    with db.connection() as conn, conn.transaction():
        died = route.dying(conn, message) if lease.attempt >= message.max_attempts else None
        status = leases.retry_later(conn, lease, delay=delay, error=error)
        if status == "dead" and died is not None:
            died(error)


def _bury_exhausted(db: Database, routes: Mapping[str, Route]) -> None:
    """Messages whose relay died at the last attempt are dead."""
    with db.connection() as conn:
        for id_, fence in leases.exhausted(conn, Leased.OUTBOX_MESSAGES):
            message = read(conn, id_)
            with conn.transaction():
                route = routes.get(message.topic)
                died = None if route is None else route.dying(conn, message)
                error = leases.fail_exhausted_one(conn, Leased.OUTBOX_MESSAGES, id_, fence)
                if error is not None and died is not None:
                    died(error)


def read(conn: Connection, id: int) -> OutboxMessage:  # noqa: A002 - the column's name
    """Read one message, which must be there."""
    row = conn.execute(_ST["message"], {"id": id}).fetchone()
    if row is None:
        raise LeaseLostError(Leased.OUTBOX_MESSAGES.table, id, 0)
    return OutboxMessage(**row)


def messages(
    conn: Connection, *, topic: str | None = None, status: str | None = None, limit: int | None = None
) -> list[OutboxMessage]:
    """Read the newest messages, newest first; `limit` null reads all."""
    params = {"topic": topic, "status": status, "limit": limit}
    return [OutboxMessage(**row) for row in conn.execute(_ST["messages"], params).fetchall()]


def due(conn: Connection) -> int:
    """Count the messages that could be claimed now, up to a thousand."""
    row = conn.execute(_ST["due"]).fetchone()
    return 0 if row is None else int(row["due"])


def now_s(conn: Connection) -> int:
    """Tell the time as seconds since 1970, for those who are told when a message was sent."""
    row = conn.execute(_ST["now_s"]).fetchone()
    assert row is not None  # a select of one row
    return int(row["seconds"])


def next_moment_s(conn: Connection) -> float | None:
    """Seconds until a message becomes due or a lease runs out (negative: already); null when there is none."""
    row = conn.execute(_ST["next_moment"]).fetchone()
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def sentence(error: Exception, label: str) -> str:
    """Say an error in words that may be kept with a row."""
    if isinstance(error, errors.Error):
        error = database_error(error, label)
    return str(error) if isinstance(error, ImporterError) else f"{type(error).__name__}: {error}"
