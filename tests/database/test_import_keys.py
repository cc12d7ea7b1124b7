"""Keys: unique over rows and across imports; what a clash does; rows that only the database can refuse."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import importer as im
from importer import Form
from importer.db import Connection, Database
from importer.import_job import Job
from tests.importing import DEFINITION, Serial, form, keyed, table_rows, workbook

Faults = list[tuple[int, str, str]]


def imported(db: Database, path: Path, rows: Iterable[Iterable[object]], how: Form, **options: object) -> Job:
    """Import a workbook of these rows."""
    return im.import_workbook(workbook(path, rows), how, db=db, progress=False, **options)  # type: ignore[arg-type]


def faults(db: Database, job: Job) -> Faults:
    """Give the faults of a job without their words."""
    return [(row["source_row"], row["column"], row["rule"]) for row in im.faults(job, db=db).to_dicts()]


def row(site: str, day: int = 45000, crew: int = 1, note: str | None = None) -> tuple[object, ...]:
    """Give one row of the form."""
    return (site, Serial(day), crew, 1, note)


def test_the_first_of_two_rows_with_one_key_goes_in(db: Database, tmp_path: Path) -> None:
    """The second is a fault at the first key column that names the first one's row."""
    job = imported(db, tmp_path / "a.xlsx", [row("A"), row("B"), row("A")], keyed())

    assert faults(db, job) == [(4, "site", "unique")]
    assert "row 2" in im.faults(job, db=db)["message"][0]


@pytest.mark.parametrize("batch_rows", [1, 2, 10_000])
def test_a_row_is_told_of_rows_before_it_only(db: Database, tmp_path: Path, batch_rows: int) -> None:
    """What a later row of the sheet holds took nothing from it, wherever the batches are cut."""
    columns = [{**column, "unique": column["name"] == "note"} for column in DEFINITION["columns"]]
    rows = [row("A"), row("A", note="x"), row("B", note="x"), row("C", note="x")]

    job = imported(db, tmp_path / "a.xlsx", rows, keyed(columns=columns), batch_rows=batch_rows)

    assert faults(db, job) == [(3, "site", "unique"), (5, "note", "unique")]
    assert "row 4" in im.faults(job, db=db)["message"][1]


def test_a_row_with_a_fault_holds_no_key(db: Database, tmp_path: Path) -> None:
    """A later row with the same key is good."""
    job = imported(db, tmp_path / "a.xlsx", [row("A", crew=999), row("A")], keyed())

    assert faults(db, job) == [(2, "crew", "range")]


def test_a_key_from_an_earlier_import_is_a_fault(db: Database, tmp_path: Path) -> None:
    """`on_clash: fault` names the job that had it."""
    first = imported(db, tmp_path / "a.xlsx", [row("A")], keyed())

    second = imported(db, tmp_path / "b.xlsx", [row("A"), row("B")], keyed())

    assert faults(db, second) == [(2, "site", "unique")]
    assert f"import job {first.id}" in im.faults(second, db=db)["message"][0]


def test_a_key_from_an_earlier_import_may_be_skipped(db: Database, tmp_path: Path) -> None:
    """`on_clash: skip` counts the row as skipped, without a fault, and moves the cursor by it."""
    how = keyed(on_clash="skip")
    imported(db, tmp_path / "a.xlsx", [row("A")], how)

    second = imported(db, tmp_path / "b.xlsx", [row("A"), row("B"), row("B")], how)

    assert (second.success_rows, second.skipped_rows, second.failed_rows, second.cursor) == (1, 1, 1, 3)
    assert faults(db, second) == [(4, "site", "unique")]


def test_nothing_but_skipped_rows_is_a_success(db: Database, tmp_path: Path) -> None:
    """A sheet whose every row is in the table already has no failed row."""
    how = keyed(on_clash="skip")
    imported(db, tmp_path / "a.xlsx", [row("A")], how)

    again = imported(db, tmp_path / "b.xlsx", [row("A", crew=2)], how)

    assert (again.status, again.skipped_rows) == ("success", 1)


def test_a_row_of_no_job_clashes_too(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Rows that were in the table before any import count."""
    imported(db, tmp_path / "a.xlsx", [row("Z")], keyed())
    conn.execute("alter table site_reports alter import_job_id drop not null, alter source_row drop not null")
    conn.execute("insert into site_reports (site, day) values ('A', '2023-03-15')")

    job = imported(db, tmp_path / "b.xlsx", [row("A", 45000)], keyed())

    assert faults(db, job) == [(2, "site", "unique")]
    assert "already in the table" in im.faults(job, db=db)["message"][0]


def test_a_key_of_an_open_job_is_a_fault_even_when_keys_are_skipped(db: Database, tmp_path: Path) -> None:
    """Its row may yet be taken back, so it cannot stand for ours."""
    how = keyed(on_clash="skip")
    outer = workbook(tmp_path / "outer.xlsx", [row("A"), row("B")])
    inner: list[Job] = []

    def between(point: str) -> None:
        if point == "committed" and not inner:
            inner.append(imported(db, tmp_path / "inner.xlsx", [row("A")], how))

    job = im.import_workbook(outer, how, db=db, batch_rows=1, progress=False, at=between)

    assert job.status == "success"
    assert faults(db, inner[0]) == [(2, "site", "unique")]
    assert "still running" in im.faults(inner[0], db=db)["message"][0]


def test_blanks_in_a_unique_column_do_not_clash(db: Database, tmp_path: Path) -> None:
    """Nothing is not the same as nothing."""
    columns = [
        {"name": "site", "title": "Site", "type": "text"},
        {"name": "note", "title": "Note", "type": "text", "unique": True},
    ]

    job = imported(
        db, tmp_path / "a.xlsx", [row("A"), row("B"), row("C", note="x"), row("D", note="x")], form(columns=columns)
    )

    assert faults(db, job) == [(5, "note", "unique")]


def test_a_constraint_of_the_table_finds_its_rows(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Rows that PostgreSQL refuses are found among thousands; the fault names the constraint, the others are in."""
    imported(db, tmp_path / "a.xlsx", [row("first")], form())
    conn.execute("alter table site_reports add constraint no_seven check (crew % 1000 <> 7)")
    rows = [row(f"S{n}", crew=7 if n in (0, 777, 778, 1999) else 1) for n in range(2000)]

    job = imported(db, tmp_path / "b.xlsx", rows, form())

    assert faults(db, job) == [(n + 2, "", "database") for n in (0, 777, 778, 1999)]
    assert "no_seven" in im.faults(job, db=db)["message"][0]
    assert job.success_rows == 1996


def test_a_not_null_of_the_table_names_its_column(db: Database, conn: Connection, tmp_path: Path) -> None:
    """A trigger, a domain or a deferred key refuse rows as well.

    Where PostgreSQL names the column so does the fault.
    """
    imported(db, tmp_path / "a.xlsx", [row("first")], form())
    conn.execute(
        """
        create table sites (site text primary key);
        insert into sites values ('first'), ('A');
        alter table site_reports
            add constraint known_site foreign key (site) references sites deferrable initially deferred;
        """
    )

    job = imported(db, tmp_path / "b.xlsx", [row("A"), row("unknown")], form())

    assert faults(db, job) == [(3, "", "database")]
    assert "known_site" in im.faults(job, db=db)["message"][0]


def test_an_index_the_form_does_not_know_refuses_with_its_name(db: Database, conn: Connection, tmp_path: Path) -> None:
    """With a key of the form's own and without one."""
    imported(db, tmp_path / "a.xlsx", [row("A", note="x")], keyed())
    conn.execute("create unique index one_note on site_reports (note)")

    job = imported(db, tmp_path / "b.xlsx", [row("B", note="x"), row("C", note="y")], keyed())

    assert faults(db, job) == [(2, "", "database")]
    assert "one_note" in im.faults(job, db=db)["message"][0]


def test_refuse_all_reads_the_whole_sheet_before_the_first_row(db: Database, tmp_path: Path) -> None:
    """One bad cell at the end: no row, all faults, counts zero, and the same file is not run again."""
    how = form(on_fault="refuse_all")
    rows = [*(row(f"S{n}") for n in range(300)), row("bad", crew=501), row("bad", crew=502)]
    points: list[str] = []

    job = imported(db, tmp_path / "a.xlsx", rows, how, batch_rows=50, at=points.append)
    again = imported(db, tmp_path / "a.xlsx", rows, how)

    assert (job.status, job.cursor, job.total_rows) == ("failed", 0, 302)
    assert faults(db, job) == [(302, "crew", "range"), (303, "crew", "range")]
    assert "committed" not in points
    assert again.id == job.id


def test_refuse_all_takes_back_what_only_the_database_refused_later(
    db: Database, conn: Connection, tmp_path: Path
) -> None:
    """The rows of committed batches go, the faults stay."""
    imported(db, tmp_path / "a.xlsx", [row("S250")], keyed())
    how = keyed(on_fault="refuse_all", owners=["x@example.com"])

    job = imported(db, tmp_path / "b.xlsx", [row(f"S{n}") for n in range(300)], how, batch_rows=50)

    assert (job.status, job.cursor) == ("failed", 0)
    assert faults(db, job) == [(252, "site", "unique")]
    assert [r["site"] for r in table_rows(conn)] == ["S250"]


cells = st.tuples(
    st.sampled_from("ABCD"), st.integers(45000, 45001), st.integers(498, 502), st.sampled_from([None, "x", "y"])
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(cells, max_size=4), rows=st.lists(cells, max_size=12))
def test_a_check_with_a_database_finds_what_the_import_finds(
    db: Database,
    tmp_path: Path,
    before: list[tuple[str, int, int, str | None]],
    rows: list[tuple[str, int, int, str | None]],
) -> None:
    """The dry run is the import rolled back: the same faults, the same good rows, and nothing stays."""
    columns = form().to_dict()["columns"]
    assert isinstance(columns, list)
    how = form(columns=[{**c, "unique": c["name"] == "note"} for c in columns], key=["site", "day"])
    with db.connection() as conn:
        conn.execute("drop table if exists site_reports")
    imported(db, tmp_path / "before.xlsx", [row(*cell) for cell in before], how, force=True)
    path = workbook(tmp_path / "a.xlsx", [row(*cell) for cell in rows])

    report = im.check(path, how, db=db)
    with db.connection() as conn:
        there = len(table_rows(conn))
    job = im.import_workbook(path, how, db=db, force=True, batch_rows=3, progress=False)

    renamed = im.faults(job, db=db)
    assert report.faults.select("source_row", "column", "rule", "value").equals(
        renamed.select("source_row", "column", "rule", "value")
    )
    assert report.accepted.height == job.success_rows
    with db.connection() as conn:
        assert len(table_rows(conn)) == there + job.success_rows


def test_a_table_that_does_not_fit_is_told_before_any_row(db: Database, conn: Connection, tmp_path: Path) -> None:
    """All differences at once; the job has failed and says so."""
    conn.execute(
        "create table site_reports (site varchar(3), day text, crew integer, note text not null, extra int not null)"
    )

    with pytest.raises(im.TargetError) as misfit:
        imported(db, tmp_path / "a.xlsx", [row("A")], keyed())

    told = " ".join(misfit.value.problems)
    for word in ("cost is missing", "character varying", "day is text", "note is NOT NULL", "extra", "unique index"):
        assert word in told, word
    assert im.jobs(db=db)[0].status == "failed"
    assert conn.execute("select count(*) as n from site_reports").fetchall() == [{"n": 0}]


def test_a_missing_table_is_created_only_when_asked(db: Database, tmp_path: Path) -> None:
    """A worker does not create tables unless the submission said so."""
    path = workbook(tmp_path / "a.xlsx", [row("A")])

    with pytest.raises(im.TargetError, match="create_table=True"):
        im.import_workbook(path, form(), db=db, create_table=False, progress=False)
    job = im.import_workbook(path, form(), db=db, progress=False)

    assert job.status == "success"


@pytest.mark.parametrize(
    ("kind", "cell", "shown"),
    [
        ("text", "x" * 1200, "x" * 1000 + "…"),
        ("decimal", 1.5, "1.5"),
        ("float", 20.0, "20"),
        ("integer", 120, "120"),
        ("boolean", 1, "TRUE"),
        ("date", Serial(45000), "2023-03-15"),
        ("duration", "-36:00:00.5", "-36:00:00.5"),
    ],
)
def test_a_value_that_repeats_is_told_as_the_sheet_shows_it(
    db: Database, tmp_path: Path, kind: str, cell: object, shown: str
) -> None:
    """Whoever looks for it in the sheet finds it; with and without a database."""
    how = form(columns=[{"name": "site", "title": "Site", "type": kind, "unique": True}])
    path = workbook(tmp_path / "a.xlsx", [(cell,), (cell,)])

    job = im.import_workbook(path, how, db=db, progress=False)

    assert im.faults(job, db=db)["value"].to_list() == [shown]
    assert im.check(path, how).faults["value"].to_list() == [shown]
