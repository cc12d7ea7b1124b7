"""Workers that claim at the same time: every row goes to one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from importer import lease as leases
from importer.db import Connection, Database
from importer.errors import DatabaseError, LeaseLostError
from importer.lease import Lease, Leased
from importer.settings import Rhythm, Settings

JOBS = Leased.IMPORT_JOBS
TTL = timedelta(seconds=60)

QueueJobs = Callable[..., list[int]]
MoveClock = Callable[..., None]


def test_two_workers_and_one_job(database: Database, queue_jobs: QueueJobs) -> None:
    """While the first claim is not committed the second finds nothing, without waiting; and neither after."""
    queue_jobs()

    with database.connection() as first, database.connection() as second:
        with first.transaction():
            won = leases.claim(first, JOBS, holder="a", ttl=TTL)
            lost = leases.claim(second, JOBS, holder="b", ttl=TTL)
        lost += leases.claim(second, JOBS, holder="b", ttl=TTL)

    assert (len(won), lost) == (1, [])


def test_two_workers_at_once(database: Database, queue_jobs: QueueJobs) -> None:
    """Twenty times two workers start at the same moment for one job: one wins."""
    barrier = threading.Barrier(2, timeout=30)

    def compete(holder: str) -> list[Lease]:
        with database.dedicated() as conn:
            barrier.wait()
            return leases.claim(conn, JOBS, holder=holder, ttl=TTL)

    with ThreadPoolExecutor(2) as workers:
        for _ in range(20):
            (id_,) = queue_jobs()
            claimed = [lease for found in workers.map(compete, "ab") for lease in found]
            assert [lease.id for lease in claimed] == [id_]


def test_four_workers_and_200_jobs(database: Database, queue_jobs: QueueJobs) -> None:
    """Together they get every job, and none of them twice."""
    ids = queue_jobs(200)
    barrier = threading.Barrier(4, timeout=30)

    def work(holder: str) -> list[int]:
        claimed: list[int] = []
        with database.dedicated() as conn:
            barrier.wait()
            while batch := leases.claim(conn, JOBS, holder=holder, ttl=TTL, limit=3):
                claimed += [lease.id for lease in batch]
        return claimed

    with ThreadPoolExecutor(4) as workers:
        claimed = [id_ for found in workers.map(work, "abcd") for id_ in found]

    assert sorted(claimed) == ids


def test_two_workers_and_one_run_out_lease(database: Database, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A row whose holder died is taken over once, also when two notice at the same moment."""
    (id_,) = queue_jobs()
    with database.connection() as dead:
        leases.claim(dead, JOBS, holder="dead", ttl=TTL)
    move_clock(TTL * 2)
    barrier = threading.Barrier(2, timeout=30)

    def compete(holder: str) -> list[Lease]:
        with database.dedicated() as conn:
            barrier.wait()
            return leases.claim(conn, JOBS, holder=holder, ttl=TTL)

    with ThreadPoolExecutor(2) as workers:
        claimed = [lease for found in workers.map(compete, "ab") for lease in found]

    assert [(lease.id, lease.fence, lease.attempt) for lease in claimed] == [(id_, 2, 2)]


def test_renewal_against_a_claim(database: Database, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A renewal that waits for a claim's lock finds the fence raised: the row has one holder afterwards."""
    queue_jobs()
    with database.connection() as conn:
        (old,) = leases.claim(conn, JOBS, holder="old", ttl=TTL)
    move_clock(TTL * 2)
    outcome: list[str] = []

    def renew_late() -> None:
        with database.dedicated() as conn:
            try:
                leases.renew(conn, old)
                outcome.append("renewed")
            except LeaseLostError:
                outcome.append("lost")

    late = threading.Thread(target=renew_late)
    with database.dedicated() as conn, database.dedicated() as watch:
        with conn.transaction():
            (new,) = leases.claim(conn, JOBS, holder="new", ttl=TTL)
            late.start()
            wait_until_one_waits(watch)
        late.join(30)
        leases.renew(conn, new)

    assert outcome == ["lost"]


def test_holder_that_stops_in_its_transaction(database: Database, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A worker that stands still inside a transaction is thrown out by the server, and the row goes to another."""
    (id_,) = queue_jobs()
    hasty = Settings(imports=Rhythm(lease=timedelta(milliseconds=300)))

    def stand_still() -> None:
        with Database(database.conninfo, hasty).dedicated() as conn, database.dedicated() as other:
            (lease,) = leases.claim(conn, JOBS, holder="stopped", ttl=TTL)
            with leases.fenced(conn, lease):
                move_clock(TTL * 2, other)
                taken.extend(claim_within_half_a_minute(other))
                conn.execute("select 1")

    taken: list[Lease] = []
    with pytest.raises(DatabaseError, match="idle-in-transaction"):
        stand_still()

    assert [(lease.id, lease.attempt) for lease in taken] == [(id_, 2)]


def claim_within_half_a_minute(conn: Connection) -> list[Lease]:
    """Claim until there is something to claim."""
    deadline = time.monotonic() + 30
    while not (claimed := leases.claim(conn, JOBS, holder="other", ttl=TTL)):
        assert time.monotonic() < deadline
    return claimed


def wait_until_one_waits(conn: Connection) -> None:
    """Return when some session of this database waits for a lock; fail after half a minute."""
    waiting = (
        "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
    )
    deadline = time.monotonic() + 30
    while conn.execute(waiting).fetchone() != {"exists": True}:
        assert time.monotonic() < deadline, "nobody came to wait for a lock"
