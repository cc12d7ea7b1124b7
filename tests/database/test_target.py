"""Rows that are there are updated by key, only where they differ, and can be given back what they held."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import importer as im
from importer import Form
from importer.db import Connection, Database
from importer.import_job import Job
from importer.target import Target, compare
from tests.importing import DEFINITION, Serial, broken_workbook, form, keyed, site_workbook, table_rows, workbook

Row = tuple[object, ...]


def row(site: str, crew: int | str | None = 1, cost: float | None = 1, note: str | None = None) -> Row:
    """Give one row of the form."""
    return (site, Serial(45000), crew, cost, note)


def imported(db: Database, path: Path, rows: Iterable[Row], how: Form, **options: Any) -> Job:  # noqa: ANN401
    """Import a workbook of these rows."""
    return im.import_workbook(workbook(path, rows), how, db=db, progress=False, **options)


def there(conn: Connection) -> list[tuple[Any, ...]]:
    """Give the table's rows: site, crew, cost, note, job, by site."""
    names = ("site", "crew", "cost", "note", "import_job_id")
    return sorted(tuple(found[name] for name in names) for found in table_rows(conn))


def images(conn: Connection) -> list[tuple[int, int, Any, Any]]:
    """Give the before-images: job, source row, before, after."""
    rows = conn.execute("select * from rowlease.import_before_images order by job_id, source_row").fetchall()
    return [(found["job_id"], found["source_row"], found["before"], found["after"]) for found in rows]


UPDATES = keyed(on_clash="update")


def test_a_row_whose_key_is_there_is_updated(db: Database, conn: Connection, tmp_path: Path) -> None:
    """It takes the new values, keeps the job it came with, and its before-image names the updating job."""
    first = imported(db, tmp_path / "a.xlsx", [row("A", 1), row("B", 2)], keyed())

    second = imported(db, tmp_path / "b.xlsx", [row("A", 7), row("C", 3)], UPDATES)

    assert (second.status, second.success_rows, second.updated_rows, second.failed_rows) == ("success", 2, 1, 0)
    one = Decimal(1)
    assert there(conn) == [("A", 7, one, None, first.id), ("B", 2, one, None, first.id), ("C", 3, one, None, second.id)]
    (image,) = images(conn)
    assert image[:2] == (second.id, 2)
    assert (image[2]["crew"], image[3]["crew"]) == (1, 7)


def test_a_row_that_is_the_same_is_not_written(db: Database, conn: Connection, tmp_path: Path) -> None:
    """It counts as skipped, and PostgreSQL's row version stays."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1, 2.5)], keyed())
    before = conn.execute("select xmin::text, ctid::text from site_reports").fetchall()

    second = imported(db, tmp_path / "b.xlsx", [row("A", 1, 2.5), row("B")], UPDATES)

    assert (second.success_rows, second.updated_rows, second.skipped_rows) == (1, 0, 1)
    assert conn.execute("select xmin::text, ctid::text from site_reports where site = 'A'").fetchall() == before
    assert images(conn) == []


def test_a_blank_keeps_or_clears(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Per column: a blank leaves what is there, or takes it away."""
    columns = [{**c, "on_blank": "clear"} if c["name"] == "note" else c for c in DEFINITION["columns"]]
    imported(db, tmp_path / "a.xlsx", [row("A", 1, 2, "old")], keyed())

    imported(db, tmp_path / "b.xlsx", [row("A", None, 3, None)], keyed(on_clash="update", columns=columns))

    assert [found[:4] for found in there(conn)] == [("A", 1, Decimal(3), None)]


def test_a_key_repeated_in_one_file_is_a_fault(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The first row counts, whatever is in the table and however small the batches; never the last."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1), row("B", 1)], keyed())

    again = imported(
        db, tmp_path / "b.xlsx", [row("A", 1), row("B", 5), row("A", 9), row("B", 9)], UPDATES, batch_rows=1
    )

    assert (again.updated_rows, again.skipped_rows, again.failed_rows) == (1, 1, 2)
    assert im.faults(again, db=db)["rule"].to_list() == ["unique", "unique"]
    assert [found[1] for found in there(conn)] == [1, 5]


def test_a_row_that_refuses_the_update_is_a_fault(db: Database, conn: Connection, tmp_path: Path) -> None:
    """PostgreSQL's refusal is the row's; the others are updated, and no before-image stays of it."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1), row("B", 1), row("C", 1)], keyed())
    conn.execute("alter table site_reports add constraint small check (crew < 100)")

    again = imported(db, tmp_path / "b.xlsx", [row("A", 7), row("B", 400), row("C", 8)], UPDATES)

    assert (again.updated_rows, again.failed_rows) == (2, 1)
    assert im.faults(again, db=db)["rule"].to_list() == ["database"]
    assert [found[1] for found in there(conn)] == [7, 1, 8]
    assert [image[1] for image in images(conn)] == [2, 4]


def test_a_value_that_another_row_has_is_a_fault_and_no_update(db: Database, conn: Connection, tmp_path: Path) -> None:
    """A row that clashes with two rows updates neither."""
    columns = [{**c, "unique": True} if c["name"] == "note" else c for c in DEFINITION["columns"]]
    imported(db, tmp_path / "a.xlsx", [row("A", note="x"), row("B", note="y")], keyed(columns=columns))

    updating = keyed(columns=columns, on_clash="update")
    again = imported(db, tmp_path / "b.xlsx", [row("A", 7, note="y"), row("B", 8)], updating)

    assert [(f["source_row"], f["column"]) for f in im.faults(again, db=db).to_dicts()] == [(2, "note")]
    assert (again.updated_rows, again.failed_rows) == (1, 1)
    assert [found[:2] for found in there(conn)] == [("A", 1), ("B", 8)]


def test_a_check_updates_nothing_and_finds_the_same_faults(db: Database, conn: Connection, tmp_path: Path) -> None:
    """With a database the check is the import rolled back."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1)], keyed())
    path = workbook(tmp_path / "b.xlsx", [row("A", 7), row("A", 8), row("B", "many")])

    report = im.check(path, UPDATES, db=db)

    assert [found[1] for found in there(conn)] == [1]
    assert images(conn) == []
    job = im.import_workbook(path, UPDATES, db=db, progress=False)
    assert im.faults(job, db=db).equals(report.faults)


def test_a_workbook_that_breaks_off_gives_updated_rows_back(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Promise 9: inserted rows go, updated rows hold again what they held, counts are zero."""
    im.import_workbook(
        site_workbook(tmp_path / "a.xlsx", 30, bad_every=None), form(key=["site"]), db=db, progress=False
    )
    conn.execute("update site_reports set note = 'mine'")
    before = there(conn)
    path = broken_workbook(tmp_path / "b.xlsx", count=80, breaks_at=60)

    with pytest.raises(im.WorkbookError):
        im.import_workbook(path, form(key=["site"], on_clash="update"), db=db, progress=False, batch_rows=10)

    job = im.jobs(db=db)[0]
    assert (job.status, job.success_rows, job.updated_rows) == ("failed", 0, 0)
    assert there(conn) == before
    assert images(conn) == []


@pytest.mark.parametrize(("line", "stops"), [(3, True), (4, False), ("30%", True), ("31%", False)])
def test_a_form_stops_at_its_line(db: Database, conn: Connection, tmp_path: Path, line: object, stops: bool) -> None:
    """Once so many rows failed, what was committed is taken back, the faults stay, and the job says so."""
    rows = [row(f"S{n}", "many" if n in (2, 4, 7) else n) for n in range(10)]

    job = imported(db, tmp_path / "a.xlsx", rows, form(on_fault={"stop_at": line}), batch_rows=2)

    assert (job.status, len(there(conn))) == (("failed", 0) if stops else ("partial_success", 7))
    assert im.faults(job, db=db)["source_row"].to_list() == [4, 6, 9]
    if stops:
        assert job.cursor == 0
        assert "failed" in (job.last_error or "")


def test_stopping_gives_updated_rows_back(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Committed batches are undone, inserted and updated rows alike; a row changed since stays and is named."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1), row("B", 2)], keyed())
    before = there(conn)
    rows = [row("A", 50), row("B", 60), row("C"), row("D", "many")]

    job = imported(db, tmp_path / "b.xlsx", rows, keyed(on_clash="update", on_fault={"stop_at": 1}), batch_rows=1)

    assert job.status == "failed"
    assert there(conn) == before


def test_replacing_gives_back_what_the_old_job_had_updated(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The rows of the old job go and its updates are taken back before the new ones come."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1), row("B", 2)], keyed())
    rows = [row("A", 50), row("C", 3)]
    imported(db, tmp_path / "b.xlsx", rows, UPDATES)

    imported(db, tmp_path / "b.xlsx", rows, keyed(on_clash="skip"), replace=True)

    assert [found[:2] for found in there(conn)] == [("A", 1), ("B", 2), ("C", 3)]


def test_without_the_right_to_update_no_row_is_touched(db: Database, conn: Connection, tmp_path: Path) -> None:
    """A form that updates needs the right, and says so before any row."""
    imported(db, tmp_path / "a.xlsx", [row("A", 1)], keyed())
    conn.execute("create role reader_only")
    conn.execute("grant usage on schema public, rowlease to reader_only")
    conn.execute("grant insert, select, delete on site_reports to reader_only")
    conn.execute("grant all on all tables in schema rowlease to reader_only")
    try:
        conn.execute("set role reader_only")
        with pytest.raises(im.TargetError, match="update"):
            compare(conn, Target.of(UPDATES.to_dict()))
        compare(conn, Target.of(keyed().to_dict()))
    finally:
        conn.execute("reset role")
        conn.execute("drop owned by reader_only")
        conn.execute("drop role reader_only")


FIRM = {"name": "note", "title": "Note", "type": "integer", "lookup": {"table": "firms", "match": "name", "take": "id"}}


def with_firm(**lookup: object) -> Form:
    """Give the form whose column `note` is looked up in firms."""
    columns = [c for c in DEFINITION["columns"] if c["name"] != "note"]
    return form(columns=[*columns, {**FIRM, "lookup": {**FIRM["lookup"], **lookup}}])  # type: ignore[dict-item]


@pytest.fixture
def firms(conn: Connection) -> Connection:
    """Give a connection to a database with a table of firms, two of which share a name."""
    conn.execute("create table firms (id serial primary key, name text)")
    conn.execute("insert into firms (name) values ('Alpha'), ('Beta'), ('Twin'), ('Twin')")
    return conn


def test_a_value_is_looked_up(db: Database, firms: Connection, tmp_path: Path) -> None:
    """The table gets what stands beside the name; a blank stays blank."""
    rows = [row("A", note="Beta"), row("B", note="Alpha"), row("C", note=None)]

    job = imported(db, tmp_path / "a.xlsx", rows, with_firm(), batch_rows=2)

    assert job.status == "success"
    assert [found[3] for found in there(firms)] == [2, 1, None]


def test_what_is_not_found_or_not_single_names_the_candidates(db: Database, firms: Connection, tmp_path: Path) -> None:
    """Both are faults of the cell: the nearest names, and what stands there more than once."""
    rows = [row("A", note="Alpa"), row("B", note="Twin"), row("C", note="Beta")]
    path = workbook(tmp_path / "a.xlsx", rows)

    report = im.check(path, with_firm(), db=db)
    job = im.import_workbook(path, with_firm(), db=db, progress=False)

    found = im.faults(job, db=db)
    assert found.select("source_row", "column", "rule", "value").rows() == [
        (2, "note", "lookup", "Alpa"), (3, "note", "lookup", "Twin"),
    ]  # fmt: skip
    assert 'nearest: "Alpha"' in found["message"][0]
    assert '"3", "4"' in found["message"][1]
    assert found.equals(report.faults)
    assert [kept[:1] for kept in there(firms)] == [("C",)]


def test_what_is_missing_is_made_in_the_same_transaction(db: Database, firms: Connection, tmp_path: Path) -> None:
    """`create: true` makes each missing name once; a check makes none."""
    rows = [row("A", note="New"), row("B", note="New"), row("C", note="Beta")]
    path = workbook(tmp_path / "a.xlsx", rows)
    assert im.check(path, with_firm(create=True), db=db).is_clean

    job = im.import_workbook(path, with_firm(create=True), db=db, progress=False)

    assert job.status == "success"
    assert firms.execute("select count(*) as n from firms where name = 'New'").fetchall() == [{"n": 1}]
    ids = [found[3] for found in there(firms)]
    assert ids[0] == ids[1]


def test_a_name_that_cannot_be_made_is_a_fault(db: Database, firms: Connection, tmp_path: Path) -> None:
    """PostgreSQL's refusal is told at the cell, and the other rows go in."""
    firms.execute("alter table firms add constraint short check (char_length(name) < 6)")

    job = imported(
        db, tmp_path / "a.xlsx", [row("A", note="Much too long"), row("B", note="Beta")], with_firm(create=True)
    )

    assert im.faults(job, db=db)["rule"].to_list() == ["lookup"]
    assert (job.success_rows, job.failed_rows) == (1, 1)


def test_a_lookup_that_is_not_there_is_refused_before_any_row(db: Database, tmp_path: Path) -> None:
    """No such table, no such column: one clear error."""
    with pytest.raises(im.TargetError, match="firms, which does not exist"):
        imported(db, tmp_path / "a.xlsx", [row("A")], with_firm())


def test_looked_up_rows_are_undone_and_corrected(db: Database, firms: Connection, tmp_path: Path) -> None:
    """A correction knows rows by what was taken; an undo takes them back though a firm was renamed since."""
    first = imported(db, tmp_path / "a.xlsx", [row("A", note="Beta"), row("B", note="Nobody")], with_firm())
    rows = [row("B", note="Alpha"), row("A", note="Beta")]
    second = imported(db, tmp_path / "b.xlsx", rows, with_firm(), corrects=first)
    assert (second.success_rows, second.skipped_rows) == (1, 1)
    firms.execute("update firms set name = 'Renamed' where name = 'Beta'")

    for job in (second, first):
        assert im.undo(job, db=db, progress=False).failed_rows == 0

    assert there(firms) == []


def test_a_check_without_a_database_names_what_it_could_not_look_up(tmp_path: Path) -> None:
    """The rule that needs the table is named."""
    report = im.check(workbook(tmp_path / "a.xlsx", [row("A", note="x")]), with_firm())

    assert report.is_clean
    assert any("looked up in firms" in rule for rule in report.not_checked)


@pytest.mark.usefixtures("firms")
def test_a_template_offers_what_may_be_looked_up(db: Database, tmp_path: Path) -> None:
    """Its dropdown has the names that the table has now."""
    path = im.template(with_firm(), tmp_path / "t.xlsx", db=db)

    cells = im.read_cells(path, sheet="Site report").filter(kind="text")["value"].to_list()
    assert "Note" in cells
    with zipfile.ZipFile(path) as package:
        assert b"Alpha,Beta,Twin" in package.read("xl/worksheets/sheet1.xml")
