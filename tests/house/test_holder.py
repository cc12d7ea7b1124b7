"""Nobody sees a lease holder: not in views, not in values of the front door, not where results are shown."""

from __future__ import annotations

import ast
import dataclasses

import importer
from importer.db import Connection
from tests.house.project import modules, tree

#: Rooms that show things to people and programs.
SHOWING = frozenset({"cli", "demo", "display", "alerts", "metrics"})


def test_no_view_shows_it(conn: Connection) -> None:
    """No view or column of one names the holder, nor reads it."""
    rows = conn.execute(
        "select viewname, definition from pg_views where schemaname = 'rowlease' and definition ~* 'holder|select \\*'"
    ).fetchall()
    there = conn.execute("select count(*) as n from pg_views where schemaname = 'rowlease'").fetchone()

    assert rows == []
    assert there is not None
    assert there["n"] > 0


def test_no_public_value_carries_it() -> None:
    """No dataclass of the front door has such a field."""
    carrying = [
        name
        for name in importer.__all__
        if dataclasses.is_dataclass(value := getattr(importer, name))
        if "holder" in {field.name for field in dataclasses.fields(value)}
    ]

    assert carrying == []


def test_no_room_that_shows_things_knows_it() -> None:
    """Command line, demo, display, alerts, metrics and pipelines do not use the word as a name."""
    showing = [path for path in modules("importer") if path.with_suffix("").parts[1] in SHOWING]
    naming = [
        f"{path}:{node.lineno}"
        for path in [*showing, *modules("pipelines")]
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Name) and node.id == "holder")
        or (isinstance(node, ast.Attribute) and node.attr in {"holder", "holder_name"})
        or (isinstance(node, ast.alias) and node.name == "holder_name")
    ]

    assert naming == []
