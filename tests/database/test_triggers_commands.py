"""`rowlease triggers ...`, `rowlease fire` and `rowlease alerts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine


def test_triggers_from_the_command_line(
    conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Put from a file, listed, fired, shown, switched and removed; an alert sets the exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data"))
    command = CommandLine(capsys)
    file = tmp_path / "triggers.yaml"
    file.write_text("- {name: orders, type: event, config: {event: order}, max_attempts: 1}\n", encoding="utf-8")

    assert command("triggers", "put", file).out == "1 trigger: orders\n"
    assert command("alerts").out == "Nothing is wrong.\n"
    assert command("fire", "order", "--payload", '{"sum": 3}', "--key", "k").out.startswith("order is said")
    command("work", "--once")
    assert command("triggers", "list", "--json").json()[0]["fire_count"] == 1
    assert "key k" in command("triggers", "show", "orders").out
    assert command("triggers", "disable", "orders").out == "Trigger orders is disabled.\n"
    assert command("triggers", "enable", "orders", "--json").json()["status"] == "idle"

    file.write_text(file.read_text().replace("}, max", "}, condition: '{{payload.no}} > 1', max"), encoding="utf-8")
    command("triggers", "put", file)
    command("fire", "order", "--payload", "{}")
    command("work", "--once")
    found = command("alerts", "--json")
    assert (found.code, found.json()[0]["key"]) == (1, "trigger_disabled: orders")
    assert command("triggers", "remove", "orders").out == "orders is removed.\n"
    assert command("triggers", "show", "orders").err == "rowlease: trigger orders: there is no such trigger\n"
    assert command("fire", "order", "--payload", "{").code == 2
