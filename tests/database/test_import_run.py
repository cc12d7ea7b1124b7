"""What runs outside hold: by the lease and by the attempt, never by what their orchestrator believes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import importer as im
from importer import import_job
from importer.db import Connection, Database
from importer.import_run import RunLease, due_of_form, newest_ended, run_leases

TTL = timedelta(seconds=60)
QueueJobs = Callable[..., list[int]]
MoveClock = Callable[..., None]


def claim(conn: Connection, run_ref: str) -> object:
    """Claim the next job for a run."""
    lease = import_job.claim(conn, holder=f"import:{run_ref}", ttl=TTL, run_ref=run_ref)
    assert lease is not None
    return lease


def test_a_run_that_holds_a_lease_is_live(conn: Connection, queue_jobs: QueueJobs) -> None:
    """Its newest attempt is open and its lease has time."""
    queue_jobs()
    claim(conn, "run-1")

    assert run_leases(conn, ["run-1"]).of("run-1") == RunLease(live=True, ran_out=False)


def test_a_run_that_never_claimed_holds_and_lost_nothing(conn: Connection) -> None:
    """Nothing is known of it."""
    assert run_leases(conn, ["run-1"]).of("run-1") == RunLease(live=False, ran_out=False)


def test_a_run_whose_lease_ran_out_is_seen_before_anybody_claims(
    conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock
) -> None:
    """No rescuer is needed to tell."""
    queue_jobs()
    claim(conn, "run-1")
    move_clock(TTL * 2, conn)

    assert run_leases(conn, ["run-1"]).of("run-1") == RunLease(live=False, ran_out=True)


def test_a_run_whose_job_was_taken_over_ran_out(conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock) -> None:
    """The attempt of the first was cut off; the second is live."""
    queue_jobs()
    claim(conn, "run-1")
    move_clock(TTL * 2, conn)
    claim(conn, "run-2")

    leases = run_leases(conn, ["run-1", "run-2"])

    assert leases.of("run-1") == RunLease(live=False, ran_out=True)
    assert leases.of("run-2") == RunLease(live=True, ran_out=False)


def test_a_run_that_went_on_after_a_loss_has_not_run_out(
    conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock
) -> None:
    """Only its newest attempt counts: it lost one job, and works on the next."""
    queue_jobs(2)
    claim(conn, "run-1")
    move_clock(TTL * 2, conn)
    claim(conn, "run-2")
    lease = import_job.claim(conn, holder="import:run-1", ttl=TTL, run_ref="run-1")
    assert lease is not None
    import_job.hand_back(conn, lease)

    assert run_leases(conn, ["run-1"]).of("run-1") == RunLease(live=False, ran_out=False)


def test_the_due_jobs_of_a_form_come_in_the_order_of_the_claim(
    conn: Connection, queue_jobs: QueueJobs, move_clock: MoveClock
) -> None:
    """Priority first, then time; what is held or not yet due is left out, what ran out is in."""
    low, high = queue_jobs(priority=3) + queue_jobs(priority=0)
    queue_jobs(due_at="2999-01-01")

    before = due_of_form(conn, "queued")
    claim(conn, "run-1")
    during = due_of_form(conn, "queued")
    move_clock(TTL * 2, conn)

    assert before == [high, low]
    assert during == [low]
    assert due_of_form(conn, "queued") == [high, low]
    assert due_of_form(conn, "another") == []


def test_a_form_without_an_import_has_no_newest(conn: Connection, queue_jobs: QueueJobs) -> None:
    """Open jobs do not count."""
    queue_jobs()

    assert newest_ended(conn, "queued") is None


def test_run_due_goes_on_after_a_job_that_fails(db: Database, queue_jobs: QueueJobs) -> None:
    """Each job that was run is given with what became of it; one that cannot be run does not stop the others."""
    queue_jobs(3)  # they have no workbook

    ran = list(im.run_due(db, run_ref="run-1"))

    assert len(ran) == 3
    assert all(each.error is not None for each in ran)
    assert {each.job.run_ref for each in ran} == {"run-1"}
    assert im.due(db=db) == 0


def test_run_due_stops_when_its_time_is_over(db: Database, queue_jobs: QueueJobs) -> None:
    """No job is claimed after that; what is left stays due."""
    queue_jobs(2)

    assert list(im.run_due(db, within=timedelta())) == []
    assert im.due(db=db) == 2


def test_run_due_of_a_form_leaves_the_others(db: Database, queue_jobs: QueueJobs) -> None:
    """Only the form's own due jobs are claimed."""
    queue_jobs(2)

    assert list(im.run_due(db, form="another")) == []
    assert len(list(im.run_due(db, form="queued", limit=1))) == 1
