"""What a running task has in its hands: input, steps, sleeps, facts, the ledger of outside operations.

Every write renews the lease by its fence in the same statement or transaction, so a worker that lost its run stores
nothing. A step whose result is stored is never run again; one that was in flight when the worker died is run from its
start. Names tell steps apart; a name that comes again in a run is numbered (`load`, `load#2`), so a task must reach its
steps in the same order each time it runs, as a loop over its input does and a branch on the time of day does not.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from importer import lease as leases
from importer.db import Connection, Database, statements
from importer.errors import LeaseLostError, TaskCancelledError
from importer.lease import Lease, Leased
from importer.task_run.definition import as_json, from_json
from importer.task_run.persistence import persistently
from importer.task_run.record import Fact
from importer.task_run.redaction import TaskLog

T = TypeVar("T")

#: Named moments of a run, at which a test may end the process.
At = Callable[[str], None]

_LOG = logging.getLogger("importer.task_run")
_ST = statements("task_run")


class Suspended(BaseException):
    """Leaves the function of a run that gave its place back; not to be caught (so it is no `Exception`)."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What `once` tells the function that acts outside."""

    #: Its name in the ledger of the run.
    key: str
    #: An earlier attempt began it and left no result: ask the outside world before doing it again.
    resumed: bool
    #: The same in every attempt and different for every other operation: for services that take such a key.
    idempotency_key: str


class Context:
    """One attempt of one run; its methods may be called from the thread that runs the task."""

    def __init__(
        self,
        db: Database,
        lease: Lease,
        *,
        input: Any,  # noqa: A002, ANN401 - the task's own type
        trace_id: str,
        priority: int,
        task: str,
        at: At = lambda _point: None,
    ) -> None:
        #: The validated input.
        self.input = input
        self.run_id = lease.id
        #: What belongs together has the same: hand it on to what this run starts.
        self.trace_id = trace_id
        #: 0 first to 3 last.
        self.priority = priority
        #: The number of this lease; it rises with each attempt.
        self.fence = lease.fence
        #: Which attempt this is, from 1.
        self.attempt = lease.attempt
        self._db = db
        self.lease = lease
        self._task = task
        self._at = at
        self._names: dict[str, int] = {}
        self._stored: dict[str, Any] | None = None if lease.fence > 1 else {}
        #: Held while a transaction of this run is open: the heartbeat would wait for its lock.
        self.guard = threading.Lock()
        #: When the watch renewed the lease last, by its own clock.
        self.renewed_s = 0.0
        self._gone: Exception | None = None

    @property
    def log(self) -> TaskLog:
        """A logger that names the run and hides secrets by field name and in addresses."""
        extra = {"run_id": self.run_id, "trace_id": self.trace_id, "task": self._task}
        return TaskLog(_LOG, extra)

    def lost(self, reason: Exception) -> None:
        """Say that the run is not held any more (called by the watch)."""
        self._gone = reason

    def cancelled(self) -> bool:
        """Tell whether the run was cancelled or taken over; known within a second of it."""
        return self._gone is not None

    def raise_if_cancelled(self) -> None:
        """Leave the function when the run was cancelled or taken over.

        Raises:
            TaskCancelledError: it was cancelled.
            LeaseLostError: another worker has it.
        """
        if self._gone is not None:
            raise self._gone

    def step(self, name: str, function: Callable[[], T]) -> T:
        """Run a function once and keep what it returns, as JSON; after a crash the kept value is returned.

        The first time too it is given as it will be read back: a tuple is a list, a moment a text.

        Raises:
            TaskCancelledError, LeaseLostError: the run is not ours any more; nothing is stored.
            TaskInputError: the value has no form in JSON.
        """
        own = self._numbered(f"step:{name}")
        stored = self._steps()
        if own in stored:
            self.raise_if_cancelled()
            return stored[own]  # type: ignore[no-any-return]  # as the function returned it, through JSON
        self._require_held()
        self._at("step begins")
        text = as_json(function(), f"the result of step {name}")
        self._at("step ran")
        self._store(own, text)
        self._at("step stored")
        return from_json(text)  # type: ignore[no-any-return]

    def sleep(self, duration: dt.timedelta | float) -> None:
        """Give the place back and go on after a duration (or so many seconds); costs no worker meanwhile."""
        delay = duration if isinstance(duration, dt.timedelta) else dt.timedelta(seconds=duration)
        own = self._numbered("sleep")
        until = self._steps().get(own)
        if until is None:
            until = self._moment_after(delay)
        elif self._is_over(until):
            return

        def go(conn: Connection) -> None:
            with leases.fenced(conn, self.lease):
                self._put_step(conn, own, f'"{until}"')
                self._suspend(conn, due_at=until, fact=None, how="asleep")
                self._at("suspending")

        self._write(go)
        self._at("suspended")
        raise Suspended

    def wait_for(
        self,
        fact: str,
        *,
        check: Callable[[], Any] | None = None,
        timeout: dt.timedelta | float | None = None,
    ) -> Fact:
        """Wait for a fact that `signal` writes, giving the place back; a fact that came before is found.

        `check` asks the outside world itself, before the run goes to wait and when the time is over: what it returns,
        unless None, is the fact. `timeout` ends the wait with `Fact.timed_out`, from then on for good.
        """
        own = self._numbered(f"wait:{fact}")
        waited = self._steps().get(own)
        if waited is not None and waited.get("timed_out"):
            return Fact(name=fact, timed_out=True)
        self._require_held()
        found = self._fact(fact)
        if found is None and check is not None:
            asked = check()
            if asked is not None:
                found = self._write(lambda conn: self._put_fact(conn, fact, asked))
        if found is not None:
            return found
        until = waited["until"] if waited is not None else self._moment_after(_duration(timeout))
        over = waited is not None and until is not None and self._is_over(until)

        def go(conn: Connection) -> Fact | None:
            with leases.fenced(conn, self.lease):
                row = conn.execute(_ST["fact"], {"id": self.run_id, "name": fact}).fetchone()
                if row is not None:
                    return Fact(**row)
                text = as_json({"until": until, "timed_out": over}, "the wait")
                self._put_step(conn, own, text)
                if over:
                    return Fact(name=fact, timed_out=True)
                self._suspend(conn, due_at=until, fact=fact, how="waiting")
                self._at("suspending")
                return None

        found = self._write(go)
        if found is not None:
            self._steps()[own] = {"until": until, "timed_out": found.timed_out}
            return found
        self._at("suspended")
        raise Suspended

    def once(
        self,
        key: str,
        function: Callable[[Operation], T],
        *,
        commit: Callable[[Connection, T], object] | None = None,
    ) -> T:
        """Do something outside at most once per attempt, by a ledger that is written before and after.

        A result that is in the ledger is returned and nothing is done. Else the function is called with an `Operation`;
        `resumed` says that an earlier attempt began it and left no result. `commit(conn, result)` writes what follows
        from the result in the transaction that stores it and proves the lease. The result is kept as JSON, and given
        as it will be read back.

        Raises:
            TaskCancelledError, LeaseLostError: the run is not ours any more; nothing of ours was written.
        """
        self.raise_if_cancelled()
        row = self._write(lambda conn: self._begin(conn, key))
        self._at("operation begun")
        if row["ended"]:
            return row["result"]  # type: ignore[no-any-return]  # as the function returned it, through JSON
        operation = Operation(key=key, resumed=row["attempts"] > 1, idempotency_key=f"task-run-{self.run_id}:{key}")
        result = function(operation)
        self._at("operation done")
        text = as_json(result, f"the result of operation {key}")

        def go(conn: Connection) -> None:
            with leases.fenced(conn, self.lease):
                params = {"id": self.run_id, "key": key, "result": text}
                stored = conn.execute(_ST["end_operation"], params).fetchone() is not None
                if stored and commit is not None:  # not stored: it was, and only the answer was lost
                    commit(conn, result)
                self._at("operation committing")

        self._write(go)
        self._at("operation committed")
        return from_json(text)  # type: ignore[no-any-return]

    def _begin(self, conn: Connection, key: str) -> dict[str, Any]:
        with leases.fenced(conn, self.lease):
            row = conn.execute(_ST["begin_operation"], {"id": self.run_id, "key": key}).fetchone()
            assert row is not None  # an insert or update that returns
            return row

    def _numbered(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"

    def _steps(self) -> dict[str, Any]:
        """What earlier attempts stored, read when it is first needed; a first attempt has nothing."""
        if self._stored is None:
            rows = self._read(lambda conn: conn.execute(_ST["steps"], {"id": self.run_id}).fetchall())
            self._stored = {row["name"]: row["result"] for row in rows}
        return self._stored

    def _store(self, name: str, text: str | None) -> None:
        self._write(lambda conn: self._put_step(conn, name, text))
        self._steps()[name] = from_json(text)

    def _put_step(self, conn: Connection, name: str, text: str | None) -> None:
        params = {"id": self.run_id, "fence": self.fence, "ttl": self.lease.ttl, "name": name, "result": text}
        if conn.execute(_ST["store_step"], params).fetchone() is None:
            raise LeaseLostError(Leased.TASK_RUNS.table, self.run_id, self.fence)

    def _put_fact(self, conn: Connection, name: str, payload: object) -> Fact:
        with leases.fenced(conn, self.lease):
            text = as_json(payload, f"the payload of the fact {name}")
            conn.execute(_ST["put_fact"], {"id": self.run_id, "name": name, "payload": text})
            row = conn.execute(_ST["fact"], {"id": self.run_id, "name": name}).fetchone()
            assert row is not None  # it was just written, or stood before
            return Fact(**row)

    def _suspend(self, conn: Connection, *, due_at: str | None, fact: str | None, how: str) -> None:
        params = {"id": self.run_id, "fence": self.fence, "due_at": due_at, "fact": fact, "how": how}
        if conn.execute(_ST["suspend"], params).fetchone() is None:
            raise LeaseLostError(Leased.TASK_RUNS.table, self.run_id, self.fence)

    def _fact(self, name: str) -> Fact | None:
        row = self._read(lambda conn: conn.execute(_ST["fact"], {"id": self.run_id, "name": name}).fetchone())
        return None if row is None else Fact(**row)

    def _moment_after(self, delay: dt.timedelta | None) -> str | None:
        row = self._read(lambda conn: conn.execute(_ST["moment_after"], {"delay": delay}).fetchone())
        return None if row is None or row["moment"] is None else row["moment"].isoformat()

    def _is_over(self, moment: str) -> bool:
        row = self._read(lambda conn: conn.execute(_ST["is_over"], {"moment": moment}).fetchone())
        return row is not None and bool(row["is_over"])

    def _require_held(self) -> None:
        """Ask the database, before work begins, whether the run is still ours."""
        self.raise_if_cancelled()
        row = self._read(lambda conn: conn.execute(_ST["held"], {"id": self.run_id, "fence": self.fence}).fetchone())
        if row is None or not row["held"]:
            self._gone = gone(self.lease, None if row is None else row["status"])
            raise self._gone

    def _read(self, work: Callable[[Connection], T]) -> T:
        return persistently(self._db, work, patience=self.lease.ttl)

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self.guard:
            try:
                return persistently(self._db, work, patience=self.lease.ttl)
            except LeaseLostError:
                self._gone = self._why_lost()
                if isinstance(self._gone, TaskCancelledError):
                    raise self._gone from None
                raise

    def _why_lost(self) -> Exception:
        row = self._read(lambda conn: conn.execute(_ST["held"], {"id": self.run_id, "fence": self.fence}).fetchone())
        return gone(self.lease, None if row is None else row["status"])


def gone(lease: Lease, status: str | None) -> Exception:
    """Say why a run is not held any more."""
    if status == "cancelled":
        return TaskCancelledError(lease.id)
    return LeaseLostError(Leased.TASK_RUNS.table, lease.id, lease.fence)


def _duration(timeout: dt.timedelta | float | None) -> dt.timedelta | None:
    return timeout if timeout is None or isinstance(timeout, dt.timedelta) else dt.timedelta(seconds=timeout)
