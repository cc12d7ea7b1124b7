"""Updating rows that are there, and giving them back what they held.

```
staged rows whose key is there ──differs?──► keep_before_images ──► update_rows         (one savepoint)
                                  └─ no ──► unchanged: nothing is written
before-images of a job ──still as the job left it?──► restore_rows                       (undo, refusal, replace)
                         └─ no ──► kept: somebody changed it since
```

A before-image names the row by the values of the key, which an update never changes, and keeps the form's columns as
JSON: PostgreSQL's own text of each value, which it reads back to the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from importer.db import Connection, sql, statements
from importer.target.table import Target, TargetColumn

_ST = statements("target")


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What became of the rows that a job had updated."""

    #: Sheet rows whose target rows hold again what they held.
    restored: tuple[int, ...]
    #: Sheet rows whose target rows were changed or removed since, and are as they are.
    kept: tuple[int, ...]


def set_aside_unchanged(
    conn: Connection, target: Target, stage: sql.Identifier, *, job_id: int, first: int, last: int
) -> list[int]:
    """Take rows out of the stage that are in the table as an update would leave them; return their sheet rows.

    Of the staged rows, those from one sheet row to another.
    """
    changing = _changing(target)
    fill = {
        "stage": stage,
        "table": target.table,
        "match": _match(target),
        "differs": _differs(changing) if changing else sql.SQL("false"),
    }
    params = {"job_id": job_id, "first": first, "last": last}
    rows = conn.execute(_ST["set_aside_unchanged"].format(**fill), params).fetchall()
    return sorted(int(row["source_row"]) for row in rows)


def update_rows(
    conn: Connection, target: Target, stage: sql.Identifier, rows: Sequence[int], *, job_id: int
) -> frozenset[int]:
    """Bring rows of the table to what their staged rows say; return the sheet rows that changed something.

    In the caller's transaction; the rows of the table are locked first, and their before-images kept. A check, which
    is no job (`job_id` below 1) and is rolled back, keeps none.

    Raises:
        psycopg.Error: a row refuses what it is given.
    """
    changing = _changing(target)
    if not changing or not rows:
        return frozenset()
    fill = {
        "stage": stage,
        "table": target.table,
        "match": _match(target),
        "key": _listed(sql.SQL("t.{0}").format(sql.Identifier(name)) for name in target.key),
        "held": _listed(sql.SQL("t.{0}").format(sql.Identifier(c.name)) for c in changing),
        "given": _listed(sql.SQL("{0} as {1}").format(_given(c), sql.Identifier(c.name)) for c in changing),
        "differs": _differs(changing),
        "changes": _listed(sql.SQL("{0} = {1}").format(sql.Identifier(c.name), _given(c)) for c in changing),
    }
    params = {"rows": list(rows), "job_id": job_id}
    if job_id > 0:
        conn.execute(_ST["keep_before_images"].format(**fill), params)
    changed = conn.execute(_ST["update_rows"].format(**fill), params).fetchall()
    return frozenset(int(row["source_row"]) for row in changed)


def restore_rows(conn: Connection, target: Target, *, job_id: int, rows: Sequence[int] | None = None) -> Restored:
    """Give the rows that a job updated back what they held; those changed since keep what they have.

    In the caller's transaction, which holds `lock`. `rows`: only those that these sheet rows updated. The before-images
    of restored rows go, those of kept rows stay until `forget_before_images`.
    """
    params = {"job_id": job_id, "rows": None if rows is None else list(rows)}
    images = [int(row["source_row"]) for row in conn.execute(_ST["before_images"], params).fetchall()]
    changing = _changing(target)
    if not images or not changing or not target.key:
        return Restored(restored=(), kept=tuple(images))
    statement = _ST["restore_rows"].format(
        table=target.table,
        match=sql.SQL(" and ").join(sql.SQL("t.{0} = k.{0}").format(sql.Identifier(name)) for name in target.key),
        changes=_listed(sql.SQL("{0} = s.{0}").format(sql.Identifier(c.name)) for c in changing),
        unchanged=sql.SQL("({0}) is not distinct from ({1})").format(
            _listed(sql.SQL("t.{0}").format(sql.Identifier(c.name)) for c in changing),
            _listed(sql.SQL("a.{0}").format(sql.Identifier(c.name)) for c in changing),
        ),
    )
    back = {int(row["source_row"]) for row in conn.execute(statement, params).fetchall()}
    conn.execute(_ST["forget_restored"], {"job_id": job_id, "rows": sorted(back)})
    return Restored(restored=tuple(sorted(back)), kept=tuple(row for row in images if row not in back))


def forget_before_images(conn: Connection, *, job_id: int) -> None:
    """Let the before-images of a job go, in the transaction that took its updates back."""
    conn.execute(_ST["forget_before_images"], {"job_id": job_id})


def _changing(target: Target) -> list[TargetColumn]:
    return [column for column in target.columns if column.name not in target.key]


def _differs(changing: Sequence[TargetColumn]) -> sql.Composed:
    return sql.SQL("({0}) is distinct from ({1})").format(
        _listed(sql.SQL("t.{0}").format(sql.Identifier(c.name)) for c in changing), _listed(map(_given, changing))
    )


def _match(target: Target) -> sql.Composed:
    return sql.SQL(" and ").join(sql.SQL("s.{0} = t.{0}").format(sql.Identifier(name)) for name in target.key)


def _given(column: TargetColumn) -> sql.Composed:
    """What the row of the table is to hold: the staged value, or its own where a blank keeps."""
    name = sql.Identifier(column.name)
    return (sql.SQL("coalesce(s.{0}, t.{0})") if column.on_blank == "keep" else sql.SQL("s.{0}")).format(name)


def _listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
