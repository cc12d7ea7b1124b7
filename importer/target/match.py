"""Which rows of a sheet that was sent again are in the table: as they are, or with other values under their key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from importer.db import Connection, sql, statements
from importer.target.load import Rows, Stage
from importer.target.table import Target

_ST = statements("target")


def match_rows(
    conn: Connection,
    target: Target,
    rows: Rows,
    *,
    job_id: int,
    jobs: Sequence[int] | None,
    parent: int | None = None,
    origins: Mapping[int, int] | None = None,
) -> None:
    """Write down which of these rows are in the table already, in the caller's transaction, which holds `lock`.

    Rows are compared by a digest of PostgreSQL's own text of the form's columns, both sides in the table's types.
    `jobs`: only rows of these imports count; all that an import brought without it. `origins`: failed rows of the
    import `parent` by the sheet rows that carry them; such a row is none of those that the import had right.
    """
    stage = Stage(conn, target, job_id)
    stage.copy(rows.csv(0, len(rows)))
    carried = origins or {}
    params = {
        "job_id": job_id,
        "jobs": None if jobs is None else list(jobs),
        "parent": parent,
        "rows": list(carried),
        "origins": list(carried.values()),
        "but": list(carried),
    }
    fill = {"table": target.table, "stage": stage.name, "columns": target.column_list}
    for name in ("leave_corrected", "leave_origins") if carried else ():
        conn.execute(_ST[name].format(**fill), params)
    conn.execute(_ST["leave_rows"].format(**fill), params)
    if target.key:
        match = sql.SQL(" and ").join(sql.SQL("s.{0} = t.{0}").format(sql.Identifier(name)) for name in target.key)
        conn.execute(_ST["match_keys"].format(table=target.table, stage=stage.name, match=match), params)


def unmatched(conn: Connection, target: Target, *, job_id: int, jobs: Sequence[int]) -> int:
    """Count the rows of these imports that the sheet of a job has in no form."""
    row = conn.execute(_ST["unmatched"].format(table=target.table), {"job_id": job_id, "jobs": list(jobs)}).fetchone()
    return 0 if row is None else int(row["rows"])


@dataclass(frozen=True, kw_only=True)
class Differences:
    """How the rows of a sheet differ from those that imports have in the table, by key."""

    same: int
    changed: int
    #: In the table and not in the sheet.
    gone: int


def differences(
    conn: Connection, target: Target, batches: Iterable[Rows], *, stage_id: int, jobs: Sequence[int] | None
) -> Differences:
    """Compare the rows of a whole sheet with the table by the key, in the caller's transaction.

    `jobs`: only rows of these imports count; all that an import brought without it.
    """
    stage = Stage(conn, target, stage_id)
    for rows in batches:
        stage.add(rows.csv(0, len(rows)))
    match = sql.SQL(" and ").join(sql.SQL("s.{0} = t.{0}").format(sql.Identifier(name)) for name in target.key)
    names = [sql.Identifier(column.name) for column in target.columns]
    held, sent = (
        sql.SQL(", ").join([sql.SQL("{0}.{1}").format(sql.Identifier(side), name) for name in names])
        for side in ("t", "s")
    )
    fill = {"table": target.table, "stage": stage.name, "match": match, "held": held, "sent": sent}
    params = {"job_id": stage_id, "jobs": None if jobs is None else list(jobs)}
    counts = conn.execute(_ST["same_and_changed"].format(**fill), params).fetchone()
    gone = conn.execute(_ST["gone"].format(**fill), params).fetchone()
    assert counts is not None  # counts always come
    assert gone is not None
    return Differences(same=int(counts["same"]), changed=int(counts["changed"]), gone=int(gone["rows"]))
