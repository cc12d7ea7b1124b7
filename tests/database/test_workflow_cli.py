"""`rowlease workflow` and `rowlease approvals`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.workflows import flow, node

ASKED = flow(
    node("ask", "approval", question="Load {{n}}?", who=["Ada"], limit={"days": 2}),
    node("say", "log", message="{{answer.choice}} by {{answer.by}}"),
    node("end", "end"),
    ways=[("ask", "say"), ("say", "end")],
    name="budget",
)


@pytest.fixture
def rowlease(
    capsys: pytest.CaptureFixture[str], conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """Run commands on the test's database."""
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data"))
    return CommandLine(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write the workflow as a file."""
    file = tmp_path / "budget.json"
    file.write_text(json.dumps(ASKED.to_dict()), encoding="utf-8")
    return file


def test_from_a_file_to_the_answer(rowlease: CommandLine, path: Path) -> None:
    """Started, asked, answered, shown: each with what to do next."""
    started = rowlease("workflow", "start", path, "--set", "n=5", "--key", "march")
    asked = rowlease("approvals", "list", "--who", "Ada")
    why = rowlease("workflow", "why", 1)
    answered = rowlease("approvals", "answer", 1, "approve", "--by", "Ada", "--note", "fine")
    shown = rowlease("workflow", "show", 1)

    assert [each.code for each in (started, asked, why, answered, shown)] == [0] * 5
    assert started.out.startswith("Workflow instance 1 is running.\n  ask waits since ")
    assert "Load 5?" in asked.out
    assert "No worker listens now" in why.out
    assert answered.out == "Approval 1 is answered: approve.\n"
    assert "Workflow instance 1 (budget v1) is completed" in shown.out
    assert "approve by Ada" in shown.out


def test_lists_as_json(rowlease: CommandLine, path: Path) -> None:
    """Keys are those of the values of the front door."""
    rowlease("workflow", "store", path)
    rowlease("workflow", "start", "budget", "--set", 'n={"a": 1}')

    (instance,) = rowlease("workflow", "list", "--json").json()
    (approval,) = rowlease("approvals", "list", "--json").json()
    (stored,) = rowlease("workflow", "stored", "--json").json()

    assert (instance["workflow"], instance["variables"], instance["waits"][0]["kind"]) == (
        "budget", {"n": {"a": 1}}, "approval",
    )  # fmt: skip
    assert (approval["question"], approval["choices"]) == ('Load {"a": 1}?', ["approve", "reject"])
    assert (stored["name"], stored["version"], stored["running"]) == ("budget", 1, 1)
    assert rowlease("workflow", "show", 1, "--json").json()["history"][0]["what"] == "started"
    assert rowlease("workflow", "why", 1, "--json").json()["workers"] == 0


def test_cancel_disable_and_what_is_refused(rowlease: CommandLine, path: Path) -> None:
    """A refusal is 2 and one sentence."""
    rowlease("workflow", "start", path, "--set", "n=5")
    cancelled = rowlease("workflow", "cancel", 1, "--by", "Bo")
    late = rowlease("approvals", "answer", 1, "approve", "--by", "Ada")
    rowlease("workflow", "disable", "budget")
    disabled = rowlease("workflow", "start", "budget")
    again = rowlease("workflow", "retry", 1)
    broken = rowlease("workflow", "start", "budget", "--set", "n")

    assert cancelled.out == "Workflow instance 1 is cancelled; work done stays.\n"
    assert [each.code for each in (late, disabled, again, broken)] == [2] * 4
    assert "it was cancelled at" in late.err
    assert "no workflow 'budget' is stored and enabled" in disabled.err
    assert "only a failed instance can be set running again" in again.err
    assert "a name, = and a value are wanted" in broken.err


def test_check_needs_no_database(rowlease: CommandLine, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All problems at once, or that it is well; or its diagram."""
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    well = rowlease("workflow", "check", path)
    drawn = rowlease("workflow", "check", path, "--diagram")
    path.write_text('{"name": "x", "start": "a", "nodes": [{"id": "b", "type": "timr"}]}', encoding="utf-8")
    broken = rowlease("workflow", "check", path)

    assert well.out == "The workflow budget can be stored: 3 nodes, 2 connections.\n"
    assert drawn.out.startswith("```mermaid\nflowchart TD")
    assert broken.code == 2
    assert "there is no type 'timr' (is timer meant?)" in broken.err
    assert "there is no node 'a'" in broken.err


def test_nothing_is_said(rowlease: CommandLine) -> None:
    """In words."""
    assert rowlease("workflow").out == "There are no workflow instances.\n"
    assert rowlease("approvals").out == "There are no open questions.\n"
    assert rowlease("workflow", "stored").out == "There are no stored workflows.\n"
