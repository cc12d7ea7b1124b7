"""The outbox: written with its cause, delivered in order per key, tried again with growing delay, dead at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

import importer as im
from importer import import_job, outbox_message
from importer import lease as leases
from importer.db import Connection, Database
from importer.errors import LeaseLostError
from importer.lease import Lease, Leased, holder_name
from importer.outbox_message import Died, OutboxMessage, Route
from tests.importing import form, site_workbook

MoveClock = Callable[..., None]


class Post:
    """A route that keeps what it delivers, and fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.delivered: list[object] = []
        self.died: list[str] = []

    def route(self) -> Route:
        """Return it as a route."""
        return Route(deliver=self._deliver, dying=self._dying)

    def _deliver(self, _db: Database, _lease: Lease, message: OutboxMessage) -> None:
        if self.failures:
            self.failures -= 1
            raise ValueError("the other side is not there")
        self.delivered.append(message.payload["n"])

    def _dying(self, _conn: Connection, _message: OutboxMessage) -> Died:
        return self.died.append


def put(conn: Connection, n: int, *, key: str = "k", max_attempts: int = 5) -> int:
    """Write a message."""
    return outbox_message.put(conn, topic="letters", key=key, payload={"n": n}, max_attempts=max_attempts)


@contextmanager
def at(db: Database, move_clock: MoveClock, ahead: timedelta) -> Iterator[Database]:
    """Open the database with its clock ahead."""
    move_clock(ahead)
    with Database(db.conninfo, db.settings) as later:
        yield later


def test_a_message_commits_with_its_cause(db: Database, conn: Connection) -> None:
    """Rolled back with it, or there with it; delivered once."""
    post = Post()
    with suppress(ZeroDivisionError), conn.transaction():
        put(conn, 1)
        raise ZeroDivisionError
    with conn.transaction():
        put(conn, 2)

    done = [outbox_message.relay(db, "outbox:a", {"letters": post.route()}) for _ in range(2)]

    assert (done, post.delivered) == ([1, 0], [2])
    (message,) = outbox_message.messages(conn)
    assert (message.status, message.finished_at is None) == ("dispatched", False)


def test_order_is_kept_per_key(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """A message that waits for its next attempt holds up those behind it in its key, and no others."""
    post = Post(failures=1)
    for n in (1, 2, 3):
        put(conn, n)
    first = outbox_message.relay(db, "outbox:a", {"letters": post.route()}, limit=1)
    put(conn, 9, key="other")

    blocked = outbox_message.relay(db, "outbox:a", {"letters": post.route()})
    with at(db, move_clock, timedelta(seconds=31)) as later:
        rest = outbox_message.relay(later, "outbox:a", {"letters": post.route()})

    assert (first, blocked, rest) == (1, 1, 3)
    assert post.delivered == [9, 1, 2, 3]


def test_two_relays_never_deliver_two_of_a_key_at_a_time(conn: Connection) -> None:
    """While the head of a key is held, the next of the key is not claimed."""
    head = put(conn, 1)
    put(conn, 2)
    (held,) = leases.claim(conn, Leased.OUTBOX_MESSAGES, holder="outbox:a", ttl=timedelta(seconds=60), limit=5)

    other = leases.claim(conn, Leased.OUTBOX_MESSAGES, holder="outbox:b", ttl=timedelta(seconds=60), limit=5)

    assert (held.id, other) == (head, [])


def test_the_delay_grows_to_five_minutes(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """30 s, 1 min, 2 min, 4 min, then 5 min each."""
    id_ = put(conn, 1, max_attempts=8)
    post, delays, ahead = Post(failures=7), [], timedelta()

    for _ in range(7):
        with at(db, move_clock, ahead) as later, later.connection() as own:
            outbox_message.relay(later, "outbox:a", {"letters": post.route()})
            message = outbox_message.read(own, id_)
            assert message.due_at is not None
            now = own.execute("select rowlease.clock() as now").fetchone()
            assert now is not None
            delays.append(round((message.due_at - now["now"]).total_seconds()))
            ahead += timedelta(seconds=delays[-1] + 1)

    assert delays == [30, 60, 120, 240, 300, 300, 300]


def test_dead_at_the_last_attempt(db: Database, conn: Connection) -> None:
    """Dead with its error, the route is told in the same transaction, and the next of the key goes on."""
    dead, after = put(conn, 1, max_attempts=1), put(conn, 2)
    post = Post(failures=1)

    outbox_message.relay(db, "outbox:a", {"letters": post.route()})

    message = outbox_message.read(conn, dead)
    assert (message.status, message.last_error) == ("dead", "ValueError: the other side is not there")
    assert (post.died, post.delivered) == (["ValueError: the other side is not there"], [2])
    assert outbox_message.read(conn, after).status == "dispatched"


def test_dead_when_the_relay_dies_at_the_last_attempt(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """A relay that was killed: the next one buries the message and tells the route."""
    id_ = put(conn, 1, max_attempts=1)
    leases.claim(conn, Leased.OUTBOX_MESSAGES, holder="outbox:dead", ttl=timedelta(seconds=60))
    post = Post()

    with at(db, move_clock, timedelta(seconds=61)) as later:
        outbox_message.relay(later, "outbox:b", {"letters": post.route()})

    assert outbox_message.read(conn, id_).status == "dead"
    assert (post.delivered, len(post.died)) == ([], 1)


def test_a_topic_without_a_route_waits(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """Nobody here delivers it: it costs no attempt, says why, and is delivered where somebody does."""
    id_ = put(conn, 1)
    post = Post()

    outbox_message.relay(db, "outbox:a", {})
    message = outbox_message.read(conn, id_)
    with at(db, move_clock, timedelta(seconds=31)) as later:
        outbox_message.relay(later, "outbox:a", {"letters": post.route()})

    assert (message.status, message.attempt_count) == ("pending", 0)
    assert message.last_error == "nobody here delivers the topic letters"
    assert post.delivered == [1]


def test_a_relay_that_lost_its_message_ends_nothing(db: Database, conn: Connection, move_clock: MoveClock) -> None:
    """Another took the message while the first one delivered: the first changes nothing more."""
    id_ = put(conn, 1)

    def steal(_db: Database, _lease: Lease, _message: OutboxMessage) -> None:
        with at(db, move_clock, timedelta(seconds=61)) as later, later.connection() as other:
            leases.claim(other, Leased.OUTBOX_MESSAGES, holder="outbox:b", ttl=timedelta(seconds=60))

    outbox_message.relay(db, "outbox:a", {"letters": Route(deliver=steal, dying=Post()._dying)}, limit=1)

    assert outbox_message.read(conn, id_).status == "delivering"


# --- every end of an import job announces itself ----------------------------------------------------------------------


def announced(conn: Connection) -> list[tuple[str, str]]:
    """Return key and status of what was announced, in order."""
    found = reversed(outbox_message.messages(conn, topic=import_job.TOPIC))
    return [(message.key, message.payload["status"]) for message in found]


def test_a_finished_import_is_announced(db: Database, conn: Connection, tmp_path: Path) -> None:
    """With its counts, in the transaction that ends it."""
    job = im.import_workbook(site_workbook(tmp_path / "a.xlsx", 60), form(), db=db, progress=False)

    (message,) = outbox_message.messages(conn)
    assert (message.key, message.topic) == (f"import_job:{job.id}", "import_ended")
    assert message.payload == {
        "job_id": job.id, "fence": message.payload["fence"], "form": "site_report", "form_version": 1,
        "file_name": "a.xlsx", "status": "partial_success", "total_rows": 60, "success_rows": 59, "failed_rows": 1,
        "skipped_rows": 0, "reason": None, "error": None,
    }  # fmt: skip


def test_a_cancelled_import_is_announced(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Also one that nobody had begun."""
    job = im.submit(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db)

    im.cancel(job, db=db)

    assert announced(conn) == [(f"import_job:{job.id}", "cancelled")]


@pytest.mark.parametrize("how", ["refuse", "fail", "retry_later", "fail_exhausted"])
def test_a_failed_import_is_announced(
    db: Database, conn: Connection, tmp_path: Path, how: str, move_clock: MoveClock
) -> None:
    """Refused, failed, at its last attempt, and when its worker did not come back."""
    job = im.submit(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db)
    conn.execute("update rowlease.import_jobs set max_attempts = 1")
    lease = import_job.claim(conn, holder=holder_name(), ttl=timedelta(seconds=60))
    assert lease is not None

    match how:
        case "refuse":
            import_job.refuse(conn, lease, reason="corrupt", error="it is broken")
        case "fail":
            import_job.fail(conn, lease, error="it does not fit")
        case "retry_later":
            import_job.retry_later(conn, lease, delay=timedelta(seconds=1), error="the disk is full")
        case _:
            move_clock(timedelta(seconds=61), conn)
            import_job.fail_exhausted(conn)

    assert announced(conn) == [(f"import_job:{job.id}", "failed")]


def test_an_import_that_only_waits_is_not_announced(db: Database, conn: Connection, tmp_path: Path) -> None:
    """A retry and a graceful stop end nothing; and a stale holder announces nothing."""
    im.submit(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db)
    lease = import_job.claim(conn, holder=holder_name(), ttl=timedelta(seconds=60))
    assert lease is not None

    import_job.retry_later(conn, lease, delay=timedelta(seconds=1), error="the disk is full")
    with pytest.raises(LeaseLostError):
        import_job.fail(conn, lease, error="too late")

    assert announced(conn) == []
