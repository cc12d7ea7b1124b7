"""Where announcements go besides what waits for them here: to a task, or to a webhook.

```
message ──► what waits for it here ──► for each route of its topic, once: a message to the route ──► task
                                                                          (own attempts, own death) └► webhook
```

A route gets messages of its own, so that a webhook that is down holds up nobody else and its dead messages are its own.
Within a key their order is that of the messages they carry.

**A webhook** is a POST of JSON (id, topic, key, payload, created_at). `Idempotency-Key` is the same for every attempt
of a message; `X-Rowlease-Signature` is `sha256=` and the HMAC-SHA-256, by the shared secret, of `X-Rowlease-Timestamp`,
a dot and the body: the receiver compares it, and refuses an old timestamp. Any 2xx is taken for delivered.

**A task** is enqueued with the message as its input, under the message as its key.

*Not guaranteed*: that a webhook is called once. It may have been called when its answer was lost; the receiver tells by
the idempotency key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from importer import lease as leases
from importer import outbox_message
from importer.db import Connection, Database, Jsonb, connect, statements
from importer.errors import OutboxError, RequestError
from importer.http_request import request, shown
from importer.lease import Lease
from importer.outbox_message import Died, OutboxMessage, Route
from importer.settings import secret
from importer.task_run import enqueue

#: What messages to routes are written under.
TOPIC = "to_route"

_ST = statements("outbox_route")


@dataclass(frozen=True, kw_only=True)
class OutboxRoute:
    """One route."""

    name: str
    #: Messages of which topic: import_ended workflow_ended task_run_ended trigger_fired event_fired.
    topic: str
    kind: Literal["task", "webhook"]
    #: task: `task`. webhook: `url`, and `secret`, the name of a secret of the environment.
    config: Mapping[str, Any]


def put_route(
    name: str,
    topic: str,
    *,
    task: str | None = None,
    webhook: str | None = None,
    secret: str | None = None,
    db: Database | None = None,
) -> OutboxRoute:
    """Write a route under its name, a new one or a changed one: messages of the topic go to a task or a webhook.

    `secret` names the secret that signs: the variable `ROWLEASE_SECRET_{secret}`, read when it is used.

    Raises:
        OutboxError: it is not one of task and webhook, or a webhook without a secret.
    """
    if (task is None) == (webhook is None):
        raise OutboxError(f"route {name}: it goes to a task or to a webhook, one of both")
    if webhook is not None and (not webhook.startswith(("https://", "http://")) or not secret):
        raise OutboxError(f"route {name}: a webhook has an address of http(s) and the name of the secret that signs")
    config = {"task": task} if task is not None else {"url": webhook, "secret": secret}
    kind: Literal["task", "webhook"] = "webhook" if task is None else "task"
    with _connection(db) as conn:
        conn.execute(_ST["put"], {"name": name, "topic": topic, "kind": kind, "config": Jsonb(config)})
    return OutboxRoute(name=name, topic=topic, kind=kind, config=config)


def outbox_routes(*, db: Database | None = None) -> list[OutboxRoute]:
    """Read all routes by name."""
    with _connection(db) as conn:
        return [OutboxRoute(**row) for row in conn.execute(_ST["routes"], {"topic": None}).fetchall()]


def remove_route(name: str, *, db: Database | None = None) -> None:
    """Remove a route. Raises: OutboxError when there is none of this name."""
    with _connection(db) as conn:
        if conn.execute(_ST["remove"], {"name": name}).fetchone() is None:
            raise OutboxError(f"there is no route {name}")


def outbox(
    *, topic: str | None = None, status: str | None = None, limit: int | None = 100, db: Database | None = None
) -> list[OutboxMessage]:
    """Read the newest messages, newest first."""
    with _connection(db) as conn:
        return outbox_message.messages(conn, topic=topic, status=status, limit=limit)


def redeliver(
    message: OutboxMessage | int | None = None, *, topic: str | None = None, db: Database | None = None
) -> int:
    """Let a dead message, or all dead ones of a topic, wait again with all their attempts; return how many.

    Raises:
        OutboxError: neither a message nor a topic is said, or the message is not dead.
    """
    if (message is None) == (topic is None):
        raise OutboxError("say a message or a topic")
    id_ = message.id if isinstance(message, OutboxMessage) else message
    with _connection(db) as conn, conn.transaction():
        found = conn.execute(_ST["redeliver"], {"id": id_, "topic": topic}).fetchall()
        if id_ is not None and not found:
            raise OutboxError(f"outbox message {id_} is not dead")
        conn.execute(_ST["wake"])
        return len(found)


def hand_on() -> Route:
    """Return how a message reaches the routes of its topic: each gets a message of its own, once."""

    def deliver(db: Database, lease: Lease, message: OutboxMessage) -> None:
        with db.connection() as conn:
            found = conn.execute(_ST["routes"], {"topic": message.topic}).fetchall()
            if not found:
                return
            with leases.fenced(conn, lease):
                for row in found:
                    params = {"message": message.id, "route": row["name"]}
                    if conn.execute(_ST["hand_on"], params).fetchone() is not None:
                        outbox_message.put(
                            conn,
                            topic=TOPIC,
                            key=f"{row['name']} {message.key}",
                            payload=_carried(row["name"], message),
                        )

    return Route(deliver=deliver, dying=_nothing_more)


def route_route() -> Route:
    """Return how a message to a route is delivered."""

    def deliver(db: Database, lease: Lease, message: OutboxMessage) -> None:
        with db.connection() as conn:
            row = conn.execute(_ST["route"], {"name": message.payload["route"]}).fetchone()
            if row is None:  # it was removed
                return
            route = OutboxRoute(**row)
            if route.kind == "task":
                with leases.fenced(conn, lease):
                    key = f"message {message.payload['message']['id']} to {route.name}"
                    enqueue(route.config["task"], message.payload["message"], key=key, conn=conn)
                return
        _post(db, route, message)

    return Route(deliver=deliver, dying=_nothing_more)


def signature(key: str, timestamp: str, body: bytes) -> str:
    """Sign a body with its timestamp.

    >>> signature("k", "1", b"{}")[:14]
    'sha256=3dd49b2'
    """
    return "sha256=" + hmac.new(key.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def _post(db: Database, route: OutboxRoute, message: OutboxMessage) -> None:
    said = message.payload["message"]
    body = json.dumps(said, ensure_ascii=False, sort_keys=True).encode()
    with db.connection() as conn:
        timestamp = str(outbox_message.now_s(conn))
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": f"{said['id']}-{route.name}",
        "X-Rowlease-Timestamp": timestamp,
        "X-Rowlease-Signature": signature(secret(route.config["secret"]), timestamp, body),
    }
    url = str(route.config["url"])
    private = db.settings.private_addresses
    within = db.settings.timers.lease / 3
    with request(url, method="POST", headers=headers, body=body, within=within, private=private) as answer:
        if not 200 <= answer.status < 300:
            raise RequestError(f"{shown(url)}: answered {answer.status}")


def _carried(route: str, message: OutboxMessage) -> dict[str, Any]:
    said = {
        "id": message.id,
        "topic": message.topic,
        "key": message.key,
        "payload": dict(message.payload),
        "created_at": message.created_at.isoformat(),
    }
    return {"route": route, "message": said}


def _nothing_more(_conn: Connection, _message: OutboxMessage) -> Died:
    return lambda _error: None


@contextmanager
def _connection(db: Database | None) -> Iterator[Connection]:
    if db is not None:
        with db.connection() as own:
            yield own
    else:
        with connect() as database, database.connection() as own:
            yield own
