"""Tables that others made: triggers, constraints and names that an import has to live with."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

import importer as im
from importer import Form
from importer.db import Connection, Database
from tests.importing import Serial, form, keyed, table_rows, workbook

ROWS = [(site, Serial(45000), crew, 1, None) for crew, site in enumerate("ABCDE")]

#: A table that fits the form, with and without its key.
TABLE = """
    create table site_reports (
        site text not null, day date not null, crew bigint, cost numeric, note text,
        import_job_id bigint, source_row bigint, unique (site, day)
    )
"""

#: A trigger before each insert that does this with the row of site B.
TRIGGER = """
    create function with_b() returns trigger language plpgsql as $$
    begin if new.site = 'B' then {}; end if; return new; end $$;
    create trigger with_b before insert on site_reports for each row execute function with_b();
"""


def either() -> list[Form]:
    """Give the form without a key and with one: two ways into the table."""
    columns = [{**c, "required": c["name"] in ("site", "day")} for c in form().to_dict()["columns"]]  # type: ignore[attr-defined]
    return [form(columns=columns), keyed()]


@pytest.mark.parametrize("how", either(), ids=["plain", "keyed"])
def test_a_row_that_a_trigger_leaves_out_is_a_fault(db: Database, conn: Connection, tmp_path: Path, how: Form) -> None:
    """What is counted as in the table is in the table."""
    conn.execute(TABLE)
    conn.execute(TRIGGER.format("return null").encode())

    job = im.import_workbook(workbook(tmp_path / "a.xlsx", ROWS), how, db=db, progress=False)

    assert (job.status, job.success_rows, job.failed_rows) == ("partial_success", 4, 1)
    assert [row["site"] for row in table_rows(conn)] == ["A", "C", "D", "E"]
    (fault,) = im.faults(job, db=db).to_dicts()
    assert (fault["source_row"], fault["rule"]) == (3, "database")
    assert "trigger" in fault["message"]


@pytest.mark.parametrize("state", ["P0001", "P0002", "09000", "XX123"])
@pytest.mark.parametrize("how", either(), ids=["plain", "keyed"])
def test_whatever_a_trigger_raises_is_about_the_row(
    db: Database, conn: Connection, tmp_path: Path, how: Form, state: str
) -> None:
    """States of PostgreSQL's own for triggers, and states that only the trigger knows."""
    conn.execute(TABLE)
    conn.execute(TRIGGER.format(f"raise exception 'no B here' using errcode = '{state}'").encode())

    job = im.import_workbook(workbook(tmp_path / "a.xlsx", ROWS), how, db=db, progress=False)

    assert (job.status, job.success_rows, job.failed_rows) == ("partial_success", 4, 1)
    assert "no B here" in im.faults(job, db=db)["message"][0]


def test_a_batch_of_refused_rows_with_a_key_is_sent_once(db: Database, conn: Connection, tmp_path: Path) -> None:
    """The rows that are refused are looked for among those that the database has already."""
    conn.execute(TABLE)
    conn.execute("alter table site_reports add constraint none_of_them check (crew < 0)")
    points: list[str] = []

    job = im.import_workbook(workbook(tmp_path / "a.xlsx", ROWS), keyed(), db=db, progress=False, at=points.append)

    assert (job.status, job.failed_rows) == ("failed", 5)
    assert [row["source_row"] for row in im.faults(job, db=db).to_dicts()] == [2, 3, 4, 5, 6]
    assert points.count("copying") == 1


def test_a_deferrable_constraint_beside_a_key_is_told_before_any_row(
    db: Database, conn: Connection, tmp_path: Path
) -> None:
    """PostgreSQL takes no `on conflict` there, so no row would ever go in; a form without a key may."""
    conn.execute(TABLE)
    conn.execute("alter table site_reports add constraint one_note unique (note) deferrable")
    plain, with_key = either()

    with pytest.raises(im.TargetError, match="one_note is deferrable"):
        im.import_workbook(workbook(tmp_path / "a.xlsx", ROWS), with_key, db=db, progress=False)
    job = im.import_workbook(workbook(tmp_path / "b.xlsx", ROWS[1:]), plain, db=db, progress=False)

    assert im.jobs(db=db, status="failed")[0].last_error
    assert job.status == "success"


def test_the_advice_for_a_missing_index_can_be_pasted(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Also for a table whose name needs quotes."""
    table = 'Ops.Site "Reports"'
    path = workbook(tmp_path / "a.xlsx", ROWS)
    im.import_workbook(workbook(tmp_path / "b.xlsx", []), form(table=table), db=db, progress=False)
    how = form(table=table, key=["site"])

    with pytest.raises(im.TargetError) as misfit:
        im.import_workbook(path, how, db=db, progress=False)
    (advice,) = [problem for problem in misfit.value.problems if "unique index" in problem]
    conn.execute(advice.partition("(")[2].removesuffix(")").encode())

    again = im.import_workbook(path, how, db=db, progress=False)
    assert (again.status, again.success_rows) == ("success", 5)


def test_a_right_that_is_missing_at_the_first_row_fails_the_job(
    db: Database, conn: Connection, tmp_path: Path, conninfo: str
) -> None:
    """Row-level security is seen only when rows come; trying again would change nothing."""
    conn.execute(TABLE)
    conn.execute(
        """
        create role narrow login;
        grant usage on schema rowlease to narrow;
        grant all on all tables in schema rowlease to narrow;
        grant select, insert, delete on site_reports to narrow;
        alter table site_reports enable row level security;
        """
    )
    try:
        with (
            Database(make_conninfo(conninfo, user="narrow"), db.settings) as theirs,
            pytest.raises(im.DatabaseError, match="lacks the right"),
        ):
            im.import_workbook(
                workbook(tmp_path / "a.xlsx", ROWS), keyed(), db=theirs, create_table=False, progress=False
            )
        assert im.jobs(db=db)[0].status == "failed"
    finally:
        conn.execute("drop owned by narrow; drop role narrow")
