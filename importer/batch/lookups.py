"""Columns that are looked up: what the sheet says becomes what stands beside it in another table, or a fault."""

from __future__ import annotations

import dataclasses

import polars as pl
from rapidfuzz import fuzz, process

from importer.batch.plan import Batch, FaultRow, Plan
from importer.db import Connection
from importer.forms.labels import listed
from importer.target import TargetColumn, create_missing, find, names

#: Names that are looked through for one that is near; and the most that a fault names.
_LOOKED_THROUGH, _NAMED = 20_000, 3
_NEAR = 60


def looked_up(conn: Connection, plan: Plan, batch: Batch) -> tuple[Batch, list[FaultRow]]:
    """Give the batch with the values that were found, without the rows of which one was not; and these as faults.

    One query a column, in the caller's transaction; where the form says `create`, what is missing is made there.
    """
    accepted = batch.accepted
    faults: list[FaultRow] = []
    position = {name: at for at, name in enumerate(plan.names)}
    bad: set[int] = set()
    for column in plan.target.looked_up:
        values = accepted[column.name].unique().drop_nulls().sort().to_list()
        taken, why = _taken(conn, column, values)
        if why:
            wrong = accepted.filter(pl.col(column.name).is_in(list(why)))
            for row, value in wrong.select("source_row", column.name).iter_rows():
                faults.append((row, column.name, "lookup", value, why[value], position[column.name]))
                bad.add(row)
        found = pl.col(column.name).replace_strict(
            list(taken), list(taken.values()), default=None, return_dtype=pl.String
        )
        accepted = accepted.with_columns(found.alias(column.name))
    if bad:
        accepted = accepted.filter(~pl.col("source_row").is_in(list(bad)))
    return dataclasses.replace(batch, accepted=accepted, encoded=None), faults


def _taken(conn: Connection, column: TargetColumn, values: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What each value gives, and why the others give nothing."""
    if not values:
        return {}, {}
    found = find(conn, column, values)
    missing = [value for value in values if value not in found]
    refused: str | None = None
    if missing and column.lookup is not None and column.lookup.get("create"):
        refused = create_missing(conn, column, missing)
        found |= find(conn, column, missing)
        missing = [value for value in missing if value not in found]
    why = _not_found(conn, column, missing, refused) if missing else {}
    where = _where(column)
    for value, several in found.items():
        if len(several) > 1:
            why[value] = f"it stands in {where} more than once: {listed(several, most=_NAMED)}; one is needed"
    return {value: one[0] for value, one in found.items() if len(one) == 1}, why


def _not_found(conn: Connection, column: TargetColumn, missing: list[str], refused: str | None) -> dict[str, str]:
    where = _where(column)
    if refused is not None:
        return dict.fromkeys(missing, f"it is not in {where} and cannot be added there: {refused}")
    known = names(conn, column, limit=_LOOKED_THROUGH)
    said = {}
    for value in missing:
        near = process.extract(value, known, scorer=fuzz.WRatio, limit=_NAMED, score_cutoff=_NEAR)
        hint = f"; nearest: {listed(name for name, _, _ in near)}" if near else ""
        said[value] = f"it is not in {where}{hint}"
    return said


def _where(column: TargetColumn) -> str:
    assert column.lookup is not None
    return f"{column.lookup['table']}.{column.lookup['match']}"
