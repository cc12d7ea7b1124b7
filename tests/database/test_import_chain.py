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
from tests.importing import form, site_rows, site_workbook, table_rows, workbook

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


def test_an_undone_import_leaves_nothing_and_may_come_again(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Its rows go, the job says when and by which job, and the same file makes a new job."""
    path = site_workbook(tmp_path / "a.xlsx", 120, bad_every=20)
    first = im.import_workbook(path, form(), db=db, progress=False)

    back = im.undo(first, db=db, progress=False)

    assert (back.kind, back.parent_id, back.status) == ("undo", first.id, "success")
    assert (back.success_rows, back.failed_rows, back.skipped_rows) == (114, 0, 6)
    assert table_rows(conn) == []
    undone = im.job(first, db=db)
    assert undone.undone_by == back.id
    assert undone.undone_at is not None
    again = im.import_workbook(path, form(), db=db, progress=False)
    assert (again.submitted_before, again.success_rows) == (None, 114)


def test_updated_rows_get_back_what_they_held(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Inserted rows go, updated rows are as before, those that stayed the same are not touched."""
    im.import_workbook(
        site_workbook(tmp_path / "a.xlsx", 40, bad_every=None), form(key=["site"]), db=db, progress=False
    )
    before = table_rows(conn)
    rows = [(s, d, 1, c, n) for s, d, _, c, n in site_rows(60, bad_every=None)]
    updating = form(key=["site"], on_clash="update")
    second = im.import_workbook(workbook(tmp_path / "b.xlsx", rows), updating, db=db, progress=False)
    assert (second.updated_rows, second.success_rows) == (39, 59)

    back = im.undo(second, db=db, progress=False)

    assert (back.success_rows, back.updated_rows) == (59, 39)
    assert table_rows(conn) == before
    assert conn.execute("select count(*) as images from rowlease.import_before_images").fetchall() == [{"images": 0}]


def test_rows_that_somebody_changed_since_are_kept_and_listed(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Inserted and updated rows alike; the preview says the same and changes nothing."""
    base = form(key=["site"])
    im.import_workbook(
        workbook(tmp_path / "a.xlsx", [("A", None, 1, 1, None), ("B", None, 1, 1, None)]), base, db=db, progress=False
    )
    rows = [("A", None, 2, 1, None), ("B", None, 2, 1, None), ("C", None, 3, 1, None), ("D", None, 4, 1, None)]
    job = im.import_workbook(
        workbook(tmp_path / "b.xlsx", rows), form(key=["site"], on_clash="update"), db=db, progress=False
    )
    conn.execute("update site_reports set note = 'mine' where site in ('B', 'D')")
    before = table_rows(conn)

    preview = im.undo(job, db=db, dry_run=True)

    assert (preview.removed, preview.restored, preview.kept["source_row"].to_list()) == (1, 1, [3, 5])
    assert table_rows(conn) == before
    back = im.undo(job, db=db, progress=False)
    assert (back.status, back.success_rows, back.failed_rows) == ("partial_success", 2, 2)
    assert im.faults(back, db=db).equals(preview.kept)
    assert im.faults(back, db=db)["rule"].to_list() == ["changed", "changed"]
    assert sorted((r["site"], r["crew"], r["note"]) for r in table_rows(conn)) == [
        ("A", 1, None), ("B", 2, "mine"), ("D", 4, "mine"),
    ]  # fmt: skip


@pytest.mark.parametrize("why", ["open", "undo", "undone", "replaced"])
def test_what_cannot_be_undone_says_why(db: Database, tmp_path: Path, why: str) -> None:
    """An open job, an undo, a job that was undone or replaced."""
    path = site_workbook(tmp_path / "a.xlsx", 5)
    job = im.submit(path, form(), db=db) if why == "open" else im.import_workbook(path, form(), db=db, progress=False)
    if why in ("undo", "undone"):
        back = im.undo(job, db=db, progress=False)
        job = back if why == "undo" else job
    if why == "replaced":
        im.import_workbook(path, form(unknown_columns="refuse"), db=db, progress=False, replace=True)

    with pytest.raises(im.JobStateError):
        im.undo(job, db=db, progress=False)


def test_an_undo_can_be_queued_and_is_one_at_a_time(db: Database, conn: Connection, tmp_path: Path) -> None:
    """A second call gives the waiting one; a worker runs it."""
    job = im.import_workbook(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db, progress=False)

    first, second = im.undo(job, db=db, queue=True), im.undo(job, db=db, queue=True)

    assert first.status == "pending"
    assert second.id == first.id
    assert second.submitted_before is not None
    im.work(db=db)
    assert im.job(first, db=db).status == "success"
    assert table_rows(conn) == []


def test_a_table_that_is_gone_has_nothing_to_take_back(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The undo ends well, and says that it took nothing back."""
    job = im.import_workbook(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db, progress=False)
    conn.execute("drop table site_reports")

    back = im.undo(job, db=db, progress=False)

    assert (back.status, back.success_rows) == ("success", 0)


def test_the_history_of_a_job_shows_its_undo(db: Database, conn: Connection, tmp_path: Path) -> None:
    """From any job of a chain all of it is seen, oldest first."""
    job = im.import_workbook(site_workbook(tmp_path / "a.xlsx", 5), form(), db=db, progress=False)
    back = im.undo(job, db=db, progress=False)

    for one in (job, back):
        assert [row["id"] for row in import_chain.history(conn, one.id)] == [job.id, back.id]


def test_the_command_undo(rowlease: CommandLine, tmp_path: Path, conn: Connection) -> None:
    """`undo JOB --dry-run` says, `undo JOB` does."""
    sent = write_crews(tmp_path / "march.xlsx", [("MUC", 4), ("LYS", 7)])
    job = rowlease("import", sent, "--form", write_form(tmp_path), "--json").json()

    preview = rowlease("undo", job["id"], "--dry-run")
    done = rowlease("undo", job["id"], "--quiet")

    assert (preview.code, done.code) == (0, 0)
    assert "2 rows would go" in preview.out
    assert "2 rows of import job" in done.out
    assert f"undo of   import job {job['id']}" in rowlease("show", job["id"] + 1).out
    assert "undone" in rowlease("show", job["id"]).out
    assert table_rows(conn, "crews") == []
    assert rowlease("undo", job["id"]).code == 2
