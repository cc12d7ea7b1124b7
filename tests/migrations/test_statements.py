"""Every statement of every room fits the schema: PostgreSQL plans it."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from importer.db import Connection, sql, statements
from importer.db.statements import rooms
from importer.lease import Leased

#: What EXPLAIN takes; the rest are commands, which have no plan.
PLANNED = ("select", "with", "insert", "update", "delete", "merge", "values")

#: A form's table as the room `target` would make it, and its stage.
TARGET = (
    "create table public.explained"
    " (site_code text, day date, cost numeric, import_job_id bigint not null, source_row bigint not null);"
    "create temporary table explained_stage"
    " (site_code text, day date, cost numeric, import_job_id bigint, source_row bigint);"
    # As enqueue_keyed finds it, within its transaction.
    "create temporary table task_runs_keyed (position integer, run_key text, input jsonb)"
)

#: What fills the braces of a statement about a form's table; `lease` is filled with each of its tables.
FILLED: dict[str, sql.Composable] = {
    "table": sql.Identifier("public", "explained"),
    "stage": sql.Identifier("explained_stage"),
    "columns": sql.SQL("site_code, day, cost"),
    "match": sql.SQL("t.site_code = s.site_code"),
    "schema": sql.Identifier("public"),
    "key": sql.SQL("t.site_code"),
    "held": sql.SQL("t.day, t.cost"),
    "sent": sql.SQL("s.day, s.cost"),
    "given": sql.SQL("s.day as day, s.cost as cost"),
    "differs": sql.SQL("(t.day, t.cost) is distinct from (s.day, s.cost)"),
    "changes": sql.SQL("day = s.day, cost = s.cost"),
    "waiting_runs": sql.SQL(""),
    "named": sql.Identifier("site_code"),
    "taken": sql.Identifier("day"),
    "same": sql.SQL("(t.day, t.cost) is not distinct from (s.day, s.cost)"),
    "unchanged": sql.SQL("(t.day, t.cost) is not distinct from (a.day, a.cost)"),
}

NAMED = [
    (room, name)
    for room in rooms()
    for name, statement in statements(room).items()
    if statement.as_string().lstrip("( ").lower().startswith(PLANNED)
]


def leased(table: Leased) -> dict[str, sql.Composable]:
    """Return what fills the braces for one leased table."""
    words = {"waiting": table.waiting, "held": table.held, "failed": table.failed}
    return {
        "table": sql.Identifier("rowlease", table.table),
        **{key: sql.Literal(word) for key, word in words.items()},
        "also": statements("lease")[table.value.also],
    }


def numbered(text: str) -> tuple[str, int]:
    """Turn `%(name)s` into `$1`, as the driver does when it sends a statement; return the count of names too."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for number, name in enumerate(names, start=1):
        text = text.replace(f"%({name})s", f"${number}")
    return text.replace("%%", "%") if names else text, len(names)


@pytest.mark.parametrize(("room", "name"), NAMED)
def test_statement_explains(conn: Connection, room: str, name: str) -> None:
    """Tables, columns and types are those of the schema, whatever the parameters."""
    statement = statements(room)[name]
    conn.execute(TARGET)
    rows = conn.execute("select tablename from pg_tables where schemaname = 'rowlease'").fetchall()
    there = {row["tablename"] for row in rows}
    fillings = [leased(t) for t in Leased if t.table in there] if room == "lease" else [FILLED]

    for filling in fillings:
        # A brace without a name of ours is SQL's own ('{}' is an empty array); such a statement is never filled.
        braces = {field for _, field, _, _ in Formatter().parse(statement.as_string()) if field is not None}
        composed = statement.format(**filling) if braces and braces <= set(filling) else statement
        text, count = numbered(composed.as_string(conn))
        conn.execute("set plan_cache_mode = force_generic_plan")
        conn.execute(f"prepare explained_statement as {text}")
        arguments = f"({', '.join(['null'] * count)})" if count else ""
        plan = conn.execute(f"explain execute explained_statement {arguments}").fetchall()
        conn.execute("deallocate explained_statement")
        assert plan
