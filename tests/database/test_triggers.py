"""Triggers: schedules by the clock, polls of a real server, events, ends, loops, errors."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

import importer as im
from importer.db import Database
from importer.errors import TriggerError, TriggerNotFoundError
from importer.lease import holder_name
from importer.triggers import (
    Trigger,
    disable_trigger,
    enable_trigger,
    fire,
    firings,
    put_trigger,
    read_triggers,
    remove_trigger,
    trigger,
    triggers,
    triggers_due,
)
from importer.triggers.definition import Schedule
from importer.triggers.schedule import last_slot, next_slot, slot_to_fire
from importer.worker import messages_due
from tests.web_server import Site, web_server
from tests.workflows import flow, node

MoveClock = Callable[..., None]

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)


@im.task(name="triggers.note", version=1)
def note(ctx: im.Context) -> object:
    """Give back what started it."""
    return ctx.input


class TimeMachine:
    """One connection whose clock is moved, so that a month passes in a second."""

    def __init__(self, db: Database, move_clock: MoveClock) -> None:
        self.db = db
        self._move = move_clock
        self.ahead = dt.timedelta(0)

    def to(self, ahead: dt.timedelta) -> None:
        """Put the clock so far ahead."""
        self.ahead = ahead
        with self.db.connection() as conn:
            self._move(ahead, conn)

    def now(self) -> dt.datetime:
        """Tell the time."""
        with self.db.connection() as conn:
            row = conn.execute("select rowlease.clock() as now").fetchone()
        assert row is not None
        return row["now"]  # type: ignore[no-any-return]  # a timestamptz

    def set(self, moment: dt.datetime) -> None:
        """Put the clock to a moment."""
        self.to(self.ahead + (moment - self.now()))

    def look(self) -> int:
        """Look at what is due."""
        return triggers_due(self.db, holder_name("trigger"))


@pytest.fixture
def time(db: Database, move_clock: MoveClock) -> TimeMachine:
    """Give a clock that the test moves."""
    return TimeMachine(db, move_clock)


@pytest.fixture
def site() -> Iterator[Site]:
    """Give a web server."""
    with web_server() as found:
        yield found


@pytest.fixture
def open_db(db: Database) -> Iterator[Database]:
    """Open the database with requests to this machine allowed."""
    with Database(db.conninfo, replace(db.settings, private_addresses=True)) as database:
        yield database


def put(db: Database, type: str, config: dict[str, Any], **more: Any) -> Trigger:  # noqa: A002, ANN401 - fields
    """Put the trigger `t`."""
    return put_trigger({"name": "t", "type": type, "config": config, **more}, db=db)


def slots(db: Database) -> list[str]:
    """Give the slots that fired, oldest first."""
    return [each.slot for each in reversed(firings("t", limit=None, db=db))]


def deliver(db: Database) -> None:
    """Deliver what is in the outbox."""
    with Database(db.conninfo, db.settings) as now:
        messages_due(now, holder_name("outbox"))


@pytest.mark.parametrize(("catch_up", "expected"), [("none", 21), ("one", 22)])
def test_a_month_of_days_with_an_outage(db: Database, time: TimeMachine, catch_up: str, expected: int) -> None:
    """Each slot fires once; of nine days that nobody looked, none or the last one is made up for."""
    time.set(dt.datetime(2027, 3, 1, 0, 0, tzinfo=dt.UTC))
    put(db, "schedule", {"cron": "0 6 * * *", "catch_up": catch_up}, target={"task": "triggers.note"})

    for hours in range(6, 31 * 24, 6):
        if not 10 * 24 < hours <= 19 * 24 + 6:
            time.set(dt.datetime(2027, 3, 1, tzinfo=dt.UTC) + hours * HOUR)
            time.look()
            time.look()

    days = [dt.datetime.fromisoformat(slot).day for slot in slots(db)]
    missing = {1: set(range(1, 32)) - set(days)}[1]
    assert max(Counter(days).values()) == 1
    assert missing == (set(range(11, 21)) if catch_up == "none" else set(range(11, 20)))
    assert len(days) == expected
    assert len(im.tasks(db=db)) == expected
    assert trigger("t", db=db).fire_count == expected


def test_summer_time_in_a_named_zone(db: Database, time: TimeMachine) -> None:
    """A daily moment keeps its local time; the one that summer time leaps over fires once, right after the leap."""
    time.set(dt.datetime(2027, 3, 26, 12, 0, tzinfo=dt.UTC))
    put(db, "schedule", {"cron": "30 2 * * *", "zone": "Europe/Berlin"})

    for _ in range(4 * 24 * 2):
        time.to(time.ahead + HOUR / 2)
        time.look()

    berlin = ZoneInfo("Europe/Berlin")
    local = [dt.datetime.fromisoformat(slot).astimezone(berlin) for slot in slots(db)]
    assert [f"{each:%d %H:%M %z}" for each in local] == [
        "27 02:30 +0100",
        "28 03:00 +0200",
        "29 02:30 +0200",
        "30 02:30 +0200",
    ]


def test_slots_of_an_interval_do_not_depend_on_who_looks() -> None:
    """They are counted from one origin, so two that look at different moments name the same slots."""
    schedule = Schedule(every="15m")  # type: ignore[arg-type]  # read by the model
    noon = dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC)

    assert next_slot(schedule, noon) == noon + HOUR / 4
    assert next_slot(schedule, noon + dt.timedelta(minutes=14)) == noon + HOUR / 4
    assert last_slot(schedule, noon) == noon
    assert last_slot(Schedule(cron="0 12 * * *"), noon) == noon


def test_which_slot_fires() -> None:
    """One in time fires; a late one only when one is to be caught up; never one that was served before."""
    noon = dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC)
    none, one = Schedule(cron="0 * * * *"), Schedule(cron="0 * * * *", catch_up="one")

    for schedule in (none, one):
        assert slot_to_fire(schedule, due=noon, now=noon + dt.timedelta(seconds=20)) == noon
        assert slot_to_fire(schedule, due=noon + HOUR, now=noon + HOUR / 2) is None
    assert slot_to_fire(none, due=noon - 5 * HOUR, now=noon + HOUR / 2) is None
    assert slot_to_fire(one, due=noon - 5 * HOUR, now=noon + HOUR / 2) == noon


def test_a_poll_fires_when_the_content_changes(open_db: Database, time: TimeMachine, site: Site) -> None:
    """The first content fires, unchanged content does not, changed content fires once; ETag is sent back."""
    clock = TimeMachine(open_db, time._move)
    site.body, site.headers["ETag"] = b'{"stars": 10}', '"a"'
    put(open_db, "api_poll", {"url": f"{site.url}/repo", "every": "5m"}, target={"task": "triggers.note"})

    clock.look()
    assert len(slots(open_db)) == 1
    site.status = 304
    clock.to(HOUR / 10)
    clock.look()
    site.status = 200
    clock.to(HOUR / 5)
    clock.look()
    assert len(slots(open_db)) == 1
    site.body = b'{"stars": 11}'
    for step in range(3, 6):
        clock.to(step * HOUR / 10)
        clock.look()

    assert len(slots(open_db)) == 2
    assert [each.headers.get("if-none-match") for each in site.asked] == [None, *['"a"'] * 5]
    newest, first = im.tasks(db=open_db)
    assert (first.input["body"], newest.input["body"]) == ({"stars": 10}, {"stars": 11})
    assert newest.input["previous_hash"] == first.input["hash"] != newest.input["hash"]
    assert (newest.input["status"], newest.input["headers"]["etag"]) == (200, '"a"')


def test_a_condition_on_a_picked_part(open_db: Database, time: TimeMachine, site: Site) -> None:
    """Only the picked part counts as a change; the condition decides whether it fires; the input is a template."""
    clock = TimeMachine(open_db, time._move)
    config = {"url": site.url, "every": "1m", "pick": "body.stars"}
    target = {"task": "triggers.note", "input": {"text": "{{body.stars}} stars", "stars": "{{body.stars}}"}}
    put(open_db, "api_poll", config, condition="{{body.stars}} > 1000", target=target)

    for minute, (stars, other) in enumerate([(999, 1), (1200, 2), (1200, 3), (1300, 3)]):
        site.body = json.dumps({"stars": stars, "other": other}).encode()
        clock.to(dt.timedelta(minutes=2 * minute))
        clock.look()

    assert [each.input for each in reversed(im.tasks(db=open_db))] == [
        {"text": "1200 stars", "stars": 1200},
        {"text": "1300 stars", "stars": 1300},
    ]


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_for_peace_gets_it(open_db: Database, time: TimeMachine, site: Site, status: int) -> None:
    """Retry-After holds for every trigger of the host, and costs none of them an attempt."""
    clock = TimeMachine(open_db, time._move)
    site.status, site.headers["Retry-After"] = status, "600"
    for name in ("a", "b"):
        put_trigger(
            {"name": name, "type": "api_poll", "config": {"url": f"{site.url}/{name}", "every": "1m"}}, db=open_db
        )

    clock.look()
    assert len(site.asked) == 1
    clock.to(dt.timedelta(minutes=9))
    clock.look()
    assert len(site.asked) == 1
    assert [each.attempt_count for each in triggers(db=open_db)] == [0, 0]
    site.status = 200
    clock.to(dt.timedelta(minutes=11))
    clock.look()
    assert len(site.asked) == 3
    assert [each.fire_count for each in triggers(db=open_db)] == [1, 1]


def test_errors_back_off_and_switch_the_trigger_off(open_db: Database, time: TimeMachine, site: Site) -> None:
    """Each error waits longer; after the last allowed the trigger is disabled with its error; it can be enabled."""
    clock = TimeMachine(open_db, time._move)
    site.status = 500
    put(open_db, "api_poll", {"url": f"{site.url}/x?token=s", "every": "1m"}, max_attempts=3)

    dues = []
    found = trigger("t", db=open_db)
    for _ in range(3):
        clock.look()
        found = trigger("t", db=open_db)
        dues.append(None if found.due_at is None else round((found.due_at - clock.now()).total_seconds() / 10))
        clock.to(clock.ahead + 3 * HOUR)

    assert dues == [3, 6, None]
    assert found.status == "disabled"
    assert found.last_error == f"{site.url}/x: answered 500"
    assert clock.look() == 0
    site.status = 200
    assert enable_trigger("t", db=open_db).status == "idle"
    clock.look()
    assert trigger("t", db=open_db).fire_count == 1


def test_a_secret_is_sent_and_never_stored(
    open_db: Database, time: TimeMachine, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header names the secret; its value is read from the environment for the request alone."""
    clock = TimeMachine(open_db, time._move)
    put(open_db, "api_poll", {"url": site.url, "headers": {"Authorization": "Bearer {{secret.TOKEN}}"}})

    clock.look()
    assert "ROWLEASE_SECRET_TOKEN" in (trigger("t", db=open_db).last_error or "")
    monkeypatch.setenv("ROWLEASE_SECRET_TOKEN", "hush")
    clock.to(HOUR)
    clock.look()

    assert site.asked[0].headers["authorization"] == "Bearer hush"
    with psycopg.connect(open_db.conninfo) as conn:
        assert conn.execute("select 1 from rowlease.triggers t where t::text like '%hush%'").fetchall() == []
        assert conn.execute("select 1 from rowlease.outbox_messages t where t::text like '%hush%'").fetchall() == []


def test_a_private_address_is_refused(db: Database, time: TimeMachine, site: Site) -> None:
    """Unless the setting allows it, no request leaves; the error says what would."""
    put(db, "api_poll", {"url": site.url})

    time.look()

    assert site.asked == []
    assert "ROWLEASE_PRIVATE_ADDRESSES" in (trigger("t", db=db).last_error or "")


def test_an_event_fires_its_triggers(db: Database) -> None:
    """All triggers of the event fire, those of others do not; the same key fires once, also when it is said twice."""
    put(db, "event", {"event": "order"}, condition="{{payload.sum}} > 5", target={"task": "triggers.note"})
    put_trigger({"name": "u", "type": "event", "config": {"event": "other"}}, db=db)

    for total, key in [(10, "k1"), (10, "k1"), (3, "k2"), (7, None), (7, None)]:
        fire("order", {"sum": total}, key=key, db=db)
    deliver(db)

    assert [(each.input["payload"], each.input["key"]) for each in reversed(im.tasks(db=db))] == [
        ({"sum": 10}, "k1"),
        ({"sum": 7}, None),
        ({"sum": 7}, None),
    ]
    assert trigger("u", db=db).fire_count == 0


def test_an_event_is_said_in_the_callers_transaction(db: Database) -> None:
    """It counts once that commits."""
    put(db, "event", {"event": "order"})

    with psycopg.connect(db.conninfo) as caller:
        fire("order", conn=caller)  # type: ignore[arg-type]  # rows of any kind
        caller.rollback()
    deliver(db)

    assert trigger("t", db=db).fire_count == 0


def test_an_event_whose_condition_breaks_is_the_triggers_error(db: Database) -> None:
    """Others of the same event fire all the same; repeated errors switch the broken one off."""
    put(db, "event", {"event": "order"}, condition="{{payload.missing}} > 5", max_attempts=2)
    put_trigger({"name": "u", "type": "event", "config": {"event": "order"}}, db=db)

    for _ in range(3):
        fire("order", {}, db=db)
    deliver(db)

    assert (trigger("t", db=db).status, trigger("u", db=db).fire_count) == ("disabled", 3)
    assert "payload.missing" in (trigger("t", db=db).last_error or "")


def chained(name: str) -> im.Workflow:
    """Give a workflow that ends at once."""
    return flow(node("say", "log", message=name), node("done", "end"), ways=[("say", "done")], name=name)


def test_a_chain_of_three_workflows_by_completion(db: Database) -> None:
    """The end of one starts the next, with its end as input; ends with another status start nothing."""
    for name in ("one", "two", "three"):
        im.store_workflow(chained(name), db=db)
    for source, target, status in [("one", "two", "completed"), ("two", "three", "completed"), ("one", "x", "failed")]:
        config = {"kind": "workflow", "name": source, "status": [status]}
        put_trigger(
            {"name": f"after {source} {status}", "type": "completed", "config": config, "target": {"workflow": target}},
            db=db,
        )

    im.start("one", {"n": 1}, db=db)
    deliver(db)

    found = {each.workflow: each for each in im.workflows(db=db)}
    assert set(found) == {"one", "two", "three"}
    assert {each.status for each in found.values()} == {"completed"}


def test_the_end_of_a_task_starts_what_waits_for_it(db: Database) -> None:
    """Ends of tasks are announced when a trigger waits for them, without their callers' doing."""
    im.enqueue(note, "before", db=db)
    assert im.work(db=db)["outbox_messages"] == 0
    put(db, "completed", {"kind": "task", "name": "triggers.note", "status": ["succeeded"]}, target={"workflow": "w"})
    im.store_workflow(chained("w"), db=db)

    im.enqueue(note, "after", db=db)
    im.work(db=db)

    (started,) = im.workflows(db=db)
    assert started.workflow == "w"


def test_a_loop_of_ends_is_refused(db: Database) -> None:
    """What would start itself in the end is not written; the message names the way round."""

    def after(source: str, target: str) -> Trigger:
        config = {"kind": "workflow", "name": source}
        written = {"name": f"{source}-{target}", "type": "completed", "config": config, "target": {"workflow": target}}
        return put_trigger(written, db=db)

    after("a", "b")
    after("b", "c")
    with pytest.raises(TriggerError, match="workflow c -> workflow a -> workflow b -> workflow c"):
        after("c", "a")
    with pytest.raises(TriggerError, match="without end"):
        after("d", "d")
    assert len(triggers(db=db)) == 2


def test_a_stale_holder_fires_nothing(db: Database, time: TimeMachine) -> None:
    """A trigger that is changed while it is checked fires as it is now, not as it was."""
    time.set(dt.datetime(2027, 3, 1, 0, 0, tzinfo=dt.UTC))
    put(db, "schedule", {"every": "1h"}, target={"task": "triggers.note"})
    time.to(time.ahead + HOUR)

    def change(point: str) -> None:
        if point == "checked":
            disable_trigger("t", db=db)

    triggers_due(db, "h", at=change)

    assert (slots(db), im.tasks(db=db), trigger("t", db=db).status) == ([], [], "disabled")


@pytest.mark.parametrize("point", ["claimed", "checked", "fired", "served", "committed"])
def test_broken_off_at_each_point(db: Database, time: TimeMachine, point: str) -> None:
    """A slot and what it starts commit together, once, wherever the worker is broken off."""
    time.set(dt.datetime(2027, 3, 1, 0, 0, tzinfo=dt.UTC))
    put(db, "schedule", {"every": "1h", "catch_up": "one"}, target={"task": "triggers.note"})
    time.to(time.ahead + HOUR)

    def break_off(reached: str) -> None:
        if reached == point:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        triggers_due(db, "h", at=break_off)
    time.to(time.ahead + HOUR / 6)
    time.look()

    assert (len(slots(db)), len(im.tasks(db=db))) == (1, 1)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"type": "schedule", "config": {}}, "either `every` or `cron`"),
        ({"type": "schedule", "config": {"cron": "61 * * * *"}}, "no cron expression"),
        ({"type": "schedule", "config": {"every": "1h", "zone": "Mars/Base"}}, "no time zone"),
        ({"type": "schedule", "config": {"every": "soon"}}, "30s, 15m, 2h, 1d"),
        ({"type": "api_poll", "config": {"url": "file:///etc/passwd"}}, "url"),
        ({"type": "event", "config": {"event": "e"}, "condition": "import os"}, "condition"),
        ({"type": "event", "config": {"event": "e"}, "target": {"task": "a", "workflow": "b"}}, "one of"),
        ({"type": "event", "config": {"evnt": "e"}}, "evnt"),
        ({"type": "never", "config": {}}, "type"),
    ],
)
def test_what_is_no_trigger_is_refused(db: Database, written: dict[str, Any], said: str) -> None:
    """All that is wrong is said, and nothing is written."""
    with pytest.raises(TriggerError, match=said):
        put_trigger({"name": "t", **written}, db=db)

    assert triggers(db=db) == []


def test_triggers_from_a_file(db: Database, tmp_path: Any) -> None:  # noqa: ANN401 - a path
    """A YAML file holds one or a list; putting one again changes it and forgets no firing."""
    path = tmp_path / "triggers.yaml"
    path.write_text("- {name: t, type: event, config: {event: a}}\n- {name: u, type: schedule, config: {every: 1h}}\n")

    for definition in read_triggers(path):
        put_trigger(definition, db=db)
    fire("a", key="k", db=db)
    deliver(db)
    put(db, "event", {"event": "a"}, target={"task": "triggers.note"})
    fire("a", key="k", db=db)
    deliver(db)

    assert [each.name for each in triggers(db=db)] == ["t", "u"]
    assert slots(db) == ["key k"]
    remove_trigger("t", db=db)
    with pytest.raises(TriggerNotFoundError):
        trigger("t", db=db)
