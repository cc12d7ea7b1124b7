"""What an orchestrator asks about imports: which of its runs holds a lease, what is due, what came last.

A run outside is known by its `run_ref` (for Dagster the run id), which job and attempt carry. Whether a run is alive is
not known here; whether it *holds* anything is, and that decides: a run whose newest attempt was cut off and that holds
no live lease is doing nothing, whatever its orchestrator believes. Everything is judged by `rowlease.clock()`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from importer.db import Connection, statements

_ST = statements("import_run")


@dataclass(frozen=True, kw_only=True)
class RunLease:
    """What one run outside holds of the imports."""

    #: It holds a lease that has not run out.
    live: bool
    #: The lease of its newest attempt ran out, or another took that job over.
    ran_out: bool


@dataclass(frozen=True, kw_only=True)
class RunLeases:
    """What runs outside hold at one moment of the database's clock."""

    now: dt.datetime
    by_run: Mapping[str, RunLease]

    def of(self, run_ref: str) -> RunLease:
        """What this run holds; a run that never claimed a job holds nothing and lost nothing."""
        return self.by_run.get(run_ref, RunLease(live=False, ran_out=False))


def run_leases(conn: Connection, run_refs: Sequence[str]) -> RunLeases:
    """Give what these runs hold."""
    moment = conn.execute(_ST["now"]).fetchone()
    assert moment is not None  # a select without from
    rows = conn.execute(_ST["leases"], {"run_refs": list(run_refs)}).fetchall()
    by_run = {row["run_ref"]: RunLease(live=row["live"], ran_out=row["ran_out"]) for row in rows}
    return RunLeases(now=moment["now"], by_run=by_run)


def due_of_form(conn: Connection, form: str, *, limit: int | None = None) -> list[int]:
    """Give the ids of the form's jobs that could be claimed now, in the order of the claim."""
    return [int(row["id"]) for row in conn.execute(_ST["due_of_form"], {"form": form, "limit": limit}).fetchall()]


def newest_ended(conn: Connection, form: str, *, loaded: bool = False) -> tuple[int, dt.timedelta] | None:
    """Give the id of the form's newest ended job, and how long ago it ended; `loaded` leaves out failed ones."""
    row = conn.execute(_ST["newest_ended"], {"form": form, "loaded": loaded}).fetchone()
    return None if row is None else (int(row["id"]), row["age"])


def jobs_of_run(conn: Connection, run_ref: str) -> list[int]:
    """Give the ids of the jobs that a run outside claimed, in the order it first did."""
    return [int(row["job_id"]) for row in conn.execute(_ST["jobs_of_run"], {"run_ref": run_ref}).fetchall()]
