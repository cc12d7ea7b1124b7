"""The dry run: the code path of the import, without its rows.

Without a database every rule that needs no table is checked, repeats inside the sheet included. With one, the import
itself runs in a transaction that is rolled back, so its faults are the import's faults; that transaction holds the
table's key lock until it ends.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from importer.batch.apply import apply
from importer.batch.importing import CHUNK_ROWS
from importer.batch.opened import opened
from importer.batch.plan import FaultRow, Plan, batches
from importer.db import Connection, Database, repeat_on_conflict
from importer.forms import FAULT_SCHEMA, CheckedChunk, CheckReport, Form, Reading, SeenKeys, read_rows
from importer.settings import Settings
from importer.target import Target, compare, create, exists, lock

#: Rules that only the table can answer, in words.
NEEDS_THE_TABLE = (
    "key and unique columns against rows already in the table",
    "constraints of the table that the form does not know",
)

#: Stands for a job in a check: no job has this id.
_NO_JOB = -1


def check(
    path: str | os.PathLike[str], form: Form, *, db: Database | None = None, sheet: str | None = None
) -> CheckReport:
    """Read a workbook and check every row, without importing any.

    Returns a `CheckReport`: `accepted` (source_row i64 and one typed column per form column), `faults` (source_row
    i64, column, rule, value, message), `left_out`, `not_checked`. With `db` the import runs and is rolled back: rules
    of the table are checked too.

    Raises:
        WorkbookError: the file cannot be imported at all; `reason` says why.
        TargetError: with `db`, the table that is there does not fit the form.

    Example:
        >>> report = check("march.xlsx", form)  # doctest: +SKIP
    """
    began = time.monotonic()
    if sheet is not None:
        form = dataclasses.replace(form, sheet=sheet)
    file = Path(path)
    with opened(file, Settings.from_environment() if db is None else db.settings, form) as workbook:
        reading = read_rows(workbook, form, chunk_rows=CHUNK_ROWS)
        chunks = _alone(reading, form) if db is None else _rolled_back(reading, form, db)
    return CheckReport(
        form=form,
        file_name=file.name,
        accepted=_together(form.frame_schema, [chunk.accepted for chunk in chunks]),
        faults=_together(FAULT_SCHEMA, [chunk.faults for chunk in chunks]),
        rows=sum(len(chunk.rows) for chunk in chunks),
        left_out=reading.left_out,
        not_checked=() if db is not None else _needs_the_table(form),
        seconds=time.monotonic() - began,
        path=file,
    )


def _needs_the_table(form: Form) -> tuple[str, ...]:
    looked_up = [
        f"the column {column.name}, which is looked up in {column.lookup.table}"
        for column in form.columns
        if column.lookup is not None
    ]
    return (*NEEDS_THE_TABLE, *looked_up)


def _alone(reading: Reading, form: Form) -> list[CheckedChunk]:
    seen = SeenKeys(form)
    return [seen.sift(chunk) for chunk in reading]


def _rolled_back(reading: Reading, form: Form, db: Database) -> list[CheckedChunk]:
    plan = Plan(form=form, target=Target.of(form.to_dict()), job_id=_NO_JOB)
    # As the import does: see importer.batch.importing.
    read = _alone(reading, form) if form.on_clash == "update" else list(reading)

    def run() -> list[CheckedChunk]:
        with conn.transaction(force_rollback=True):
            _stand_ready(conn, plan)
            return [_applied(conn, plan, chunk) for chunk in read]

    with db.connection() as conn:
        return repeat_on_conflict(run)


def _stand_ready(conn: Connection, plan: Plan) -> None:
    lock(conn, plan.target)
    if not exists(conn, plan.target):
        create(conn, plan.target)
    compare(conn, plan.target)


def _applied(conn: Connection, plan: Plan, chunk: CheckedChunk) -> CheckedChunk:
    """The chunk as the import would leave it: rows that the database turns away move from accepted to faults."""
    faults: list[FaultRow] = []
    for batch in batches(chunk, start=0, rows=CHUNK_ROWS):
        faults += apply(conn, plan, batch).faults
    refused = {fault[0] for fault in faults}
    return dataclasses.replace(
        chunk,
        accepted=chunk.accepted.filter(~pl.col("source_row").is_in(list(refused))) if refused else chunk.accepted,
        faults=pl.DataFrame([fault[:5] for fault in faults], schema=FAULT_SCHEMA, orient="row"),
    )


def _together(schema: Mapping[str, pl.DataType | type[pl.DataType]], frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), *frames], how="vertical", rechunk=False)
