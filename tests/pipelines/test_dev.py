"""`make dev` by itself: a server of its own, and Ctrl-C in the middle of an import."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import importer as im
from importer.db import EmbeddedServer
from pipelines.dev import free_port
from tests.house.project import ROOT
from tests.importing import form, site_workbook
from tests.pipelines.stack import Stack, find, gone


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that the server's own user may enter, which pytest's is not."""
    made = Path(tempfile.mkdtemp(prefix="rowlease-dev-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_ctrl_c_in_the_middle_leaves_no_process_and_loses_no_row(folder: Path, tmp_path: Path) -> None:
    """The import is given back with its committed rows, the server is stopped, and the next start goes on."""
    stack = Stack(folder, lease_s=60, ROWLEASE_IMPORTS_BATCH_ROWS="50")
    definition = form(name="plain_report", table="plain_reports")
    (stack.forms / "plain_report.yaml").write_text(yaml.safe_dump(definition.to_dict()))
    settings = im.Settings(data_folder=folder / "data", store_folder=folder / "data" / "store")
    stack.start()
    family = stack.family()
    url = EmbeddedServer(settings.data_folder).status().url
    assert url is not None
    with im.connect(url, settings) as db:
        job = im.submit(site_workbook(tmp_path / "a.xlsx", 20_000), definition, db=db, create_table=True)
        find(lambda: im.job(job, db=db).cursor or None, deadline_s=90, every_s=0.02)
        family += stack.family()

    code = stack.interrupt()

    assert code == 0
    assert gone(family) == []
    assert not EmbeddedServer(settings.data_folder).status().running
    with im.connect(settings=settings) as db:
        left = im.job(job, db=db)
        with db.connection() as conn:
            (rows,) = conn.execute("select count(*) as rows from plain_reports").fetchall()
        assert left.status == "pending"
        assert 0 < left.success_rows < 20_000
        assert rows["rows"] == left.success_rows
        im.work(db=db)
        assert im.job(job, db=db).cursor == 20_000
    EmbeddedServer(settings.data_folder).stop()


def test_a_database_that_does_not_answer_is_said_in_a_sentence(tmp_path: Path) -> None:
    """Nothing is started, and no traceback is shown."""
    environment = {**os.environ, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}

    started = subprocess.run(
        [sys.executable, "-m", "pipelines.dev", "--home", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert started.returncode == 1
    assert started.stderr.startswith("make dev: no connection to database none at 127.0.0.1:1")
    assert "Traceback" not in started.stderr


def test_a_port_that_is_taken_is_passed_over() -> None:
    """The next free one is used, and said."""
    first = free_port(41_000)
    with a_listener(first):
        assert free_port(first) != first


def a_listener(port: int) -> socket.socket:
    """Take a port."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken
