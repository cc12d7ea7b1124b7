"""What goes back to the sender of a job, and how jobs hang together."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest

import importer as im
from importer import import_chain
from importer.db import Connection, Database
from importer.excel import open_workbook
from importer.forms.stamped import stamp_of
from tests.command_line import CommandLine, write_crews, write_form
from tests.importing import form, site_workbook

BAD_ROWS = [("MUC", 4), (None, 7), ("GOT", "a dozen")]


@pytest.fixture
def rowlease(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, conninfo: str, tmp_path: Path
) -> CommandLine:
    """Run commands on the test's own database and store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROWLEASE_DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data-folder"))
    return CommandLine(capsys)


def test_a_job_is_read_with_the_form_it_came_with(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The form of a job is the version it was submitted with, whatever came later."""
    job = im.import_workbook(site_workbook(tmp_path / "a.xlsx", 3), form(), db=db, progress=False)
    im.import_workbook(site_workbook(tmp_path / "b.xlsx", 4), form(unknown_columns="refuse"), db=db, progress=False)

    stored = import_chain.form_of(conn, job.id)

    assert im.Form.from_dict(stored.definition) == form()
    assert stored.version == import_chain.version_of(conn, name="site_report", digest=form().digest) == 1


def test_a_job_that_is_not_there_has_no_form(conn: Connection) -> None:
    """A wrong number is an error that says so."""
    with pytest.raises(im.JobNotFoundError):
        import_chain.form_of(conn, 999)


def test_the_faults_of_a_job_come_in_the_workbook_that_was_sent(db: Database, tmp_path: Path) -> None:
    """The workbook is the stored one, whatever became of the file; its stamp names the job."""
    path = site_workbook(tmp_path / "march.xlsx", 60, bad_every=20)
    job = im.import_workbook(path, form(), db=db, progress=False)
    path.unlink()

    marked = im.fault_workbook(job, tmp_path / "faults.xlsx", db=db)

    assert (marked.notes, marked.not_kept) == (3, ())
    with open_workbook(tmp_path / "faults.xlsx") as workbook:
        stamp = stamp_of(workbook)
    assert stamp is not None
    assert (stamp.job, stamp.version, stamp.content_hash) == (job.id, 1, job.content_hash)


def test_a_template_of_a_stored_form_names_its_version(db: Database, tmp_path: Path) -> None:
    """The stamp has the version under which the database has this very form."""
    im.import_workbook(site_workbook(tmp_path / "a.xlsx", 3), form(), db=db, progress=False)

    with open_workbook(im.template(form(), tmp_path / "t.xlsx", db=db)) as workbook:
        stamp = stamp_of(workbook)

    assert stamp is not None
    assert stamp.version == 1


def test_suggestions_for_a_table(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The columns of a table are wanted by their names and types."""
    conn.execute("create table sites (id bigserial primary key, site_code text not null, crew integer, made xml)")
    path = write_crews(tmp_path / "a.xlsx", [("MUC", 4)])

    suggestion = im.suggest(path, "sites", db=db)

    assert suggestion.aliases == {"site_code": "Site", "crew": "Crew"}
    assert [column.name for column in suggestion.form.columns] == ["id", "site_code", "crew"]
    with pytest.raises(im.TargetError):
        im.suggest(path, "nowhere", db=db)


def test_the_command_template_writes_one(rowlease: CommandLine, tmp_path: Path) -> None:
    """It writes an empty workbook, and not over one that is there."""
    arguments = ("template", tmp_path / "t.xlsx", "--form", write_form(tmp_path))

    assert rowlease(*arguments).code == 0
    assert openpyxl.load_workbook(tmp_path / "t.xlsx").sheetnames[0] == "Crew"
    assert rowlease(*arguments, "--no-database").code == 2
    assert rowlease(*arguments, "--no-database", "--overwrite").code == 0


def test_the_command_faults_writes_a_workbook(rowlease: CommandLine, tmp_path: Path) -> None:
    """`faults JOB --xlsx` writes the sender's workbook, `--only-failed` the small one."""
    sent = write_crews(tmp_path / "march.xlsx", BAD_ROWS)
    job = rowlease("import", sent, "--form", write_form(tmp_path), "--json").json()

    whole = rowlease("faults", job["id"], "--xlsx", tmp_path / "f.xlsx")
    small = rowlease("faults", job["id"], "--xlsx", tmp_path / "s.xlsx", "--only-failed", "--json")

    assert whole.code == 0
    assert "2 bad cells" in whole.out
    assert small.json()["notes"] == 2
    assert openpyxl.load_workbook(tmp_path / "s.xlsx").worksheets[0].max_row == 4
