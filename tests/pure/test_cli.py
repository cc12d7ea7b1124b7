"""The command line without a database: its help, its refusals, `check`, and what it prints for programs."""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from importer.cli.arguments import parser
from tests.command_line import CommandLine, write_crews, write_form

COMMANDS = (
    "demo", "check", "import", "submit", "work", "jobs", "show", "faults", "cancel", "retry", "forms", "migrate", "db",
)  # fmt: skip


@pytest.fixture
def rowlease(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Run commands in an empty folder, with a database that does not answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/nothing?connect_timeout=2")
    return CommandLine(capsys)


def test_the_help_lists_every_command_and_the_exit_codes(rowlease: CommandLine) -> None:
    """`rowlease --help` is enough to begin with."""
    ran = rowlease("--help")

    assert ran.code == 0
    assert all(f"\n    {command} " in ran.out for command in COMMANDS)
    assert "0  all rows are in" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(rowlease: CommandLine, command: str) -> None:
    """Each option of each command has a help text."""
    ran = rowlease(command, "--help")

    assert ran.code == 0
    assert ran.out.startswith(f"usage: rowlease {command}")
    assert _wordless(parser()) == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("conquer",), ("check", "x.xlsx"), ("show", "0"), ("show", "one"), ("jobs", "--limit", "-1"), ("db",)],
)
def test_a_call_that_makes_no_sense_is_refused(rowlease: CommandLine, arguments: tuple[str, ...]) -> None:
    """Exit code 2, and the usage on standard error."""
    ran = rowlease(*arguments)

    assert ran.code == 2
    assert ran.out == ""
    assert "usage: rowlease" in ran.err


def test_a_good_sheet_is_0(rowlease: CommandLine, tmp_path: Path) -> None:
    """`check` of a sheet without faults says so."""
    path = write_crews(tmp_path / "march.xlsx", [("MUC", 4), ("LYS", 7)])

    ran = rowlease("check", path, "--form", write_form(tmp_path))

    assert (ran.code, ran.err) == (0, "")
    assert "every row is good" in ran.out


def test_rows_that_would_fail_are_1(rowlease: CommandLine, tmp_path: Path) -> None:
    """`check` names each bad cell with its sheet row, and what it could not check."""
    path = write_crews(tmp_path / "march.xlsx", [("MUC", 4), (None, "many")])

    ran = rowlease("check", path, "--form", write_form(tmp_path))

    assert ran.code == 1
    assert "1 row would fail" in ran.out
    assert "  3  site    required" in ran.out
    assert "  3  crew    type" in ran.out
    assert "Not checked" in ran.out


def test_check_prints_json_for_programs(rowlease: CommandLine, tmp_path: Path) -> None:
    """One JSON value with counts and faults."""
    path = write_crews(tmp_path / "march.xlsx", [("MUC", 4), ("LYS", -1)])

    checked = rowlease("check", path, "--form", write_form(tmp_path), "--json").json()

    assert (checked["rows"], checked["accepted_rows"], checked["failed_rows"]) == (2, 1, 1)
    assert [(fault["source_row"], fault["column"], fault["rule"]) for fault in checked["faults"]] == [
        (3, "crew", "range")
    ]


def test_faults_as_csv_do_not_run_in_a_spreadsheet(rowlease: CommandLine, tmp_path: Path) -> None:
    """A value that begins like a formula gets an apostrophe; a negative number stays one."""
    path = write_crews(tmp_path / "march.xlsx", [("MUC", "@SUM(1)"), ("LYS", -1), ("GOT", "=HYPERLINK(1)")])

    rowlease("check", path, "--form", write_form(tmp_path), "--csv", "faults.csv")

    with (tmp_path / "faults.csv").open(encoding="utf-8-sig", newline="") as file:
        values = {row["source_row"]: row["value"] for row in csv.DictReader(file)}
    assert values["2"] == "'@SUM(1)"
    assert values["3"] == "-1"
    assert values["4"].startswith("'=")


def test_csv_on_standard_output_is_nothing_but_csv(rowlease: CommandLine, tmp_path: Path) -> None:
    """`--csv -` can be piped."""
    path = write_crews(tmp_path / "march.xlsx", [(None, 4)])

    ran = rowlease("check", path, "--form", write_form(tmp_path), "--csv", "-")

    assert ran.out.splitlines()[0] == "source_row,column,rule,value,message"
    assert len(ran.out.splitlines()) == 2


def test_a_form_is_found_by_its_name(rowlease: CommandLine, tmp_path: Path) -> None:
    """`--form crew` is `forms/crew.yaml`."""
    (tmp_path / "forms").mkdir()
    write_form(tmp_path / "forms")
    path = write_crews(tmp_path / "march.xlsx", [("MUC", 4)])

    assert rowlease("check", path, "--form", "crew").code == 0


def test_a_missing_form_says_where_it_was_looked_for(rowlease: CommandLine, tmp_path: Path) -> None:
    """Exit code 2, one sentence with the folder."""
    path = write_crews(tmp_path / "march.xlsx", [("MUC", 4)])

    ran = rowlease("check", path, "--form", "crow")

    assert ran.code == 2
    assert str(tmp_path / "forms") in ran.err
    assert _is_one_sentence(ran.err)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.xlsx", None),
        ("empty.xlsx", b""),
        ("csv.xlsx", b"Site,Crew\nMUC,4\n"),
        ("cut.xlsx", b"PK\x03\x04 and no more"),
    ],
)
def test_what_is_no_workbook_is_2(rowlease: CommandLine, tmp_path: Path, name: str, content: bytes | None) -> None:
    """A missing, empty, other or broken file: one sentence that names it, no traceback."""
    if content is not None:
        (tmp_path / name).write_bytes(content)

    ran = rowlease("check", name, "--form", write_form(tmp_path))

    assert ran.code == 2
    assert name in ran.err
    assert _is_one_sentence(ran.err)


def test_a_form_with_a_typo_is_2(rowlease: CommandLine, tmp_path: Path) -> None:
    """All problems of the form in one sentence."""
    path = write_crews(tmp_path / "march.xlsx", [("MUC", 4)])
    form = write_form(tmp_path, columns=[{"name": "site", "title": "Site", "type": "txt", "requird": True}])

    ran = rowlease("check", path, "--form", form)

    assert ran.code == 2
    assert "txt" in ran.err
    assert "requird" in ran.err


@pytest.mark.parametrize("arguments", [("jobs",), ("show", "1"), ("migrate",), ("forms",), ("db", "status")])
def test_a_database_that_does_not_answer_is_3(rowlease: CommandLine, arguments: tuple[str, ...]) -> None:
    """Trying again may help: one sentence that names the address."""
    ran = rowlease(*arguments)

    assert ran.code == 3
    assert "127.0.0.1:9" in ran.err
    assert _is_one_sentence(ran.err)


def test_a_setting_that_cannot_be_used_is_2(rowlease: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the variable."""
    monkeypatch.setenv("ROWLEASE_IMPORTS_BATCH_ROWS", "0")

    ran = rowlease("jobs")

    assert ran.code == 2
    assert "ROWLEASE_IMPORTS_BATCH_ROWS" in ran.err


def test_a_csv_file_that_cannot_be_written_is_3(rowlease: CommandLine, tmp_path: Path) -> None:
    """The disk is of the world: one sentence that names the file."""
    path = write_crews(tmp_path / "march.xlsx", [(None, 4)])

    ran = rowlease("check", path, "--form", write_form(tmp_path), "--csv", "no/such/folder.csv")

    assert ran.code == 3
    assert "no/such/folder.csv" in ran.err
    assert _is_one_sentence(ran.err)


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """`rowlease forms show FILE | head -1` prints no traceback."""
    columns = [{"name": f"c{n}", "title": f"Column {n}", "type": "text"} for n in range(2_000)]
    form = write_form(tmp_path, columns=columns)
    command = [sys.executable, "-m", "importer.cli", "forms", "show", str(form)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()

    assert process.returncode == 0
    assert complaint == b""


def _is_one_sentence(complaint: str) -> bool:
    return complaint.startswith("rowlease: ") and len(complaint.splitlines()) == 1 and "Traceback" not in complaint


def _wordless(of: argparse.ArgumentParser) -> list[str]:
    found = []
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found += _wordless(child)
        elif not action.help:
            found.append(f"{of.prog} {'/'.join(action.option_strings) or action.dest}")
    return found
