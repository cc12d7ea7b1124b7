"""The server restarts while a task runs: what was committed stands, and the same attempt goes on."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from importer.db import Database, EmbeddedServer, migrate
from importer.errors import DatabaseUnavailableError
from importer.lease import holder_name
from importer.settings import Settings
from importer.task_run import Context, Task, enqueue, enqueue_many, task_run, tasks, tasks_due
from tests.crash.task_run_victim import World
from tests.importing import calls_on
from tests.waiting import until


@pytest.fixture
def own_server() -> Iterator[tuple[EmbeddedServer, str]]:
    """Give a server of the test's own that may be killed, with a migrated database."""
    folder = Path(tempfile.mkdtemp(prefix="rowlease-"))
    server = EmbeddedServer(folder)
    address = server.url()
    with Database(address, Settings()) as db:
        migrate(db)
    yield server, address
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def restart(server: EmbeddedServer) -> None:
    """Shut the server down at once, losing what was not committed, and start it again."""
    pid = int((server.folder / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGQUIT)
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    server.url()


@pytest.mark.parametrize("point", ["step ran", "operation begun", "operation done", "operation committing"])
def test_a_task_goes_on_over_a_restart(own_server: tuple[EmbeddedServer, str], tmp_path: Path, point: str) -> None:
    """Steps and operations are written once the server is back, in the same attempt; the operation happened once."""
    server, address = own_server
    world = World(tmp_path / "world.txt")

    def going(ctx: Context) -> list[str]:
        return [ctx.step("first", lambda: "stored"), ctx.once("act", world.do)]

    goes = Task(name="goes", version=1, function=going)
    with Database(address, Settings()) as db:
        run = enqueue(goes, db=db)
        with suppress(DatabaseUnavailableError):  # of the next claim; the worker's loop goes on
            tasks_due(db, holder_name("task"), tasks=[goes], at=calls_on(point, 1, lambda: restart(server)))
        found = task_run(run, db=db)

    assert (found.status, found.result, found.attempt_count) == ("succeeded", ["stored", "done"], 1)
    assert world.happened() == {f"task-run-{run}:act": 1}


def test_gathered_ends_are_written_after_a_restart(own_server: tuple[EmbeddedServer, str], tmp_path: Path) -> None:
    """A restart in the middle of a drain repeats nothing: the ends wait for the server and are written."""
    server, address = own_server
    world = World(tmp_path / "world.txt")
    tiny = Task(name="tiny", version=1, function=lambda ctx: world.act(str(ctx.run_id)))
    with Database(address, Settings()) as db:
        enqueue_many(tiny, range(600), db=db)
        at = calls_on("finishing", 3, lambda: restart(server))
        while any(not each.ended for each in tasks(db=db)):
            with suppress(DatabaseUnavailableError):  # a claim may meet the restart; the worker's loop goes on
                tasks_due(db, holder_name("task"), tasks=[tiny], at=at)
        assert {each.status for each in tasks(db=db)} == {"succeeded"}

    assert (len(world.happened()), max(world.happened().values())) == (600, 1)
