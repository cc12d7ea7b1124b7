"""The command line on a database: what each command does there, prints, and answers as exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import importer as im
from importer.db import Connection, Database
from tests.command_line import CommandLine, write_crews, write_form

GOOD = [("MUC", 4), ("LYS", 7), ("GOT", 12)]
#: The second row lacks its site, the third has no number.
BAD = [("MUC", 4), (None, 7), ("GOT", "a dozen")]


@pytest.fixture
def rowlease(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, conninfo: str, tmp_path: Path
) -> CommandLine:
    """Run commands on the test's own database and store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data-folder"))
    monkeypatch.setenv("ROWLEASE_IMPORTS_START_DELAY_S", "0.01")
    return CommandLine(capsys)


@pytest.fixture
def form(tmp_path: Path) -> Path:
    """Return the file of the form of crews."""
    return write_form(tmp_path)


def _crews(conn: Connection) -> list[tuple[str, int]]:
    return [(row["site"], row["crew"]) for row in conn.execute("select site, crew from crews order by source_row")]


def test_import_of_good_rows_is_0(rowlease: CommandLine, form: Path, tmp_path: Path, conn: Connection) -> None:
    """All rows are in the table, and the output says so."""
    ran = rowlease("import", write_crews(tmp_path / "march.xlsx", GOOD), "--form", form, "--quiet")

    assert (ran.code, ran.err) == (0, "")
    assert "rows in   3 of 3 rows" in ran.out
    assert _crews(conn) == GOOD


def test_import_of_bad_rows_is_1(rowlease: CommandLine, form: Path, tmp_path: Path, conn: Connection) -> None:
    """The good rows are in, the bad cells are listed."""
    ran = rowlease("import", write_crews(tmp_path / "march.xlsx", BAD), "--form", form, "--quiet")

    assert ran.code == 1
    assert "failed    2" in ran.out
    assert "a dozen" in ran.out
    assert _crews(conn) == [("MUC", 4)]


def test_the_same_file_again_names_the_job_that_had_it(
    rowlease: CommandLine, form: Path, tmp_path: Path, conn: Connection
) -> None:
    """Nothing changes, the exit code is that of the earlier job."""
    path = write_crews(tmp_path / "march.xlsx", GOOD)
    first = rowlease("import", path, "--form", form, "--json").json()

    again = rowlease("import", path, "--form", form, "--json")

    assert again.code == 0
    assert (again.json()["id"], again.json()["submitted_before"]) == (first["id"], first["id"])
    assert _crews(conn) == GOOD


def test_force_makes_a_new_job(rowlease: CommandLine, form: Path, tmp_path: Path, conn: Connection) -> None:
    """The rows are there twice, as was asked."""
    path = write_crews(tmp_path / "march.xlsx", GOOD)
    first = rowlease("import", path, "--form", form, "--json").json()

    forced = rowlease("import", path, "--form", form, "--json", "--force").json()

    assert forced["id"] != first["id"]
    assert len(_crews(conn)) == 6


def test_the_progress_bar_stays_out_of_the_output(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """Standard output can be piped: the bar is on standard error."""
    ran = rowlease("import", write_crews(tmp_path / "march.xlsx", GOOD), "--form", form)

    assert ran.out.startswith("Import job ")
    assert "rows" in ran.err


def test_a_missing_table_is_refused_where_it_may_not_be_made(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """`--no-create` needs the table."""
    ran = rowlease("import", write_crews(tmp_path / "march.xlsx", GOOD), "--form", form, "--no-create", "--quiet")

    assert ran.code == 2
    assert "crews" in ran.err


def test_a_broken_workbook_is_2_and_leaves_no_row(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """The sentence names the file."""
    (tmp_path / "march.xlsx").write_bytes(b"PK\x03\x04 and no more")

    ran = rowlease("import", "march.xlsx", "--form", form, "--quiet")

    assert ran.code == 2
    assert ran.err.startswith("rowlease: march.xlsx: ")


def test_submitted_work_is_done_by_a_worker(
    rowlease: CommandLine, form: Path, tmp_path: Path, conn: Connection
) -> None:
    """`submit` queues, `work --once` runs it and ends."""
    path = write_crews(tmp_path / "march.xlsx", GOOD)
    queued = rowlease("submit", path, "--form", form, "--create", "--json").json()

    ran = rowlease("work", "--once")

    assert queued["status"] == "pending"
    assert ran.out == "1 import job run\n"
    assert rowlease("show", queued["id"], "--json").json()["status"] == "success"
    assert _crews(conn) == GOOD


def test_a_key_of_ones_own_is_one_job(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """The same key with another file is refused, showing the difference."""
    first = write_crews(tmp_path / "march.xlsx", GOOD)
    other = write_crews(tmp_path / "april.xlsx", BAD)
    rowlease("submit", first, "--form", form, "--key", "2026-03")

    ran = rowlease("submit", other, "--form", form, "--key", "2026-03")

    assert ran.code == 2
    assert "content was" in ran.err


def test_jobs_are_listed_and_filtered(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """The newest first; by status; as a table and as JSON."""
    rowlease("import", write_crews(tmp_path / "march.xlsx", GOOD), "--form", form, "--quiet")
    rowlease("import", write_crews(tmp_path / "april.xlsx", BAD), "--form", form, "--quiet")

    listed = rowlease("jobs")
    failed = rowlease("jobs", "--status", "partial_success", "--json").json()

    assert [line.split()[0] for line in listed.out.splitlines()[2:]] == ["2", "1"]
    assert [job["file_name"] for job in failed] == ["april.xlsx"]


def test_no_jobs_is_said(rowlease: CommandLine) -> None:
    """An empty list is a sentence for people and an empty list for programs."""
    assert rowlease("jobs").out == "There are no import jobs.\n"
    assert rowlease("jobs", "--json").json() == []


def test_faults_are_listed_and_written(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """The first as a table, all of them as CSV and as JSON."""
    rowlease("import", write_crews(tmp_path / "march.xlsx", BAD), "--form", form, "--quiet")

    listed = rowlease("faults", 1, "--limit", 1)
    written = rowlease("faults", 1, "--csv", tmp_path / "faults.csv")
    programs = rowlease("faults", 1, "--json").json()

    assert "The first 1 of 2 faults" in listed.out
    assert written.out.startswith("2 faults written to ")
    assert [fault["source_row"] for fault in programs] == [3, 4]


def test_a_job_is_cancelled_and_queued_again(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """`cancel` ends a waiting job, `retry` lets it wait again; an ended one cannot be cancelled."""
    path = write_crews(tmp_path / "march.xlsx", GOOD)
    queued = rowlease("submit", path, "--form", form, "--create", "--json").json()

    cancelled = rowlease("cancel", queued["id"])
    refused = rowlease("cancel", queued["id"])
    retried = rowlease("retry", queued["id"], "--json").json()

    assert cancelled.out == f"Import job {queued['id']} is cancelled.\n"
    assert (refused.code, refused.out) == (2, "")
    assert retried["status"] == "pending"


@pytest.mark.parametrize("command", ["show", "faults", "cancel", "retry"])
def test_a_job_that_is_not_there_is_2(rowlease: CommandLine, command: str) -> None:
    """One sentence."""
    ran = rowlease(command, 4711)

    assert (ran.code, ran.err) == (2, "rowlease: there is no import job 4711\n")


def test_a_form_is_stored_shown_disabled_and_enabled(rowlease: CommandLine, form: Path, tmp_path: Path) -> None:
    """A disabled form takes no imports; a stored one can be named and printed, and reads back as itself."""
    path = write_crews(tmp_path / "march.xlsx", GOOD)
    stored = rowlease("forms", "store", form, "--json").json()
    form.rename(tmp_path / "elsewhere.yaml")

    (tmp_path / "shown.yaml").write_text(rowlease("forms", "show", "crew").out, encoding="utf-8")
    rowlease("forms", "disable", "crew")
    refused = rowlease("import", path, "--form", "crew", "--quiet")
    rowlease("forms", "enable", "crew")
    taken = rowlease("import", path, "--form", "crew", "--quiet")

    assert stored["version"] == 1
    assert im.Form.from_file(tmp_path / "shown.yaml").digest == stored["digest"]
    assert refused.code == 2
    assert "rowlease forms enable crew" in refused.err
    assert taken.code == 0


def test_stored_forms_are_listed(rowlease: CommandLine, form: Path) -> None:
    """With version, table and whether they take imports."""
    rowlease("forms", "store", form)
    rowlease("forms", "store", write_form(form.parent, description="Second"))

    listed = rowlease("forms", "list", "--json").json()

    assert [(row["name"], row["version"], row["enabled"]) for row in listed] == [("crew", 2, True)]
    assert "Second" in rowlease("forms").out


def test_check_with_the_database_sees_the_keys_that_are_there(
    rowlease: CommandLine, tmp_path: Path, conn: Connection
) -> None:
    """`check --database` is the import rolled back: a key of an earlier import is a fault, and nothing is kept."""
    form = write_form(tmp_path, key=["site"])
    rowlease("import", write_crews(tmp_path / "march.xlsx", GOOD), "--form", form, "--quiet")
    april = write_crews(tmp_path / "april.xlsx", [("MUC", 9), ("IST", 2)])

    checked = rowlease("check", april, "--form", form, "--database", "--json")

    assert checked.code == 1
    assert [(fault["source_row"], fault["rule"]) for fault in checked.json()["faults"]] == [(2, "unique")]
    assert checked.json()["not_checked"] == []
    assert len(_crews(conn)) == 3


def test_migrate_brings_an_empty_database_up(
    rowlease: CommandLine, monkeypatch: pytest.MonkeyPatch, empty_conninfo: str
) -> None:
    """`--check` is 3 before and 0 after; a second run has nothing to do; work before it is refused with a hint."""
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", empty_conninfo)

    too_early = rowlease("jobs")
    before = rowlease("migrate", "--check")
    applied = rowlease("migrate", "--json").json()["applied"]
    after = rowlease("migrate", "--check")
    again = rowlease("migrate", "--json").json()["applied"]

    assert (too_early.code, before.code, after.code) == (3, 3, 0)
    assert "rowlease migrate" in too_early.err
    assert len(applied) >= 2
    assert again == []


def test_the_database_tells_its_address_and_state(rowlease: CommandLine, conninfo: str) -> None:
    """`db url` is what DATABASE_URL says; `db status` says whether it answers."""
    assert rowlease("db", "url").out.strip() == conninfo
    assert rowlease("db", "status", "--json").json()["running"] is True


def test_no_command_shows_who_holds_a_lease(
    rowlease: CommandLine, form: Path, tmp_path: Path, database: Database
) -> None:
    """A running job is shown without its holder, to people and to programs."""
    job = rowlease("submit", write_crews(tmp_path / "march.xlsx", GOOD), "--form", form, "--json").json()
    with database.connection() as conn:
        conn.execute(
            "update rowlease.import_jobs set status = 'running', holder = 'import:host:1:secret', fence = fence + 1, "
            "lease_until = rowlease.clock() + interval '1 hour', due_at = null where id = %s",
            [job["id"]],
        )

    shown = [
        rowlease("jobs"),
        rowlease("jobs", "--json"),
        rowlease("show", job["id"]),
        rowlease("show", job["id"], "--json"),
    ]

    assert all("running" in ran.out for ran in shown)
    assert all("secret" not in ran.out and "holder" not in ran.out for ran in shown)


def test_a_worker_stops_when_it_is_asked(rowlease: CommandLine, form: Path, tmp_path: Path, database: Database) -> None:
    """`rowlease work` runs what is queued; SIGTERM ends it with exit code 0 and nothing on standard output."""
    path = write_crews(tmp_path / "march.xlsx", GOOD)
    job = rowlease("submit", path, "--form", form, "--create", "--json").json()
    command = [sys.executable, "-m", "importer.cli", "work"]

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as worker:
        deadline = time.monotonic() + 60
        while not im.job(job["id"], db=database).ended and time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"the worker ended with {worker.wait(timeout=0.05)}")
        worker.send_signal(signal.SIGTERM)
        out, log = worker.communicate(timeout=30)

    assert im.job(job["id"], db=database).status == "success"
    assert (worker.returncode, out) == (0, "")
    assert f"import job {job['id']}: success, 3 rows in, 0 failed" in log
    assert "MUC" not in log


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_gives_the_job_back_with_what_was_committed(
    rowlease: CommandLine, form: Path, tmp_path: Path, database: Database, conn: Connection, asked: signal.Signals
) -> None:
    """Exit code 130 and a sentence; the job waits at its cursor, and the same command brings the rest, once."""
    crews = [("MUC", number) for number in range(20_000)]
    path = write_crews(tmp_path / "march.xlsx", crews)
    command = [sys.executable, "-m", "importer.cli", "import", str(path), "--form", str(form), "--quiet"]
    environment = {**os.environ, "ROWLEASE_IMPORTS_BATCH_ROWS": "100"}

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        deadline = time.monotonic() + 60
        while not any(job.cursor for job in im.jobs(db=database)) and time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"the import ended with {run.wait(timeout=0.005)}")
        run.send_signal(asked)
        out, said = run.communicate(timeout=30)
    stopped = im.jobs(db=database)[0]
    again = rowlease("import", path, "--form", form, "--quiet")

    assert (run.returncode, out) == (130, "")
    assert said.startswith("stopped; what was committed stands")
    assert (stopped.status, stopped.attempt_count) == ("pending", 0)
    assert 0 < stopped.cursor < 20_000
    assert again.code == 0
    assert _crews(conn) == crews
