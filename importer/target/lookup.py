"""Looking up natural keys in another table: one query a batch and column, whatever the rows.

What the sheet says and what the table holds are compared as text. A value that stands there once gives what stands
beside it, as text too: COPY reads that as it reads any value.
"""

from __future__ import annotations

from collections.abc import Sequence

from importer.db import Connection, errors, sql, statements
from importer.target.load import about_a_row
from importer.target.table import TargetColumn

_ST = statements("target")


def find(conn: Connection, column: TargetColumn, values: Sequence[str]) -> dict[str, list[str]]:
    """What stands beside each of these values, by value; one that is not there is missing, one of several has all."""
    found = conn.execute(_ST["look_up"].format(**_fill(column)), {"values": list(values)}).fetchall()
    return {row["value"]: list(row["taken"]) for row in found}


def create_missing(conn: Connection, column: TargetColumn, values: Sequence[str]) -> str | None:
    """Make a row for each value, in the caller's transaction; return PostgreSQL's words when it refuses one.

    Two imports that make the same value at once make one row of it.
    """
    conn.execute(_ST["lock_lookup"], {"table": _text(column, "table")})
    missing = [value for value in values if value not in find(conn, column, values)]
    if not missing:
        return None
    try:
        with conn.transaction():
            conn.execute(_ST["create_looked_up"].format(**_fill(column)), {"values": missing})
    except errors.Error as error:
        if not about_a_row(error):
            raise
        return error.diag.message_primary or str(error)
    return None


def names(conn: Connection, column: TargetColumn, *, limit: int) -> list[str]:
    """What may be looked up, in order."""
    found = conn.execute(_ST["names"].format(**_fill(column)), {"limit": limit}).fetchall()
    return [row["value"] for row in found]


def lookup_problems(conn: Connection, column: TargetColumn) -> list[str]:
    """What keeps a column from being looked up: no such table, no such column."""
    schema, _, name = _text(column, "table").rpartition(".")
    relation = conn.execute(_ST["relation"], {"schema": schema or "public", "name": name}).fetchone()
    what = f"the column {column.name} is looked up in {_text(column, 'table')}"
    if relation is None:
        return [f"{what}, which does not exist"]
    there = {row["name"] for row in conn.execute(_ST["columns"], {"oid": relation["oid"]}).fetchall()}
    missing = [named for key in ("match", "take") if (named := _text(column, key)) not in there]
    problems = [f"{what}, which has no column {named}" for named in missing]
    needed = ("select", "insert") if column.lookup and column.lookup.get("create") else ("select",)
    refused = [right for right in needed if not relation[f"may_{right}"]]
    if refused:
        problems.append(f"{what}, where the database user {relation['user']} may not {', '.join(refused)}")
    return problems


def _text(column: TargetColumn, key: str) -> str:
    assert column.lookup is not None
    return str(column.lookup[key])


def _fill(column: TargetColumn) -> dict[str, sql.Composable]:
    schema, _, name = _text(column, "table").rpartition(".")
    return {
        "table": sql.Identifier(schema or "public", name),
        "named": sql.Identifier(_text(column, "match")),
        "taken": sql.Identifier(_text(column, "take")),
    }
