"""A killed worker leaves a firing whole or not at all: at each named point, and at random ones.

Every history stays legal.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from importer import import_job
from importer.db import Connection, Database
from tests.crash.walker import Walker, patient
from tests.importing import form
from tests.workflow_checker import check_all

MoveClock = Callable[..., None]


@pytest.fixture
def folder(conn: Connection, tmp_path: Path) -> Path:
    """Store the form, and give a folder for workbooks."""
    one = form()
    import_job.store_form(conn, one.to_dict(), name=one.name, digest=one.digest)
    return tmp_path


def walker(db: Database, folder: Path, keys: int, **how: object) -> Walker:
    """Make a walker that starts the newest three of so many instances, unless they are there, and moves all."""
    settings = patient(db.settings)
    newest = tuple(range(max(0, keys - 3), keys))
    return Walker(conninfo=db.conninfo, settings=settings, keys=newest, folder=folder, **how)  # type: ignore[arg-type]


def checked(db: Database) -> Counter[str]:
    """Check every history; return the instances by status.

    Attempts at messages are forgotten, for none is to die of so many kills.
    """
    with db.connection() as conn:
        conn.execute("update rowlease.outbox_messages set attempt_count = 0 where status in ('pending', 'delivering')")
        return check_all(conn)


def finish(db: Database, folder: Path, keys: int, move_clock: MoveClock, hours: int) -> int:
    """Let walkers that nobody kills bring every instance to its end; return how many there were."""
    statuses: Counter[str] = Counter()
    for more in range(1, 40):
        move_clock(timedelta(hours=hours + more * 2))
        assert walker(db, folder, keys, seed=more).run() == 0
        statuses = checked(db)
        if set(statuses) == {"completed"}:
            return statuses["completed"]
    raise AssertionError(f"instances do not end: {statuses}")


POINTS = (
    "claimed", "locked", "advanced", "written", "ended", "committed",
    "answer locked", "answer advanced", "answer written", "answer committed",
    "message claimed", "message locked", "message advanced", "message written", "message committed",
    "message delivered",
)  # fmt: skip


def test_killed_at_every_named_point(db: Database, folder: Path, move_clock: MoveClock) -> None:
    """All of the firing or nothing; the next worker goes on from there, and no step is lost or recorded twice."""
    keys, minutes = 0, 0
    for point in POINTS:
        ended = 0
        for seed in range(10):
            keys += 2
            minutes += 65
            move_clock(timedelta(minutes=minutes))
            ended = walker(db, folder, keys, point=point, seed=seed).run()
            if ended:
                break
        assert ended == -signal.SIGKILL, point
        checked(db)

    finish(db, folder, keys, move_clock, minutes // 60 + 1)


def killed_at_random(db: Database, folder: Path, move_clock: MoveClock, *, kills: int, seed: int) -> Counter[str]:
    """Kill walkers at random moments until there were so many kills; after each, every history is legal."""
    dice = random.Random(seed)
    done: Counter[str] = Counter()
    keys, minutes = 4, 0
    while done["kills"] < kills:
        process = walker(db, folder, keys, seed=dice.randrange(2**32)).start()
        process.join(timeout=dice.uniform(0.02, 0.4))
        if process.is_alive():
            process.kill()
            done["kills"] += 1
        process.join(timeout=60)
        statuses = checked(db)
        done["in the middle"] += statuses["running"] > 0
        if statuses["running"] < 3:
            keys += 2
        minutes += 35
        move_clock(timedelta(minutes=minutes))
    done["instances"] = finish(db, folder, keys, move_clock, minutes // 60)
    return done


def test_killed_at_60_random_points(db: Database, folder: Path, move_clock: MoveClock) -> None:
    """Forks, joins, timers, approvals and imports, killed anywhere: in the end every instance is complete."""
    done = killed_at_random(db, folder, move_clock, kills=60, seed=20261201)

    assert done["in the middle"] >= 20, done
    assert done["instances"] > 4, done


@pytest.mark.soak
def test_killed_at_1000_random_points(db: Database, folder: Path, move_clock: MoveClock) -> None:
    """The same, long."""
    kills = int(os.environ.get("ROWLEASE_SOAK_ROUNDS", "1000"))

    done = killed_at_random(db, folder, move_clock, kills=kills, seed=random.randrange(2**32))

    print(dict(done))  # noqa: T201 - the figures of the soak
