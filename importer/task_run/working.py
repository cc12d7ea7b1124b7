"""Running due tasks: claim a slice, run each, write the ends; nothing is kept between two calls.

How many are claimed at once follows from how long the last ones took: one at first, then as many as take about 50 ms
together, at most the setting. So a worker never sits on runs that others could begin, and a backlog of tiny runs is not
claimed one by one. What is claimed and not begun goes back as soon as the run before it takes longer than a tick.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from importer import lease as leases
from importer.db import Connection, Database, errors, sql, statements
from importer.errors import DatabaseUnavailableError, LeaseLostError, TaskCancelledError, TaskError, TaskRefusedError
from importer.lease import Lease, Leased
from importer.task_run.context import At, Context, Suspended
from importer.task_run.definition import Task, as_json, registered
from importer.task_run.finishing import Finishes, write_ends
from importer.task_run.persistence import persistently
from importer.task_run.queue import announce_if_asked
from importer.task_run.redaction import redacted_text
from importer.task_run.watch import Claimed, Watch

log = logging.getLogger(__name__)

#: About so long the runs of a slice may take together, in seconds.
_SLICE_S = 0.05
#: A slice is at most so many times as large as the one before.
_GROWTH = 16

_ST = statements("task_run")


def tasks_due(
    db: Database,
    holder: str,
    *,
    tasks: Sequence[Task] | None = None,
    limit: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    at: At = lambda _point: None,
) -> int:
    """Run due runs of these tasks (all of this process, when not given) until none is due or `limit` were run.

    Returns how many were run. Runs of other tasks and versions are left alone. An error of one run does not stop the
    others; its row says it. Interrupted (Ctrl-C), the current run and what was claimed go back.

    Raises:
        DatabaseUnavailableError: the database is away; what was committed stands.
    """
    served = {(task.name, task.version): task for task in (registered() if tasks is None else tasks)}
    if not served:
        return 0
    worker = _Pass(db, holder, served, at)
    try:
        return worker.run(limit, stopping)
    finally:
        worker.close()


def next_moment_s(conn: Connection, tasks: Sequence[Task] | None = None) -> float | None:
    """Seconds until a run of these tasks becomes due or a lease runs out (negative: already); null: never."""
    row = conn.execute(_ST["next_moment"], _names(registered() if tasks is None else tasks)).fetchone()
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def claim(conn: Connection, tasks: Sequence[Task], *, holder: str, settings_lease: Any, limit: int) -> list[Claimed]:  # noqa: ANN401
    """Claim due runs of these tasks, first by priority, then by due time and age; commits before the work starts."""
    statement = _claim_statement(tuple(sorted((task.name, task.version) for task in tasks)))
    params = {"holder": holder, "ttl": settings_lease, "limit": limit, **_names(tasks)}
    rows = conn.execute(statement, params).fetchall()
    return [
        (
            Lease(
                table=Leased.TASK_RUNS,
                id=row["id"],
                fence=row["fence"],
                holder=holder,
                ttl=settings_lease,
                attempt=row["attempt_count"],
            ),
            row,
        )
        for row in rows
    ]


def fail_exhausted(conn: Connection) -> list[int]:
    """Fail the runs whose last lease ran out and that have no attempt left; return their numbers."""
    with conn.transaction():
        ids = [int(row["id"]) for row in leases.fail_exhausted(conn, Leased.TASK_RUNS)]
        for run_id in ids:
            announce_if_asked(conn, run_id)
        return ids


@lru_cache(maxsize=64)
def _claim_statement(served: tuple[tuple[str, int], ...]) -> sql.Composed:
    """Fill the claim with a branch for each task and version."""
    branches = [
        _ST["waiting_runs"].format(task_name=sql.Literal(name), task_version=sql.Literal(version))
        for name, version in served
    ]
    return _ST["claim"].format(waiting_runs=sql.Composed(branches).join("\n"))


def _names(tasks: Sequence[Task]) -> dict[str, list[Any]]:
    return {"names": [task.name for task in tasks], "versions": [task.version for task in tasks]}


class _Pass:
    """One call of `tasks_due`."""

    def __init__(self, db: Database, holder: str, served: dict[tuple[str, int], Task], at: At) -> None:
        self._db = db
        self._holder = holder
        self._served = served
        self._tasks = tuple(served.values())
        self._at = at
        self._rhythm = db.settings.tasks
        self._finishes = Finishes(db, patience=self._rhythm.lease, at=at)
        self._watch = Watch(db)

    def run(self, limit: int | None, stopping: Callable[[], bool]) -> int:
        """Run slices until there are none."""
        done = 0
        size = 1
        with self._db.connection() as conn:
            fail_exhausted(conn)
            while (limit is None or done < limit) and not stopping():
                most = size if limit is None else min(size, limit - done)
                claimed = claim(conn, self._tasks, holder=self._holder, settings_lease=self._rhythm.lease, limit=most)
                if not claimed:
                    break
                self._at("claimed")
                ran, took_s = self._run_slice(conn, claimed, stopping)
                done += ran
                fits = int(_SLICE_S * max(ran, 1) / max(took_s, 1e-6))
                size = max(1, min(fits, size * _GROWTH, self._rhythm.batch))
            self._finishes.drain()
            conn.execute(_ST["served"], _names(self._tasks))
        return done

    def close(self) -> None:
        """Give back what has not begun, write the ends that are left, end the threads."""
        with suppress(DatabaseUnavailableError):
            self._watch.give_back_rest()
        self._watch.close()
        self._finishes.close()

    def _run_slice(self, conn: Connection, claimed: list[Claimed], stopping: Callable[[], bool]) -> tuple[int, float]:
        """Run what was claimed; return how many ran, and how long they took in seconds."""
        began_s = time.monotonic()
        self._watch.rest.extend(claimed)
        alone = len(claimed) == 1
        ran = 0
        while not stopping() and (each := self._watch.take()) is not None:
            lease, row = each
            if time.monotonic() - began_s > lease.ttl.total_seconds() / 3:
                try:
                    leases.renew(conn, lease)
                except LeaseLostError:
                    continue
            self._run(conn, lease, row, alone=alone)
            ran += 1
        return ran, time.monotonic() - began_s

    def _run(self, conn: Connection, lease: Lease, row: dict[str, Any], *, alone: bool) -> None:
        task = self._served[row["task_name"], row["task_version"]]
        try:
            context = Context(
                self._db,
                lease,
                input=task.read_input(row["input"]),
                trace_id=row["trace_id"],
                priority=row["priority"],
                task=task.name,
                at=self._at,
            )
            self._watch.begin(context)
            try:
                self._at("running")
                result = as_json(task(context), f"the result of task {task.name}")
                self._at("ran")
            finally:
                self._watch.end()
        except Suspended:
            return
        except (LeaseLostError, TaskCancelledError) as error:
            log.info("task run %s: %s; nothing more was written", lease.id, type(error).__name__)
        except DatabaseUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a task raises is kept with its row
            self._failed(conn, task, lease, error)
        except BaseException:
            self._interrupted(lease)
            raise
        else:
            self._finished(conn, task, lease, result, alone=alone)

    def _finished(self, conn: Connection, task: Task, lease: Lease, result: str | None, *, alone: bool) -> None:
        if not alone and task.finish == "together":
            self._finishes.add(lease, result)
            return
        self._at("finishing")
        try:
            lost = write_ends(conn, [(lease, result)])
        except errors.OperationalError:  # the connection is gone, perhaps with the server, which comes back
            ends = [(lease, result)]
            lost = persistently(self._db, lambda own: write_ends(own, ends), patience=self._rhythm.lease)
        if lost:
            log.warning("task run %s: lost before its end was written", lease.id)
        self._at("finished")

    def _failed(self, conn: Connection, task: Task, lease: Lease, error: Exception) -> None:
        log.warning("task run %s: attempt %s failed (%s)", lease.id, lease.attempt, type(error).__name__)
        said = leases.storable(redacted_text(str(error) if isinstance(error, TaskError) else _said(error)))
        final = isinstance(error, TaskRefusedError)
        delay = task.policy(self._rhythm).delay(lease.attempt)

        def go(own: Connection) -> None:
            with own.transaction():
                if final:
                    leases.end(own, lease, status="failed", error=said)
                    status = "failed"
                else:
                    status = leases.retry_later(own, lease, delay=delay, error=said)
                if status == "failed":
                    announce_if_asked(own, lease.id)
                else:
                    params = {"id": lease.id, "fence": lease.fence, "how": "error", "error": said}
                    own.execute(_ST["end_attempt"], params)

        del conn  # the failure may be that of the connection
        with suppress(LeaseLostError):
            persistently(self._db, go, patience=self._rhythm.lease)

    def _interrupted(self, lease: Lease) -> None:
        """Give the run back at a Ctrl-C: it waits again, its attempt not counted."""
        with suppress(LeaseLostError, DatabaseUnavailableError), self._db.connection() as conn, conn.transaction():
            leases.hand_back(conn, lease)
            params = {"id": lease.id, "fence": lease.fence, "how": "handed_back", "error": None}
            conn.execute(_ST["end_attempt"], params)
            conn.execute(_ST["wake"])


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
