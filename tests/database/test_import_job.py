"""Import jobs: submitting is idempotent, cancelling and stopping keep what was committed, failures have their way."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import importer as im
from importer import import_job
from importer.batch import run
from importer.db import Connection, Database, connect
from importer.import_job import Job
from importer.lease import holder_name
from importer.store import Store
from tests.importing import assert_each_row_once, calls_on, form, site_workbook, table_rows
from tests.waiting import until

MoveClock = Callable[..., None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a workbook of 1,000 rows, every 50th bad."""
    return site_workbook(tmp_path / "march.xlsx", 1000)


def import_it(db: Database, path: Path, how: im.Form | None = None, **options: object) -> Job:
    """Import with ten batches."""
    return im.import_workbook(path, how or form(), db=db, **{"batch_rows": 100, "progress": False, **options})  # type: ignore[arg-type]


def test_a_submitted_job_waits_and_is_worked_elsewhere(db: Database, path: Path) -> None:
    """Submitting reads nothing of the sheet; a worker creates no table unless told, and runs what is due."""
    job = im.submit(path, form(), db=db, create_table=True)
    path.write_bytes(b"edited after it was submitted")

    counts = im.work(db=db)

    assert (job.status, counts) == ("pending", {**counts, "import_jobs": 1})
    with db.connection() as conn:
        assert assert_each_row_once(conn, job.id, rows=1000).status == "partial_success"


def test_work_runs_at_most_the_limit(db: Database, tmp_path: Path) -> None:
    """Priorities first, then age."""
    jobs = [
        im.submit(
            site_workbook(tmp_path / f"{n}.xlsx", 5, start=n), form(), db=db, create_table=True, priority=priority
        )
        for n, priority in enumerate([3, 2, 0, 2])
    ]

    im.work(db=db, limit=2)

    assert [im.job(job.id, db=db).status for job in jobs] == ["pending", "success", "success", "pending"]


def test_submitting_twice_gives_the_job_that_waits(db: Database, path: Path) -> None:
    """It says which job, and when it was made."""
    first = im.submit(path, form(), db=db)

    second = im.submit(path, form(), db=db)

    assert second.id == first.id
    assert second.submitted_before is not None
    assert second.submitted_before.created_at == first.created_at


def test_submitting_in_the_callers_transaction(db: Database, path: Path, conninfo: str) -> None:
    """A rollback takes the job back, a commit makes it; the caller's own rows are tuples before and after."""
    with psycopg.connect(conninfo) as own:
        im.submit(path, form(), db=db, conn=own)  # type: ignore[arg-type] # any connection of psycopg 3 will do
        own.rollback()
        assert im.jobs(db=db) == ()

        im.submit(path, form(), db=db, conn=own)  # type: ignore[arg-type]
        assert own.execute("select 1").fetchone() == (1,)

    assert [job.status for job in im.jobs(db=db)] == ["pending"]


def test_one_notification_for_one_submission(db: Database, path: Path, conn: Connection) -> None:
    """A worker wakes once, and not at all for a file that was there."""
    conn.execute(import_job.LISTEN)

    im.submit(path, form(), db=db)

    assert len(list(conn.notifies(timeout=5, stop_after=1))) == 1
    assert list(conn.notifies(timeout=0)) == []


def test_the_same_key_with_other_input_shows_what_differs(db: Database, path: Path, tmp_path: Path) -> None:
    """With the same input it is the same job."""
    first = im.submit(path, form(), db=db, key="march")
    other = site_workbook(tmp_path / "other.xlsx", 3)

    assert im.submit(path, form(), db=db, key="march").id == first.id
    with pytest.raises(im.JobConflictError, match="content was") as conflict:
        im.submit(other, form(), db=db, key="march")

    assert conflict.value.id == first.id


def test_a_key_is_remembered_also_when_it_found_its_job(db: Database, path: Path, tmp_path: Path) -> None:
    """Several keys may name one job; each of them stays with its input."""
    first = im.submit(path, form(), db=db)
    other = site_workbook(tmp_path / "other.xlsx", 3)

    assert im.submit(path, form(), db=db, key="march").id == first.id
    assert im.submit(path, form(), db=db, key="again").id == first.id
    for key in ("march", "again"):
        with pytest.raises(im.JobConflictError, match="content was"):
            im.submit(other, form(), db=db, key=key)


def test_the_same_content_under_another_version_is_refused(db: Database, path: Path) -> None:
    """The earlier job has rows; the message names it and what to do."""
    first = import_it(db, path)

    with pytest.raises(im.JobConflictError, match="replace=True") as conflict:
        import_it(db, path, form(description="second version"))

    assert conflict.value.id == first.id


def test_a_replacing_import_takes_the_place_of_the_rows(db: Database, path: Path) -> None:
    """Its first transaction removes the old rows; the old job no longer counts as sent before."""
    first = import_it(db, path)

    second = import_it(db, path, form(description="second version"), replace=True)
    back = import_it(db, path, replace=True)

    assert im.job(first, db=db).replaced_by == second.id
    assert im.job(second, db=db).replaced_by == back.id
    assert len({first.id, second.id, back.id}) == 3
    with db.connection() as conn:
        assert {row["import_job_id"] for row in table_rows(conn)} == {back.id}
        assert_each_row_once(conn, back.id, rows=1000)


def test_replacing_cancels_a_job_that_is_open(db: Database, path: Path) -> None:
    """Whoever runs it stops at its next batch, and its rows go with the first transaction of the new job."""
    newer = form(description="second version")
    made: list[Job] = []
    first = import_it(
        db, path, at=calls_on("committed", 3, lambda: made.append(im.submit(path, newer, db=db, replace=True)))
    )

    im.work(db=db)

    assert first.status == "cancelled"
    with db.connection() as conn:
        assert_each_row_once(conn, made[0].id, rows=1000)
        assert {row["import_job_id"] for row in table_rows(conn)} == {made[0].id}


def test_a_disabled_form_takes_no_submission(db: Database, path: Path, conn: Connection) -> None:
    """Until it is enabled again; a new version of it stays disabled."""
    im.submit(path, form(), db=db)
    import_job.enable_form(conn, "site_report", enabled=False)

    with pytest.raises(im.FormDisabledError, match="site_report"):
        im.submit(path, form(), db=db)
    with pytest.raises(im.FormDisabledError):
        im.submit(path, form(description="newer"), db=db)

    import_job.enable_form(conn, "site_report", enabled=True)
    assert im.submit(path, form(), db=db).id == 1


def test_cancelling_takes_effect_at_the_next_batch(db: Database, path: Path) -> None:
    """Committed rows stay and are counted; the same file submitted again goes on from there."""
    job = import_it(db, path, at=calls_on("committed", 3, lambda: im.cancel(1, db=db)))

    assert (job.status, job.cursor) == ("cancelled", 300)
    with db.connection() as conn:
        assert_each_row_once(conn, job.id, rows=1000)

    again = import_it(db, path)

    assert again.id == job.id
    with db.connection() as conn:
        assert assert_each_row_once(conn, job.id, rows=1000).ended


def test_only_an_open_job_can_be_cancelled_and_only_an_unfinished_one_retried(db: Database, path: Path) -> None:
    """Each with a sentence that says why not."""
    job = import_it(db, path)

    with pytest.raises(im.JobStateError, match="has ended"):
        im.cancel(job, db=db)
    with pytest.raises(im.JobStateError, match="only a failed or cancelled"):
        im.retry(job, db=db)
    with pytest.raises(im.JobNotFoundError):
        im.job(999, db=db)


def test_a_graceful_stop_gives_the_job_back(db: Database, path: Path, conn: Connection) -> None:
    """Waiting at once, with its committed counts, and the attempt does not count."""
    job = im.submit(path, form(), db=db, create_table=True, batch_rows=100)
    committed: list[str] = []

    for _ in range(7):
        committed.clear()
        lease = import_job.claim(conn, holder=holder_name(), ttl=db.settings.imports.lease)
        assert lease is not None
        ran = run(
            db,
            lease,
            store=Store(db.settings.store),
            stopping=lambda: bool(committed),
            at=lambda point: committed.append(point) if point == "committed" else None,
        )
        if ran.job.ended:
            break
        assert (ran.job.status, ran.job.attempt_count, ran.error) == ("pending", 0, None)
        assert_each_row_once(conn, job.id, rows=1000)
    im.work(db=db)

    assert assert_each_row_once(conn, job.id, rows=1000).status == "partial_success"


def test_an_interrupt_gives_the_job_back_and_goes_on(db: Database, path: Path) -> None:
    """Stopping the cell: the job waits, the same call finishes it."""

    def interrupt(rows: int, _failed: int) -> None:
        if rows >= 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_it(db, path, watch=interrupt)
    stopped = im.jobs(db=db)[0]
    job = import_it(db, path)

    assert (stopped.status, stopped.attempt_count) == ("pending", 0)
    assert stopped.cursor >= 200
    assert job.submitted_before is not None
    with db.connection() as conn:
        assert assert_each_row_once(conn, job.id, rows=1000).status == "partial_success"


def stop_in_the_middle(db: Database, path: Path) -> Job:
    """Leave a job waiting with some batches committed."""

    def interrupt(rows: int, _failed: int) -> None:
        if rows >= 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_it(db, path, watch=interrupt)
    return im.jobs(db=db)[0]


def stored(db: Database, job: Job) -> Path:
    """Where the workbook of a job stands."""
    return Store(db.settings.store).path(job.content_hash)


def test_content_that_changed_in_the_store_fails_the_job(db: Database, path: Path, tmp_path: Path) -> None:
    """Rows and cursor stay, the lease is cleared, and the sentence says what to do."""
    job = stop_in_the_middle(db, path)
    place = stored(db, job)
    place.chmod(0o644)
    place.write_bytes(site_workbook(tmp_path / "other.xlsx", 2000).read_bytes())

    im.work(db=db)

    after = im.job(job, db=db)
    assert (after.status, after.cursor) == ("failed", job.cursor)
    assert "changed in the store" in (after.last_error or "")


def test_a_cursor_beyond_the_rows_fails_the_job(db: Database, path: Path, conn: Connection) -> None:
    """It cannot be the same content then."""
    job = stop_in_the_middle(db, path)
    conn.execute("update rowlease.import_jobs set skipped_rows = 5000 where id = %s", [job.id])

    im.work(db=db)

    after = im.job(job, db=db)
    assert after.status == "failed"
    assert "the sheet has only 1000" in (after.last_error or "")


def test_a_table_that_is_gone_fails_the_job(db: Database, path: Path, conn: Connection) -> None:
    """A worker says which table is missing."""
    job = im.submit(path, form(), db=db)

    im.work(db=db)

    after = im.job(job, db=db)
    assert after.status == "failed"
    assert "site_reports" in (after.last_error or "")
    assert import_job.attempts(conn, job.id)[-1]["how"] == "failed"


def test_a_store_that_cannot_be_reached_lets_the_job_wait(db: Database, path: Path, move_clock: MoveClock) -> None:
    """A failure of the world.

    Rows and cursor are kept, it is due again after the retry delay, and fails at the last attempt.
    """
    job = stop_in_the_middle(db, path)
    place = stored(db, job)
    away = place.rename(place.with_suffix(".away"))

    im.work(db=db)
    waiting = im.job(job, db=db)
    assert (waiting.status, waiting.attempt_count, waiting.cursor) == ("pending", 1, job.cursor)
    assert waiting.due_at is not None
    assert im.work(db=db)["import_jobs"] == 0

    for hour in range(1, 5):
        move_clock(dt.timedelta(hours=hour))
        with Database(db.conninfo, db.settings) as later:
            assert im.work(db=later)["import_jobs"] == 1
    failed = im.job(job, db=db)
    assert (failed.status, failed.attempt_count, failed.cursor) == ("failed", 5, job.cursor)

    away.rename(place)
    im.retry(job, db=db)
    with Database(db.conninfo, db.settings) as later:
        im.work(db=later)
    with db.connection() as conn:
        assert assert_each_row_once(conn, job.id, rows=1000).status == "partial_success"


def test_a_batch_that_takes_too_long_goes_in_parts(db: Database, tmp_path: Path, conn: Connection) -> None:
    """A batch may take a third of its lease; a slow table gets smaller ones, and every row is there once."""
    path = site_workbook(tmp_path / "a.xlsx", 200)
    im.import_workbook(path, form(), db=db, progress=False)
    conn.execute(
        """
        delete from site_reports;
        create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.003); return new; end';
        create trigger slow before insert on site_reports for each row execute function slow();
        """
    )
    hurried = replace(db.settings, imports=replace(db.settings.imports, lease=dt.timedelta(milliseconds=900)))
    points: list[str] = []

    with Database(db.conninfo, hurried) as quick:
        job = im.import_workbook(path, form(), db=quick, force=True, batch_rows=200, progress=False, at=points.append)

    assert points.count("committed") > 1
    assert_each_row_once(conn, job.id, rows=200)


def test_a_job_that_somebody_else_runs_is_waited_for(db: Database, path: Path) -> None:
    """`wait=False` gives it back as it is."""
    seen: list[Job] = []

    def look() -> None:
        seen.append(import_it(db, path, wait=False))

    job = import_it(db, path, at=calls_on("committed", 2, look))

    assert (seen[0].id, seen[0].status) == (job.id, "running")


def test_nobody_sees_a_holder(db: Database, path: Path, conn: Connection) -> None:
    """Not in views, jobs, frames, messages or pages, also while the job runs and when it was lost."""
    shown: list[str] = []

    def look() -> None:
        job = im.jobs(db=db)[0]
        shown.extend([repr(job), job._repr_html_(), repr(im.jobs(db=db)), im.jobs(db=db)._repr_html_()])
        holders.extend(row["holder"] for row in conn.execute("select holder from rowlease.import_jobs").fetchall())

    holders: list[str] = []
    job = import_it(db, path, at=calls_on("committed", 2, look))
    shown += [repr(job), str(im.faults(job, db=db)), str(import_job.attempts(conn, job.id))]
    views = conn.execute(
        "select column_name from information_schema.columns where table_name = 'import_jobs_seen'"
    ).fetchall()

    assert holders
    assert "holder" not in {row["column_name"] for row in views}
    assert not any(part in text for text in shown for part in (holders[0], holders[0].split(":")[-1], "holder"))


def test_a_user_who_may_only_read_is_told(db: Database, path: Path, conn: Connection, conninfo: str) -> None:
    """Checking works without any right; submitting says which right is missing, and nothing is written."""
    conn.execute("create role only_reads login")
    try:
        conn.execute("grant usage on schema rowlease to only_reads")
        conn.execute("grant select on all tables in schema rowlease to only_reads")
        with connect(f"{conninfo} user=only_reads", db.settings) as reader:
            with pytest.raises(im.DatabaseError, match="lacks the right"):
                im.import_workbook(path, form(), db=reader, progress=False)
            assert im.check(path, form()).accepted.height == 980
            assert im.jobs(db=reader) == ()
    finally:
        conn.execute("drop owned by only_reads; drop role only_reads")


def test_two_submissions_at_once_make_one_job(db: Database, path: Path) -> None:
    """The second waits for the first one's transaction and finds its job."""
    with db.dedicated() as first:
        with first.transaction():
            made = im.submit(path, form(), db=db, conn=first)
            second: list[Job] = []
            other = _thread(lambda: second.append(im.submit(path, form(), db=db)))
            until(lambda: _waits_for_a_lock(db))
        other.join(timeout=30)

    assert [job.id for job in second] == [made.id]


def _thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def _waits_for_a_lock(db: Database) -> bool:
    with db.connection() as conn:
        return bool(
            conn.execute("select 1 as one from pg_locks where not granted and locktype = 'advisory'").fetchall()
        )
