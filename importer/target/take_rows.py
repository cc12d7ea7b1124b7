"""Taking back the rows that a job put in: those that still hold what its sheet says go, the others stay."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from importer.db import Connection, sql, statements
from importer.target.load import Rows, Stage
from importer.target.table import Target

_ST = statements("target")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of the rows that a job had put in."""

    #: Sheet rows whose target rows are gone now.
    removed: frozenset[int]
    #: Sheet rows whose target rows were changed since, and stay.
    kept: tuple[int, ...]


def take_rows(
    conn: Connection,
    target: Target,
    rows: Rows,
    *,
    job_id: int,
    stage_id: int,
    but: Collection[str] = (),
    copying: Callable[[], None] | None = None,
) -> Taken:
    """Remove rows of a job that still hold what its sheet says; `rows` are those of the sheet, as they were loaded.

    In the caller's transaction, which holds `lock`. `stage_id`: the job that does it. `but`: columns that do not count.
    """
    stage = Stage(conn, target, stage_id)
    stage.copy(rows.csv(0, len(rows)), copying)
    names = [sql.Identifier(column.name) for column in target.columns if column.name not in but]
    same = sql.SQL("({0}) is not distinct from ({1})").format(
        sql.SQL(", ").join([sql.SQL("t.{0}").format(name) for name in names]),
        sql.SQL(", ").join([sql.SQL("s.{0}").format(name) for name in names]),
    )
    fill = {"table": target.table, "stage": stage.name, "same": same if names else sql.SQL("true")}
    gone = conn.execute(_ST["take_rows"].format(**fill), {"job_id": job_id}).fetchall()
    left = conn.execute(_ST["rows_left"].format(**fill), {"job_id": job_id}).fetchall()
    return Taken(
        removed=frozenset(int(row["source_row"]) for row in gone), kept=tuple(int(row["source_row"]) for row in left)
    )
