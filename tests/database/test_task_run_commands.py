"""`rowlease tasks ...` and `rowlease work --tasks`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine

_MODULE = """
import importer as im

@im.task(name="commands.greet", input=str)
def greet(ctx):
    return f"hello {ctx.input}, {ctx.wait_for('go').payload}"
"""


def test_a_task_from_the_command_line(
    conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Enqueued, run by `work`, signalled, shown, cancelled and retried by its number; errors are one sentence."""
    (tmp_path / "greeting_tasks.py").write_text(_MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data"))
    command = CommandLine(capsys)

    queued = command(
        "tasks", "enqueue", "commands.greet", "--input", '"ann"', "--key", "k", "--tasks", "greeting_tasks"
    )
    assert queued.out == "Task run 1 of commands.greet version 1.\n"
    assert "no worker has looked for work of commands.greet" in command("tasks").out
    command("work", "--once", "--tasks", "greeting_tasks")
    assert command("tasks", "list", "--json").json()[0]["state"] == "waiting"
    assert "stands since" in command("tasks", "signal", 1, "go", "--payload", '"there"').out
    command("work", "--once", "--tasks", "greeting_tasks")
    shown = command("tasks", "show", 1)
    assert "Task run 1: succeeded" in shown.out
    assert "hello ann, there" in shown.out

    second = command("tasks", "enqueue", "commands.greet", "--input", '"bob"', "--json").json()["id"]
    assert command("tasks", "cancel", second).out == f"Task run {second} is cancelled.\n"
    assert command("tasks", "retry", second, "--json").json()["status"] == "pending"
    assert command("tasks", "show", 99).err == "rowlease: there is no task run 99\n"
    refused = command("tasks", "enqueue", "commands.greet", "--input", "3")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "cannot be imported" in command("work", "--once", "--tasks", "no_such_module").err
