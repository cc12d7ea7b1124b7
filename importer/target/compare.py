"""Whether a table that exists can hold what the form promises: every difference at once, before any row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.db import Connection, statements
from importer.errors import TargetError
from importer.target.lookup import lookup_problems
from importer.target.table import TYPES, Target, TargetColumn, identifiers

_ST = statements("target")

#: Bounds of PostgreSQL's integer types (PostgreSQL manual, 8.1 Numeric Types).
_INTEGERS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}

#: Types that hold every value of a form's type without a condition.
_HOLDS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"text", "citext"}),
    "integer": frozenset({"int8"}),
    "decimal": frozenset(),
    "float": frozenset({"float8"}),
    "boolean": frozenset({"bool"}),
    "date": frozenset({"date", "timestamp"}),
    "datetime": frozenset({"timestamp"}),
    "time": frozenset({"time"}),
    "duration": frozenset({"interval"}),
}


def compare(conn: Connection, target: Target) -> None:
    """Return when the table can hold what the form promises.

    Raises:
        TargetError: it is missing or does not fit; `problems` names every difference and what to do.
    """
    relation = conn.execute(_ST["relation"], {"schema": target.schema, "name": target.name}).fetchone()
    if relation is None:
        raise TargetError(
            target.label, ["it does not exist; create it, or let the import do that with create_table=True"]
        )
    if relation["kind"] not in ("r", "p"):
        raise TargetError(target.label, ["it is not a table (a view or a foreign table takes no imports)"])
    oid = {"oid": relation["oid"]}
    columns = {row["name"]: row for row in conn.execute(_ST["columns"], oid).fetchall()}
    indexes = conn.execute(_ST["unique_indexes"], oid).fetchall()
    deferrable = conn.execute(_ST["deferrable"], oid).fetchall() if target.unique_sets else []
    problems = [
        *_rights(target, relation),
        *_columns(target, columns),
        *_our_columns(columns),
        *_foreign_columns(target, columns),
        *_keys(target, indexes),
        *(problem for column in target.looked_up for problem in lookup_problems(conn, column)),
        *(
            f"the constraint {row['name']} is deferrable, and a form with a key or unique columns cannot be imported "
            "beside it (PostgreSQL's on conflict refuses); drop it and add it again without deferrable"
            for row in deferrable
        ),
    ]
    if problems:
        raise TargetError(target.label, problems)


def _rights(target: Target, relation: Mapping[str, Any]) -> list[str]:
    needed = ("insert", "select", "delete", *(("update",) if target.updates else ()))
    missing = [right for right in needed if not relation[f"may_{right}"]]
    return [f"the database user {relation['user']} may not {', '.join(missing)} there"] if missing else []


def _columns(target: Target, columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    problems = []
    for column in target.columns:
        there = columns.get(column.name)
        if there is None:
            problems.append(f"the column {column.name} is missing ({column.sql_type})")
            continue
        if there["generated"]:
            problems.append(f"the column {column.name} is computed by the database and cannot be imported")
            continue
        misfit = None if column.lookup is not None else _misfit(column, there)
        if misfit:
            problems.append(f"the column {column.name} is {there['shown']}, which cannot hold {misfit}")
        if there["not_null"] and not column.required:
            problems.append(f"the column {column.name} is NOT NULL, but the form does not require it (required: true)")
    return problems


def _misfit(column: TargetColumn, there: Mapping[str, Any]) -> str | None:
    """What the table's column cannot hold, or nothing when it holds all."""
    kind = there["type"]
    if kind in _HOLDS[column.type] and there["typmod"] == -1:
        return None
    if column.type == "text":
        return _text_misfit(column, there)
    if column.type == "integer" and kind in _INTEGERS:
        bound = _INTEGERS[kind]
        return (
            None
            if _within(column, bound)
            else f"every integer of the form (declare min and max within {-bound} to {bound - 1})"
        )
    if column.type in ("integer", "decimal") and kind == "numeric":
        return _numeric_misfit(column, there["typmod"])
    if column.type in ("datetime", "time", "duration", "date") and kind in _HOLDS[column.type]:
        return "moments to the microsecond; take the type without a precision"
    return f"a {column.type} exactly (it takes {TYPES[column.type]})"


def _text_misfit(column: TargetColumn, there: Mapping[str, Any]) -> str | None:
    if there["labels"] is not None:
        extra = sorted(set(column.choices or ()) - set(there["labels"]))
        if column.choices and not extra:
            return None
        return f"the choices {', '.join(extra)}" if extra else "every text (declare its labels as choices)"
    if there["type"] in ("varchar", "bpchar"):
        length = there["typmod"] - 4  # varchar(n) keeps n + 4 (PostgreSQL source, VARHDRSZ)
        if there["typmod"] == -1 or (column.max_length is not None and column.max_length <= length):
            return None
        if column.choices and all(len(choice) <= length for choice in column.choices):
            return None
        return f"texts longer than {length} characters (declare max_length: {length})"
    return "every text (it takes text)"


def _numeric_misfit(column: TargetColumn, typmod: int) -> str | None:
    if typmod == -1:
        return None
    # numeric(p, s) keeps ((p << 16) | (s & 0x7ff)) + 4 (PostgreSQL source, numerictypmodin)
    precision, scale = (typmod - 4) >> 16, (typmod - 4) & 0x7FF
    scale -= 0x800 if scale >= 0x400 else 0
    whole = precision - scale
    if column.type == "integer":
        fits = scale >= 0 and (whole >= 19 or _within(column, 10**whole))  # a bigint has up to 19 digits
        return None if fits else f"every integer of the form (declare min and max with at most {whole} digits)"
    if column.precision is None:
        return f"every decimal (declare precision: {precision} and scale: {max(scale, 0)})"
    digits = column.precision - (column.scale or 0)
    if scale >= (column.scale or 0) and whole >= digits:
        return None
    return f"numbers of precision {column.precision} and scale {column.scale or 0}"


def _within(column: TargetColumn, bound: int) -> bool:
    return column.min is not None and column.max is not None and -bound <= int(column.min) and int(column.max) < bound


def _our_columns(columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    problems = []
    for name in ("import_job_id", "source_row"):
        there = columns.get(name)
        if there is None:
            problems.append(f"the column {name} is missing (bigint), it says where a row came from")
        elif there["type"] != "int8" and not (name == "source_row" and there["type"] == "int4"):
            problems.append(f"the column {name} is {there['shown']}, it must be bigint")
    return problems


def _foreign_columns(target: Target, columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    ours = {c.name for c in target.columns} | {"import_job_id", "source_row"}
    return [
        f"the column {name} is NOT NULL without a default, but the form has no such column"
        for name, there in columns.items()
        if name not in ours and there["not_null"] and not there["has_default"] and not there["generated"]
    ]


def _keys(target: Target, indexes: list[dict[str, Any]]) -> list[str]:
    problems = []
    required = {c.name for c in target.columns if c.required}
    for names in target.unique_sets:
        fitting = [i for i in indexes if set(i["columns"]) == set(names)]
        what = "key" if names == target.key else "unique column"
        if not fitting:
            wanted = _ST["create_unique_index"].format(table=target.table, columns=identifiers(names)).as_string()
            problems.append(f"there is no unique index for the {what} {', '.join(names)} ({wanted})")
        elif all(i["nulls_clash"] for i in fitting) and not set(names) <= required:
            problems.append(
                f"the unique index {fitting[0]['name']} is NULLS NOT DISTINCT, "
                f"but blanks in {', '.join(names)} do not clash"
            )
    return problems
