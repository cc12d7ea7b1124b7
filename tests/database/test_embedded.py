"""The embedded server: shared by processes, stopped by the last, and back after a crash."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from importer.db import EmbeddedServer
from importer.errors import DatabaseUnavailableError

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="signals and sockets of the tests are those of Unix; the server itself runs there"
)


@pytest.fixture
def data_folder() -> Iterator[Path]:
    """Give a data folder whose parents may be opened to other users, and end its server."""
    folder = Path(tempfile.mkdtemp(prefix="rowlease-"))
    yield folder
    EmbeddedServer(folder).stop()
    shutil.rmtree(folder)


def python(code: str, data_folder: Path) -> subprocess.Popen[str]:
    """Start a process that has no database but the embedded one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "DATABASE_URL"))}
    environment |= {"ROWLEASE_DATA_FOLDER": str(data_folder)}
    environment.pop("ROWLEASE_DATABASE_URL", None)
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


CONNECT = """
from importer.db import connect
with connect() as db, db.connection() as conn:
    print(conn.execute("select count(*) as n from rowlease.import_jobs").fetchone()["n"])
"""

START = """
import os, signal
from importer.db import EmbeddedServer
from importer.settings import Settings
print(EmbeddedServer(Settings.from_environment().data_folder).{call}())
{then}
"""


def test_two_processes_at_once(data_folder: Path) -> None:
    """Two programs that start together share one server, migrated once; when both are gone it is down."""
    processes = [python(CONNECT, data_folder) for _ in range(2)]

    outputs = [process.communicate(timeout=120) for process in processes]

    assert [(process.returncode, out) for process, (out, _) in zip(processes, outputs, strict=True)] == [
        (0, "0\n"),
        (0, "0\n"),
    ], outputs
    assert not EmbeddedServer(data_folder).status().running


def test_started_to_stay(data_folder: Path) -> None:
    """A server that was started by name outlives its process, and others that use it, until it is stopped."""
    server = EmbeddedServer(data_folder)

    python(START.format(call="start", then=""), data_folder).communicate(timeout=120)
    python(CONNECT, data_folder).communicate(timeout=120)
    status = server.status()

    assert (status.running, status.kept) == (True, True)
    assert (server.stop(), server.stop()) == (True, False)
    assert not server.status().running


def test_killed_user_is_struck_off(data_folder: Path) -> None:
    """A process that was killed leaves the server running; the next one to exit stops it nevertheless."""
    server = EmbeddedServer(data_folder)

    python(START.format(call="url", then="os.kill(os.getpid(), signal.SIGKILL)"), data_folder).communicate(timeout=120)
    left_running = server.status().running
    counted = json.loads((server.folder / ".handle_pids.json").read_text())
    python(CONNECT, data_folder).communicate(timeout=120)

    assert (left_running, len(counted)) == (True, 1)
    assert not server.status().running


def test_killed_server(data_folder: Path) -> None:
    """After a kill -9 of the server the same program gets a living address, and what was committed is there."""
    server = EmbeddedServer(data_folder)
    with psycopg.connect(server.url()) as conn:
        conn.execute("create table kept as select 42 as answer")
    pid = server.status().pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    with psycopg.connect(server.url()) as conn:
        assert conn.execute("select answer from kept").fetchone() == (42,)
    assert server.status().pid != pid


def test_folder_that_cannot_be(tmp_path: Path) -> None:
    """A data folder that cannot be made is one sentence."""
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(DatabaseUnavailableError, match="the data folder cannot be made"):
        EmbeddedServer(tmp_path / "file" / "folder").url()


def test_status_starts_nothing(tmp_path: Path) -> None:
    """Looking at a server that never was leaves no trace."""
    status = EmbeddedServer(tmp_path / "none").status()

    assert (status.running, status.url, status.pid) == (False, None, None)
    assert not (tmp_path / "none").exists()
