"""A table that is there, in the words of a form: for proposals, before a form exists."""

from __future__ import annotations

from typing import Any

from importer.db import Connection, statements

_ST = statements("target")

_TYPES = {
    "text": "text", "citext": "text", "varchar": "text", "bpchar": "text", "name": "text",
    "int2": "integer", "int4": "integer", "int8": "integer", "numeric": "decimal", "float4": "float", "float8": "float",
    "bool": "boolean", "date": "date", "timestamp": "datetime", "timestamptz": "datetime", "time": "time",
    "interval": "duration",
}  # fmt: skip
_OURS = ("import_job_id", "source_row")


def columns_as_form(conn: Connection, table: str) -> list[dict[str, Any]]:
    """The columns of a table that a form could fill, as the columns of a form; none when there is no such table."""
    schema, _, name = table.rpartition(".")
    relation = conn.execute(_ST["relation"], {"schema": schema or "public", "name": name}).fetchone()
    if relation is None:
        return []
    columns = conn.execute(_ST["columns"], {"oid": relation["oid"]}).fetchall()
    return [_column(c) for c in columns if c["name"] not in _OURS and not c["generated"] and _type(c) is not None]


def _type(column: dict[str, Any]) -> str | None:
    return "text" if column["labels"] is not None else _TYPES.get(column["type"])


def _column(column: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": column["name"],
        "title": column["name"].replace("_", " "),
        "type": _type(column),
    }
    if column["not_null"] and not column["has_default"]:
        described["required"] = True
    if column["labels"]:
        described["choices"] = list(column["labels"])
    return described
