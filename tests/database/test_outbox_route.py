"""Announcements reach tasks and webhooks: signed, each with its own attempts, dead ones redelivered."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

import importer as im
from importer.db import Database
from importer.errors import OutboxError
from importer.lease import holder_name
from importer.outbox_route import OutboxRoute, outbox, outbox_routes, put_route, redeliver, remove_route, signature
from importer.worker import messages_due
from tests.web_server import Site, web_server

MoveClock = Callable[..., None]


@im.task(name="routes.note", version=1)
def note(ctx: im.Context) -> object:
    """Give back what came."""
    return ctx.input


@pytest.fixture
def site() -> Iterator[Site]:
    """Give a web server."""
    with web_server() as found:
        yield found


def deliver(db: Database) -> None:
    """Deliver what is due, with requests to this machine allowed."""
    with Database(db.conninfo, replace(db.settings, private_addresses=True)) as now:
        messages_due(now, holder_name("outbox"))


def test_a_task_gets_the_message(db: Database) -> None:
    """Each message of the topic is one run, with the message as its input; another topic's are not."""
    put_route("r", "event_fired", task="routes.note", db=db)
    put_route("other", "import_ended", task="routes.note", db=db)

    im.fire("order", {"n": 1}, db=db)
    deliver(db)
    deliver(db)

    (run,) = im.tasks(db=db)
    assert (run.input["topic"], run.input["payload"]["payload"]) == ("event_fired", {"n": 1})
    assert outbox_routes(db=db) == [
        OutboxRoute(name="other", topic="import_ended", kind="task", config={"task": "routes.note"}),
        OutboxRoute(name="r", topic="event_fired", kind="task", config={"task": "routes.note"}),
    ]


def test_a_webhook_is_signed(db: Database, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver can tell who sent it, and that a second call is the same message."""
    monkeypatch.setenv("ROWLEASE_SECRET_HOOK", "hush")
    put_route("hook", "event_fired", webhook=site.url + "/hook", secret="hook", db=db)

    im.fire("order", {"n": 1}, db=db)
    deliver(db)

    (asked,) = site.asked
    assert (asked.method, asked.path, json.loads(asked.body)["payload"]["payload"]) == ("POST", "/hook", {"n": 1})
    timestamp = asked.headers["x-rowlease-timestamp"]
    assert asked.headers["x-rowlease-signature"] == signature("hush", timestamp, asked.body)
    assert asked.headers["idempotency-key"] == f"{json.loads(asked.body)['id']}-hook"
    assert "hush" not in str(outbox(db=db))


def test_a_webhook_that_is_down(
    db: Database, site: Site, move_clock: MoveClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called again after a growing delay with the same key, is dead in the end, and can be redelivered."""
    monkeypatch.setenv("ROWLEASE_SECRET_HOOK", "hush")
    put_route("hook", "event_fired", webhook=site.url, secret="hook", db=db)
    site.status = 500

    im.fire("order", db=db)
    for hour in range(7):
        move_clock(dt.timedelta(hours=hour))
        deliver(db)

    (dead,) = outbox(status="dead", db=db)
    assert (dead.topic, dead.attempt_count, dead.last_error) == ("to_route", 5, f"{site.url}: answered 500")
    assert len({each.headers["idempotency-key"] for each in site.asked}) == 1
    assert [each.kind for each in im.alerts(db=db)] == ["message_dead"]
    site.status = 204
    assert redeliver(topic="to_route", db=db) == 1
    deliver(db)
    assert (len(site.asked), outbox(status="dead", db=db)) == (6, [])
    with pytest.raises(OutboxError, match="is not dead"):
        redeliver(dead, db=db)


def test_what_is_no_route_is_refused(db: Database) -> None:
    """One of task and webhook; a webhook has an address and a secret; an unknown one cannot be removed."""
    for more in ({}, {"task": "t", "webhook": "https://a"}, {"webhook": "https://a"}, {"webhook": "ftp://a"}):
        with pytest.raises(OutboxError):
            put_route("r", "event_fired", db=db, **more)
    with pytest.raises(OutboxError):
        remove_route("r", db=db)
    with pytest.raises(OutboxError):
        redeliver(db=db)
    put_route("r", "event_fired", task="routes.note", db=db)
    remove_route("r", db=db)
    assert outbox_routes(db=db) == []
