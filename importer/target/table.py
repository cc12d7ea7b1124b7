"""What a form's table is: its columns, types and unique sets; creating it and removing a job's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.db import Connection, sql, statements

_ST = statements("target")

#: PostgreSQL's type for each type of a form; decimal without precision is numeric without limits.
TYPES: Mapping[str, str] = {
    "text": "text",
    "integer": "bigint",
    "decimal": "numeric",
    "float": "double precision",
    "boolean": "boolean",
    "date": "date",
    "datetime": "timestamp",
    "time": "time",
    "duration": "interval",
}


@dataclass(frozen=True, kw_only=True)
class TargetColumn:
    """One column as the form promises to fill it."""

    name: str
    #: A type of forms: text integer decimal float boolean date datetime time duration.
    type: str
    required: bool = False
    unique: bool = False
    precision: int | None = None
    scale: int | None = None
    max_length: int | None = None
    min: Any = None
    max: Any = None
    choices: tuple[str, ...] | None = None
    #: What a blank does to the value that an update finds: keep, clear.
    on_blank: str = "keep"
    #: Where its value is looked up, when it is: table, match, take, create.
    lookup: Mapping[str, Any] | None = None

    @property
    def sql_type(self) -> str:
        """The column's type in a table that we create."""
        if self.type == "decimal" and self.precision is not None:
            return f"numeric({self.precision}, {self.scale or 0})"
        return TYPES[self.type]


@dataclass(frozen=True, kw_only=True)
class Target:
    """The table of a form, in the form's words."""

    schema: str
    name: str
    columns: tuple[TargetColumn, ...]
    #: Key columns, empty for none.
    key: tuple[str, ...]
    #: Whether imports change rows that are there.
    updates: bool = False

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> Target:
        """Read the target out of a form as `Form.to_dict()` gives it."""
        schema, _, name = str(definition["table"]).rpartition(".")
        key = tuple(definition.get("key") or ())
        columns = tuple(
            TargetColumn(
                name=c["name"],
                type=c["type"],
                required=bool(c.get("required")) or c["name"] in key,
                unique=bool(c.get("unique")),
                precision=c.get("precision"),
                scale=c.get("scale"),
                max_length=c.get("max_length"),
                min=c.get("min"),
                max=c.get("max"),
                choices=tuple(str(v) for v in c["choices"]) if c.get("choices") else None,
                on_blank=c.get("on_blank", "keep"),
                lookup=c.get("lookup"),
            )
            for c in definition["columns"]
        )
        return cls(
            schema=schema or "public",
            name=name,
            columns=columns,
            key=key,
            updates=definition.get("on_clash") == "update",
        )

    @property
    def label(self) -> str:
        """The table's name as a person writes it."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    @property
    def table(self) -> sql.Identifier:
        """The table's name for a statement."""
        return sql.Identifier(self.schema, self.name)

    @property
    def column_list(self) -> sql.Composed:
        """The form's columns for a statement, in the form's order."""
        return identifiers([c.name for c in self.columns])

    @property
    def looked_up(self) -> tuple[TargetColumn, ...]:
        """The columns whose values are looked up."""
        return tuple(column for column in self.columns if column.lookup is not None)

    @property
    def unique_sets(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that must not repeat: the key first, then each unique column."""
        singles = tuple((c.name,) for c in self.columns if c.unique and (c.name,) != self.key)
        return ((self.key,) if self.key else ()) + singles


def identifiers(names: Sequence[str]) -> sql.Composed:
    """Column names, quoted and with commas."""
    return sql.SQL(", ").join([sql.Identifier(name) for name in names])


def lock(conn: Connection, target: Target) -> None:
    """Let one import at a time decide about the keys of this table, until the transaction ends."""
    conn.execute(_ST["lock_target"], {"table": f"{target.schema}.{target.name}"})


def exists(conn: Connection, target: Target) -> bool:
    """Whether something stands under the table's name."""
    return conn.execute(_ST["relation"], {"schema": target.schema, "name": target.name}).fetchone() is not None


def create(conn: Connection, target: Target) -> None:
    """Create the table with its unique indexes, in the caller's transaction (under `lock`)."""
    if target.schema != "public":
        conn.execute(_ST["create_schema"].format(schema=sql.Identifier(target.schema)))
    columns = sql.SQL(", ").join(
        sql.SQL("{name} {type}{required}").format(
            name=sql.Identifier(c.name),
            type=sql.SQL(c.sql_type),  # from the closed set TYPES
            required=sql.SQL(" not null" if c.required else ""),
        )
        for c in target.columns
    )
    conn.execute(_ST["create_table"].format(table=target.table, columns=columns))
    conn.execute(_ST["create_job_index"].format(table=target.table))
    for names in target.unique_sets:
        conn.execute(_ST["create_unique_index"].format(table=target.table, columns=identifiers(names)))


def delete_rows(conn: Connection, target: Target, *, job_id: int) -> int:
    """Remove the rows that a job put in; return how many. A table that is gone has none.

    In the caller's transaction.
    """
    lock(conn, target)
    if not exists(conn, target):
        return 0
    conn.execute(_ST["patient"])
    return conn.execute(_ST["delete_rows"].format(table=target.table), {"job_id": job_id}).rowcount


def count_rows(conn: Connection, target: Target, *, job_id: int) -> int | None:
    """Count the rows that a job put in; None where the table is gone."""
    if not exists(conn, target):
        return None
    row = conn.execute(_ST["count_rows"].format(table=target.table), {"job_id": job_id}).fetchone()
    return 0 if row is None else int(row["rows"])
