"""Which rows of a sheet that was sent again are in the table: as they are, or with other values under their key."""

from __future__ import annotations

from collections.abc import Sequence

from importer.db import Connection, sql, statements
from importer.target.load import Rows, Stage
from importer.target.table import Target

_ST = statements("target")


def match_rows(conn: Connection, target: Target, rows: Rows, *, job_id: int, jobs: Sequence[int] | None) -> None:
    """Write down which of these rows are in the table already, in the caller's transaction, which holds `lock`.

    Rows are compared by a digest of PostgreSQL's own text of the form's columns, both sides in the table's types.
    `jobs`: only rows of these imports count; all that an import brought without it.
    """
    stage = Stage(conn, target, job_id)
    stage.copy(rows.csv(0, len(rows)))
    params = {"job_id": job_id, "jobs": None if jobs is None else list(jobs)}
    fill = {"table": target.table, "stage": stage.name, "columns": target.column_list}
    conn.execute(_ST["leave_rows"].format(**fill), params)
    if target.key:
        match = sql.SQL(" and ").join(sql.SQL("s.{0} = t.{0}").format(sql.Identifier(name)) for name in target.key)
        conn.execute(_ST["match_keys"].format(table=target.table, stage=stage.name, match=match), params)


def unmatched(conn: Connection, target: Target, *, job_id: int, jobs: Sequence[int]) -> int:
    """Count the rows of these imports that the sheet of a job has in no form."""
    row = conn.execute(_ST["unmatched"].format(table=target.table), {"job_id": job_id, "jobs": list(jobs)}).fetchone()
    return 0 if row is None else int(row["rows"])
