"""A killed import resumes and never duplicates.

At each named point, at random points, with the server killed, with the worker frozen.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

import importer as im
from importer import import_job
from importer.db import Connection, Database, EmbeddedServer, migrate
from tests.crash.victim import Victim, with_lease
from tests.importing import assert_each_row_once, calls_on, form, site_workbook
from tests.waiting import until

MoveClock = Callable[..., None]

ROWS = 2000
BATCH = 200


@pytest.fixture
def victim(db: Database, tmp_path: Path) -> Victim:
    """Give a victim that imports ten batches."""
    path = site_workbook(tmp_path / "a.xlsx", ROWS)
    return Victim(
        conninfo=db.conninfo, settings=with_lease(db.settings, 300, max_attempts=1000), path=path, batch_rows=BATCH
    )


def only_job(conn: Connection) -> im.Job:
    """Give the one job there is."""
    (job,) = import_job.jobs(conn)
    return job


@pytest.mark.parametrize(
    ("point", "times", "committed"),
    [
        ("claimed", 1, 0),
        ("copying", 1, 0),
        ("copying", 4, 3),
        ("copied", 1, 0),
        ("copied", 6, 5),
        ("committed", 1, 1),
        ("committed", 7, 7),
        ("finishing", 1, 10),
    ],
)
def test_killed_at_a_named_point(
    victim: Victim, db: Database, move_clock: MoveClock, point: str, times: int, committed: int
) -> None:
    """What was committed stays, nothing else; another worker waits for the lease, then goes on to the end."""
    assert replace(victim, point=point, times=times).run() == -signal.SIGKILL

    with db.connection() as conn:
        left = assert_each_row_once(conn, only_job(conn).id, rows=ROWS)
    assert (left.status, left.cursor) == ("running", committed * BATCH)
    assert im.work(db=db)["import_jobs"] == 0

    move_clock(dt.timedelta(minutes=6))
    with Database(db.conninfo, db.settings) as later:
        assert im.work(db=later)["import_jobs"] == 1
        with later.connection() as conn:
            done = assert_each_row_once(conn, left.id, rows=ROWS)
            assert [attempt["how"] for attempt in import_job.attempts(conn, left.id)] == ["interrupted", "finished"]
    assert (done.status, done.started_at) == ("partial_success", left.started_at)


def killed_at_random(db: Database, tmp_path: Path, move_clock: MoveClock, *, kills: int, seed: int) -> dict[str, int]:
    """Kill imports at random moments until there were so many kills; after each, hold the promise.

    Count what happened.
    """
    dice = random.Random(seed)
    settings = with_lease(db.settings, 300, max_attempts=10_000)
    counts = {"kills": 0, "imports": 0, "in the middle": 0}
    hours = 0
    longest_s = 0.6
    while counts["kills"] < kills:
        counts["imports"] += 1
        path = site_workbook(tmp_path / f"{counts['imports']}.xlsx", ROWS, start=counts["imports"] * ROWS)
        wanted = Victim(conninfo=db.conninfo, settings=settings, path=path, batch_rows=50)
        job: im.Job | None = None
        while job is None or not job.ended:
            process = wanted.start()
            if counts["kills"] < kills:
                process.join(timeout=dice.uniform(0.0, longest_s))
                if process.is_alive():
                    process.kill()
                    counts["kills"] += 1
            process.join(timeout=60)
            with db.connection() as conn:
                found = [j for j in import_job.jobs(conn) if j.file_name == path.name]
                if found:
                    job = assert_each_row_once(conn, found[0].id, rows=ROWS)
                    counts["in the middle"] += 0 < job.cursor < ROWS
            hours += 1
            move_clock(dt.timedelta(hours=hours))
    return counts


def test_killed_at_60_random_points(db: Database, tmp_path: Path, move_clock: MoveClock) -> None:
    """After every kill the table, the faults and the cursor agree; in the end every row is there once."""
    counts = killed_at_random(db, tmp_path, move_clock, kills=60, seed=20261201)

    assert counts["in the middle"] >= 5, counts


@pytest.mark.soak
def test_killed_at_1000_random_points(db: Database, tmp_path: Path, move_clock: MoveClock) -> None:
    """The same, long."""
    counts = killed_at_random(db, tmp_path, move_clock, kills=1000, seed=random.randrange(2**32))

    print(counts)  # noqa: T201 - the figures of the soak


def frozen(victim: Victim, point: str, times: int) -> tuple[psutil.Process, Callable[[], int | None]]:
    """Start a victim and wait until it stands still at a point."""
    process = replace(victim, point=point, times=times, by=signal.SIGSTOP).start()
    assert process.pid is not None
    there = psutil.Process(process.pid)
    until(lambda: there.status() == psutil.STATUS_STOPPED)

    def end() -> int | None:
        there.resume()
        process.join(timeout=60)
        return process.exitcode

    return there, end


def test_a_worker_frozen_between_batches_writes_nothing_more(
    victim: Victim, db: Database, move_clock: MoveClock
) -> None:
    """Its lease runs out, another finishes the job, and when it wakes up its next batch is refused by the fence."""
    _, wake = frozen(victim, "committed", 3)
    move_clock(dt.timedelta(minutes=6))
    with Database(db.conninfo, db.settings) as later:
        assert im.work(db=later)["import_jobs"] == 1
        with later.connection() as conn:
            done = assert_each_row_once(conn, only_job(conn).id, rows=ROWS)

        assert wake() == 0

        with later.connection() as conn:
            assert assert_each_row_once(conn, done.id, rows=ROWS) == done


def test_a_worker_frozen_in_an_open_batch_holds_its_row_until_the_server_ends_it(victim: Victim, db: Database) -> None:
    """Nobody takes the row while the transaction is open; the server ends it after a third of the lease.

    Nothing of it stays.
    """
    _, wake = frozen(replace(victim, settings=with_lease(db.settings, 3)), "copied", 3)

    until(lambda: im.work(db=db)["import_jobs"] == 1)
    with db.connection() as conn:
        done = assert_each_row_once(conn, only_job(conn).id, rows=ROWS)

    assert wake() == 0
    with db.connection() as conn:
        assert assert_each_row_once(conn, done.id, rows=ROWS) == done
        assert len(import_job.attempts(conn, done.id)) == 2


@pytest.fixture
def own_server() -> Iterator[tuple[EmbeddedServer, str]]:
    """Give a server of the test's own that may be killed, with a migrated database."""
    folder = Path(tempfile.mkdtemp(prefix="rowlease-"))
    server = EmbeddedServer(folder)
    address = server.url()
    with Database(address, im.Settings()) as db:
        migrate(db)
    yield server, address
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def postmaster(server: EmbeddedServer) -> int:
    """Give the pid of a server."""
    return int((server.folder / "postmaster.pid").read_text().splitlines()[0])


def test_the_backend_is_killed_and_the_import_goes_on(own_server: tuple[EmbeddedServer, str], tmp_path: Path) -> None:
    """SIGKILL of the writing backend makes the server recover.

    The writer connects again and asks the cursor what was committed.
    """
    _, address = own_server
    path = site_workbook(tmp_path / "a.xlsx", ROWS)

    with Database(address, im.Settings(data_folder=tmp_path / "data")) as db:

        def kill() -> None:
            with psycopg.connect(address) as conn:
                (pid,) = conn.execute(
                    "select pid from pg_stat_activity "
                    "where state = 'idle in transaction' and application_name = 'rowlease'"
                ).fetchone() or (0,)
            os.kill(int(pid), signal.SIGKILL)

        job = im.import_workbook(path, form(), db=db, batch_rows=BATCH, progress=False, at=calls_on("copied", 4, kill))

        with db.connection() as conn:
            assert assert_each_row_once(conn, job.id, rows=ROWS).attempt_count == 1


@pytest.mark.parametrize("point", ["copying", "copied", "committed", "finishing"])
def test_the_server_restarts_and_the_import_goes_on(
    own_server: tuple[EmbeddedServer, str], tmp_path: Path, point: str
) -> None:
    """An immediate shutdown loses what was not committed and nothing else; nothing goes in twice."""
    server, address = own_server
    path = site_workbook(tmp_path / "a.xlsx", ROWS)

    def restart() -> None:
        pid = postmaster(server)
        os.kill(pid, signal.SIGQUIT)
        until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        server.url()

    with Database(address, im.Settings(data_folder=tmp_path / "data")) as db:
        times = 1 if point == "finishing" else 3
        job = im.import_workbook(
            path, form(), db=db, batch_rows=BATCH, progress=False, at=calls_on(point, times, restart)
        )

        with db.connection() as conn:
            assert assert_each_row_once(conn, job.id, rows=ROWS).attempt_count == 1


def test_who_waits_for_anothers_job_outlives_a_restart(own_server: tuple[EmbeddedServer, str], tmp_path: Path) -> None:
    """A job that somebody else runs is waited for; the server restarts meanwhile, and the waiting goes on."""
    server, address = own_server
    path = site_workbook(tmp_path / "a.xlsx", ROWS)
    settings = im.Settings(data_folder=tmp_path / "data")
    done: list[im.Job] = []
    began = threading.Event()

    with Database(address, settings) as db, Database(address, settings) as waiting:

        def wait_for_it() -> None:
            done.append(im.import_workbook(path, form(), db=waiting, progress=False, watch=lambda _r, _f: began.set()))

        other = threading.Thread(target=wait_for_it)

        def restart() -> None:
            other.start()
            assert began.wait(30)
            pid = postmaster(server)
            os.kill(pid, signal.SIGQUIT)
            until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
            server.url()

        job = im.import_workbook(
            path, form(), db=db, batch_rows=BATCH, progress=False, at=calls_on("committed", 3, restart)
        )
        other.join(timeout=60)

    assert [waited.status for waited in done] == [job.status]
