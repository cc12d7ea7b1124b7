"""The schema is what `sql/schema.sql` shows, and every leased table has the shape of the template."""

from __future__ import annotations

from importlib.resources import files

import pytest

from importer.db import Connection, statements
from importer.db.snapshot import describe
from importer.lease import Leased


def leased_tables(conn: Connection) -> list[Leased]:
    """Return the leased tables that exist so far."""
    rows = conn.execute("select tablename from pg_tables where schemaname = 'rowlease'").fetchall()
    names = {row["tablename"] for row in rows}
    return [table for table in Leased if table.table in names]


def oid_of(conn: Connection, table: str) -> dict[str, int]:
    """Return the parameter that the statements of the snapshot take."""
    row = conn.execute("select to_regclass(%s)::oid as oid", [f"rowlease.{table}"]).fetchone()
    assert row is not None
    return {"oid": row["oid"]}


def test_snapshot(conn: Connection) -> None:
    """The snapshot is that of the migrated schema; `python -m importer.db.snapshot` brings it up to date."""
    assert describe(conn) == files("importer.sql").joinpath("schema.sql").read_text(encoding="utf-8")


def test_every_leased_table_has_the_columns_of_the_template(conn: Connection) -> None:
    """Columns of the template come first in each leased table, with the same names, types and defaults."""
    columns = statements("snapshot")["columns"]
    template = [
        {**row, "value": None if row["name"] == "status" else row["value"]}
        for row in conn.execute(columns, oid_of(conn, "leased")).fetchall()
    ]

    for table in leased_tables(conn):
        rows = conn.execute(columns, oid_of(conn, table.table)).fetchall()
        found = [{**row, "value": None if row["name"] == "status" else row["value"]} for row in rows]
        assert found[: len(template)] == template, table


def test_every_leased_table_has_the_checks_of_the_template(conn: Connection) -> None:
    """Checks of the template hold in each leased table; and a row is held if and only if it has a holder."""
    constraints = statements("snapshot")["constraints"]

    def checks(table: str) -> set[str]:
        rows = conn.execute(constraints, oid_of(conn, table)).fetchall()
        return {row["definition"] for row in rows if row["definition"].startswith("CHECK")}

    for table in leased_tables(conn):
        found = checks(table.table)
        assert checks("leased") <= found, table
        assert f"CHECK (((status = '{table.held}'::text) = (holder IS NOT NULL)))" in found, table


def test_every_leased_table_has_the_indexes_of_the_claim(conn: Connection) -> None:
    """Both arms of the claim have their partial index, by the table's own words."""
    for table in leased_tables(conn):
        rows = conn.execute(statements("snapshot")["indexes"], oid_of(conn, table.table)).fetchall()
        found = {row["definition"].partition(" USING ")[2] for row in rows}
        assert f"btree (priority, due_at, created_at) WHERE (status = '{table.waiting}'::text)" in found, table
        assert f"btree (lease_until) WHERE (status = '{table.held}'::text)" in found, table


def test_every_leased_table_is_in_the_enum(conn: Connection) -> None:
    """A table with a fence and a holder is known to the lease."""
    rows = conn.execute(
        "select table_name from information_schema.columns"
        " where table_schema = 'rowlease' and column_name in ('fence', 'holder', 'lease_until')"
        " group by table_name having count(*) = 3"
    ).fetchall()

    assert {row["table_name"] for row in rows} - {"leased"} == {table.table for table in leased_tables(conn)}


@pytest.mark.parametrize("table", list(Leased))
def test_words(table: Leased) -> None:
    """The word for used-up attempts ends a row; waiting, held and ended are different words."""
    assert table.failed in table.ended
    assert len({table.waiting, table.held, *table.ended}) == 2 + len(table.ended)
