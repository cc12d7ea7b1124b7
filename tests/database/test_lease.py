"""The lease: who may write a row, when, and what happens to a holder that comes too late."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from importer import lease as leases
from importer.db import Connection, Database, errors, statements
from importer.errors import LeaseLostError
from importer.lease import Lease, Leased

JOBS = Leased.IMPORT_JOBS
TTL = timedelta(seconds=60)
LATER = timedelta(seconds=61)

QueueJobs = Callable[..., list[int]]
MoveClock = Callable[..., None]


def claim_one(conn: Connection, holder: str = "import:here:1:a", ttl: timedelta = TTL) -> Lease:
    """Claim the first due job."""
    (lease,) = leases.claim(conn, JOBS, holder=holder, ttl=ttl)
    return lease


def row_of(conn: Connection, id_: int) -> dict[str, Any]:
    """Return the leased columns of a job."""
    row = conn.execute(
        "select id, status, due_at, priority, fence, holder, lease_until, attempt_count, last_heartbeat_at, last_error,"
        " started_at, finished_at from rowlease.import_jobs where id = %s",
        [id_],
    ).fetchone()
    assert row is not None
    return row


def test_claim(conn: Connection, queue_jobs: QueueJobs) -> None:
    """A claim writes holder, term, attempt and first start, by the clock of the database."""
    (id_,) = queue_jobs()

    lease = claim_one(conn)

    row = row_of(conn, id_)
    assert (lease.id, lease.fence, lease.attempt, lease.ttl) == (id_, 1, 1, TTL)
    assert (row["status"], row["fence"], row["holder"], row["attempt_count"]) == ("running", 1, "import:here:1:a", 1)
    assert row["lease_until"] - row["started_at"] == TTL
    assert row["last_heartbeat_at"] == row["started_at"]


def test_claim_in_order(conn: Connection, queue_jobs: QueueJobs) -> None:
    """Priority first, then due time, then age; what is not due yet, or never, is left."""
    early, late = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
    (third,) = queue_jobs(due_at=late)
    (second,) = queue_jobs(due_at=early)
    (first,) = queue_jobs(due_at=late, priority=0)
    (fifth,) = queue_jobs(due_at=early, priority=3)
    (fourth,) = queue_jobs(due_at=late)
    queue_jobs(due_at=datetime(2999, 1, 1, tzinfo=UTC), priority=0)

    claimed = leases.claim(conn, JOBS, holder="h", ttl=TTL, limit=10)

    assert [lease.id for lease in claimed] == [first, second, third, fourth, fifth]


def test_limit(conn: Connection, queue_jobs: QueueJobs) -> None:
    """No more rows than asked for are taken or locked."""
    queue_jobs(5)

    claimed = leases.claim(conn, JOBS, holder="h", ttl=TTL, limit=2)

    held = conn.execute("select count(*) as n from rowlease.import_jobs where status = 'running'").fetchone()
    assert len(claimed) == 2
    assert held == {"n": 2}


def test_expired_lease_is_claimed(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A lease that ran out is due again: next fence, next attempt, first start kept, before what waits."""
    (id_,) = queue_jobs()
    claim_one(conn, "import:dead:1:a")
    started = row_of(conn, id_)["started_at"]
    queue_jobs()

    move_clock(LATER, conn)
    lease = claim_one(conn, "import:alive:2:b")

    row = row_of(conn, id_)
    assert (lease.id, lease.fence, lease.attempt) == (id_, 2, 2)
    assert (row["holder"], row["started_at"]) == ("import:alive:2:b", started)


def test_lease_that_stands_is_left(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """Until its time is up nobody takes the row, and a renewal moves that time."""
    queue_jobs()
    lease = claim_one(conn)

    move_clock(TTL / 2, conn)
    leases.renew(conn, lease)
    move_clock(LATER, conn)

    assert leases.claim(conn, JOBS, holder="h", ttl=TTL) == []


def test_exhausted(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A row whose lease ran out at its last attempt is not claimed but failed, with a message."""
    (id_,) = queue_jobs(max_attempts=2, attempt_count=1, last_error="the store was unreachable")
    claim_one(conn)
    move_clock(LATER, conn)

    claimed_before = leases.claim(conn, JOBS, holder="h", ttl=TTL)
    failed = leases.fail_exhausted(conn, JOBS)

    row = row_of(conn, id_)
    assert claimed_before == []
    assert [(found["id"], found["fence"]) for found in failed] == [(id_, 2)]
    assert (row["status"], row["fence"], row["holder"], row["due_at"]) == ("failed", 2, None, None)
    assert row["finished_at"] is not None
    assert row["last_error"] == (
        "the worker did not come back: its lease ran out in attempt 2 of 2; the error before: the store was unreachable"
    )


def test_exhausted_but_locked(
    database: Database, conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock
) -> None:
    """A row at its last attempt that works inside an open transaction is passed over, not failed."""
    (id_,) = queue_jobs(max_attempts=1)
    lease = claim_one(conn)

    with database.connection() as other, leases.fenced(conn, lease):
        move_clock(LATER, other)
        failed = leases.fail_exhausted(other, JOBS)

    assert failed == []
    assert row_of(conn, id_)["status"] == "running"


def test_graceful_stops(conn: Connection, queue_jobs: QueueJobs) -> None:
    """Five graceful stops cost no attempt: the row stays claimable, due at once."""
    (id_,) = queue_jobs(max_attempts=5)

    for _ in range(5):
        leases.hand_back(conn, claim_one(conn))

    assert row_of(conn, id_)["attempt_count"] == 0
    assert claim_one(conn).attempt == 1


def test_retry_later(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """An error costs an attempt and a delay."""
    (id_,) = queue_jobs()

    status = leases.retry_later(conn, claim_one(conn), delay=timedelta(seconds=30), error="disk full")

    row = row_of(conn, id_)
    assert status == "pending"
    assert (row["attempt_count"], row["last_error"], row["holder"]) == (1, "disk full", None)
    assert leases.claim(conn, JOBS, holder="h", ttl=TTL) == []
    move_clock(timedelta(seconds=31), conn)
    assert claim_one(conn).attempt == 2


def test_retry_after_the_last_attempt(conn: Connection, queue_jobs: QueueJobs) -> None:
    """The error of the last attempt fails the row and stays with it."""
    (id_,) = queue_jobs(max_attempts=1)

    status = leases.retry_later(conn, claim_one(conn), delay=timedelta(seconds=30), error="disk full")

    row = row_of(conn, id_)
    assert status == "failed"
    assert (row["status"], row["last_error"], row["due_at"]) == ("failed", "disk full", None)
    assert row["finished_at"] is not None


def test_end(conn: Connection, queue_jobs: QueueJobs) -> None:
    """An ended row has its word, its time and no lease."""
    (id_,) = queue_jobs()

    leases.end(conn, claim_one(conn), status="failed", error="no such sheet")

    row = row_of(conn, id_)
    assert (row["status"], row["holder"], row["lease_until"], row["due_at"]) == ("failed", None, None, None)
    assert (row["last_error"], row["finished_at"] is None) == ("no such sheet", False)


def test_end_with_a_word_of_another_table(conn: Connection, queue_jobs: QueueJobs) -> None:
    """A row is ended only with a word of its own table."""
    queue_jobs()

    with pytest.raises(ValueError, match="'dispatched' ends no row of import_jobs"):
        leases.end(conn, claim_one(conn), status="dispatched")


@pytest.mark.parametrize("error", ["x" * 5000, "a\0b", "half \ud800 a pair"])
def test_any_error_can_be_kept(conn: Connection, queue_jobs: QueueJobs, error: str) -> None:
    """An error is never lost because of its length or its characters."""
    (id_,) = queue_jobs()

    leases.retry_later(conn, claim_one(conn), delay=TTL, error=error)

    kept = row_of(conn, id_)["last_error"]
    assert kept[0] == error[0]
    assert len(kept) == min(len(error), 2000)


# --- a stale holder writes nothing ------------------------------------------------------------------------------------


def taken_over(conn: Connection, lease: Lease, move_clock: MoveClock) -> None:
    """Its time ran out and another worker claimed the row."""
    move_clock(lease.ttl * 2, conn)
    claim_one(conn, "import:other:2:b")


def failed_exhausted(conn: Connection, lease: Lease, move_clock: MoveClock) -> None:
    """Its time ran out at the last attempt and the row was failed."""
    conn.execute("update rowlease.import_jobs set max_attempts = attempt_count where id = %s", [lease.id])
    move_clock(lease.ttl * 2, conn)
    assert len(leases.fail_exhausted(conn, JOBS)) == 1


def cancelled(conn: Connection, lease: Lease, move_clock: MoveClock) -> None:
    """Somebody cancelled the row and raised its fence."""
    del move_clock
    conn.execute(
        "update rowlease.import_jobs set status = 'cancelled', fence = fence + 1, holder = null, lease_until = null,"
        " finished_at = rowlease.clock(), due_at = null where id = %s",
        [lease.id],
    )


def handed_back_and_claimed(conn: Connection, lease: Lease, move_clock: MoveClock) -> None:
    """The holder gave the row back, and it is held again, by itself."""
    del move_clock
    leases.hand_back(conn, lease)
    claim_one(conn, lease.holder)


def ended(conn: Connection, lease: Lease, move_clock: MoveClock) -> None:
    """The holder ended the row, and says so twice."""
    del move_clock
    leases.end(conn, lease, status="failed")


def do_fenced(conn: Connection, lease: Lease) -> None:
    """Work under the lease."""
    with leases.fenced(conn, lease):
        conn.execute("update rowlease.import_jobs set success_rows = 1000 where id = %s", [lease.id])


def do_retry_later(conn: Connection, lease: Lease) -> None:
    """Report an error."""
    leases.retry_later(conn, lease, delay=TTL, error="late")


def do_end(conn: Connection, lease: Lease) -> None:
    """Report the end."""
    leases.end(conn, lease, status="failed", error="late")


@pytest.mark.parametrize("take", [taken_over, failed_exhausted, cancelled, handed_back_and_claimed, ended])
@pytest.mark.parametrize("write", [leases.renew, leases.hand_back, do_retry_later, do_end, do_fenced])
def test_stale_holder_writes_nothing(
    conn: Connection,
    queue_jobs: QueueJobs,
    move_clock: MoveClock,
    take: Callable[[Connection, Lease, MoveClock], None],
    write: Callable[[Connection, Lease], None],
) -> None:
    """Whatever took the lease away, every write of the old holder is refused and changes nothing."""
    (id_,) = queue_jobs()
    stale = claim_one(conn)
    take(conn, stale, move_clock)
    before = row_of(conn, id_)

    with pytest.raises(LeaseLostError) as caught:
        write(conn, stale)

    assert (caught.value.table, caught.value.id, caught.value.fence) == ("import_jobs", id_, stale.fence)
    assert row_of(conn, id_) == before


def test_late_but_not_taken(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A lease whose time is up is renewed as long as nobody took the row."""
    (id_,) = queue_jobs()
    lease = claim_one(conn)

    move_clock(LATER, conn)
    leases.renew(conn, lease)

    assert leases.claim(conn, JOBS, holder="h", ttl=TTL) == []
    assert row_of(conn, id_)["fence"] == lease.fence


def test_open_transaction_keeps_the_row(
    database: Database, conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock
) -> None:
    """A row inside an open fenced transaction is not taken when its time runs out; after the commit it may be."""
    (id_,) = queue_jobs()
    lease = claim_one(conn)

    with database.connection() as other:
        with leases.fenced(conn, lease):
            move_clock(LATER, other)
            during = leases.claim(other, JOBS, holder="import:other:2:b", ttl=TTL)
            during += leases.claim(other, JOBS, holder="import:other:2:b", ttl=TTL, id=id_)
        after = leases.claim(other, JOBS, holder="import:other:2:b", ttl=TTL)

    assert during == []
    assert [(found.id, found.attempt) for found in after] == [(id_, 2)]


def test_rollback_leaves_the_lease(conn: Connection, queue_jobs: QueueJobs) -> None:
    """Work that breaks off leaves the lease as it was before: not renewed, not lost."""
    (id_,) = queue_jobs()
    lease = claim_one(conn)
    before = row_of(conn, id_)

    with pytest.raises(errors.DivisionByZero), leases.fenced(conn, lease):
        conn.execute("select 1 / 0")

    assert row_of(conn, id_) == before
    leases.renew(conn, lease)


def test_claim_that_rolls_back(conn: Connection, queue_jobs: QueueJobs) -> None:
    """A claim in a transaction that breaks off never happened."""
    (id_,) = queue_jobs()
    before = row_of(conn, id_)

    with conn.transaction(force_rollback=True):
        claim_one(conn)

    assert row_of(conn, id_) == before


# --- one row by its id ------------------------------------------------------------------------------------------------


def test_claim_by_id(conn: Connection, queue_jobs: QueueJobs) -> None:
    """Somebody who wants this row gets it, due or not, and no other."""
    queue_jobs()
    (id_,) = queue_jobs(due_at=datetime(2999, 1, 1, tzinfo=UTC))

    (lease,) = leases.claim(conn, JOBS, holder="h", ttl=TTL, id=id_)

    assert (lease.id, lease.fence, lease.attempt) == (id_, 1, 1)


def test_claim_by_id_of_a_row_that_is_held(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """A held row is given out by id only when its lease ran out, and never after its last attempt."""
    (id_,) = queue_jobs(max_attempts=2)
    claim_one(conn)

    held = leases.claim(conn, JOBS, holder="h", ttl=TTL, id=id_)
    move_clock(LATER, conn)
    (run_out,) = leases.claim(conn, JOBS, holder="h", ttl=TTL, id=id_)
    move_clock(LATER * 2, conn)
    exhausted = leases.claim(conn, JOBS, holder="h", ttl=TTL, id=id_)

    assert (held, run_out.attempt, exhausted) == ([], 2, [])


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_claim_by_id_of_a_row_that_is_over(conn: Connection, queue_jobs: QueueJobs, status: str) -> None:
    """A row that ended is not given out."""
    (id_,) = queue_jobs()
    leases.end(conn, claim_one(conn), status=status)

    assert leases.claim(conn, JOBS, holder="h", ttl=TTL, id=id_) == []


# --- time, names, plans -----------------------------------------------------------------------------------------------


def test_host_clock_decides_nothing(conn: Connection, queue_jobs: QueueJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose host is an hour ahead or behind claims, renews and fails the same rows at the same times."""
    queue_jobs(2)
    real = time.time

    for ahead in (3600, -3600):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: real() + ahead)
        lease = claim_one(conn)
        leases.renew(conn, lease)
        row = conn.execute(
            "select lease_until - rowlease.clock() as left, started_at - statement_timestamp() as start"
            " from rowlease.import_jobs where id = %s",
            [lease.id],
        ).fetchone()
        assert row is not None
        assert TTL - timedelta(seconds=5) < row["left"] <= TTL
        assert abs(row["start"]) < timedelta(seconds=5)
    assert leases.fail_exhausted(conn, JOBS) == []


def test_clock(conn: Connection, move_clock: MoveClock) -> None:
    """The clock is the statement's time, moved by the setting of the session; empty is not moved."""
    ask = "select rowlease.clock() - statement_timestamp() as ahead"

    unset = conn.execute(ask).fetchone()
    move_clock(timedelta(hours=-2), conn)
    moved = conn.execute(ask).fetchone()
    conn.execute("set rowlease.clock_offset = ''")
    emptied = conn.execute(ask).fetchone()

    assert (unset, moved, emptied) == ({"ahead": timedelta()}, {"ahead": timedelta(hours=-2)}, {"ahead": timedelta()})


def test_clock_of_later_connections(database: Database, move_clock: MoveClock) -> None:
    """Moved for the database, the clock is moved for every connection opened later."""
    move_clock(timedelta(hours=1))

    with database.dedicated() as conn:
        row = conn.execute("select rowlease.clock() - statement_timestamp() as ahead").fetchone()

    assert row == {"ahead": timedelta(hours=1)}


def test_holder_is_not_shown(conn: Connection, queue_jobs: QueueJobs) -> None:
    """The holder stands in no message, in no text of a lease, and in no view."""
    queue_jobs()
    lease = claim_one(conn, "import:secret-host:1:a")

    with pytest.raises(LeaseLostError) as caught:
        leases.renew(conn, Lease(**{**vars(lease), "fence": 99}))
    shown = conn.execute(
        "select table_name from information_schema.columns"
        " join information_schema.views using (table_schema, table_name) where column_name = 'holder'"
    ).fetchall()

    assert "secret-host" not in str(caught.value) + repr(lease)
    assert shown == []


def test_holder_names_are_unique() -> None:
    """Two workers in one process are two holders."""
    first, second = leases.holder_name(), leases.holder_name("timer")

    assert first != second
    assert [first.split(":")[0], second.split(":")[0]] == ["import", "timer"]
    assert len(first.split(":")) == 4


def plan_nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all nodes of a plan, the outer ones first."""
    return [plan, *(node for child in plan.get("Plans", []) for node in plan_nodes(child))]


def test_claim_over_a_backlog_uses_its_indexes(database: Database, queue_jobs: QueueJobs) -> None:
    """A claim over 300,000 waiting rows reads its two partial indexes and never the table, whatever plan is cached."""
    text = leases._statement(JOBS, "claim").as_string()
    for name, number in {"limit": 1, "holder": 2, "ttl": 3}.items():
        text = text.replace(f"%({name})s", f"${number}")
    with database.connection() as conn:
        for index in ("import_jobs_identity", "import_jobs_content", "import_jobs_created"):
            conn.execute(f"drop index rowlease.{index}")  # only to fill the table faster
        queue_jobs(300_000)
        conn.execute("analyze rowlease.import_jobs")
        conn.execute(f"prepare backlog (bigint, text, interval) as {text}")

        for mode in ("force_custom_plan", "force_generic_plan"):
            conn.execute(f"set plan_cache_mode = {mode}")
            row = conn.execute("explain (format json) execute backlog (1, 'h', '60 seconds')").fetchone()

            assert row is not None
            nodes = plan_nodes(row["QUERY PLAN"][0]["Plan"])
            assert {node["Index Name"] for node in nodes if "Index Name" in node} == {
                "import_jobs_waiting",
                "import_jobs_run_out",
                "import_jobs_pkey",
            }
            assert [node["Alias"] for node in nodes if node["Node Type"] == "Seq Scan"] == []
            sorts = [node for node in nodes if node["Node Type"] in {"Sort", "Incremental Sort"}]
            assert not any("waiting" in str(node["Sort Key"]) for node in sorts)


def test_every_write_of_a_holder_names_its_fence() -> None:
    """A statement that a holder uses has id, fence and held status in its condition, and gives back what it found."""
    for name in ("renew", "hand_back", "retry_later", "end"):
        text = statements("lease")[name].as_string()
        condition = text[text.index("where") :]
        for part in ("id = %(id)s", "fence = %(fence)s", "status = {held}", "returning"):
            assert part in condition, name
