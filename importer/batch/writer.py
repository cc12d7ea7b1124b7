"""The one thread that writes: each batch in one fenced transaction, in order, on a connection of its own.

```
reader ──put──► queue of two ──► fenced: renew │ COPY │ faults │ cursor │ commit
                                 nothing to do for a third of the lease: renew
```

The first statement of a transaction renews the lease by its fence and locks the job's row; the last moves the cursor
from where the batch began. So a stale writer is stopped before it writes, and a batch that was committed is never
written again.

**A lost connection** leaves it open whether the transaction was committed. The writer connects again and reads the
cursor, which tells: still at the batch's start, it is written again; behind it, it was committed.

**Time.** A batch may take a third of the lease. One that takes longer is rolled back and goes in halves, and so do
those after it. A deadlock is repeated. What is not guaranteed: that a single row goes in within that time; it then
ends as a failure of the world.

Measured: one writer thread with a queue of two takes the wall time of an import to 0.67-0.77x; encoding in it does not
help.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import Literal, Protocol, Self, TypeVar

from importer import import_job
from importer.batch.apply import apply
from importer.batch.faults import store_faults
from importer.batch.plan import Batch, Outcome, Plan
from importer.db import Connection, Database, database_error, errors, repeat_on_conflict
from importer.errors import DatabaseUnavailableError
from importer.lease import Lease, fenced, renew

T = TypeVar("T")


class Apply(Protocol):
    """What becomes of a batch in the fenced transaction: `importer.batch.apply.apply`, or an undo."""

    def __call__(self, conn: Connection, plan: Plan, batch: Batch, *, copying: Callable[[], None]) -> Outcome:
        """Do it, and say what became of the rows."""


#: Named moments of an import, at which a test may end the process.
Point = Literal["claimed", "copying", "copied", "committed", "finishing"]
At = Callable[[Point], None]

#: How long a lost connection is tried to get back, and the pauses between tries, in seconds.
PATIENCE_S = 60.0
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class RefuseAllError(Exception):
    """A form that does not keep the good rows of a sheet with faults has met one, or as many as its line.

    That is `refuse_all` with a fault that only the database could tell, or `stop_at`. Nothing of the batch stays.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("refuse_all")
        self.outcome = outcome


class Writer:
    """Writes batches in a thread of its own; a failure of the thread is raised by the next call from the reader."""

    def __init__(
        self, db: Database, lease: Lease, plan: Plan, *, at: At, most_failed: int | None = None, work: Apply = apply
    ) -> None:
        self._lease = lease
        self._plan = plan
        self._at = at
        self._apply = work
        #: Failed rows at which the job's rows go; none when the good rows stay whatever happens.
        self._most_failed = most_failed
        self._queue: queue.Queue[Batch | None] = queue.Queue(maxsize=2)
        self._stopped = threading.Event()
        self._session = _Session(db)
        self._error: BaseException | None = None
        self._most: int | None = None
        #: Data rows that were committed by this writer, and how many of them failed.
        self.committed = 0
        self.failed = 0
        self._thread = threading.Thread(target=self._run, name=f"import {lease.id}", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """Let the batch that is being written end, drop those that wait, and end the thread.

        Whoever is interrupted does not wait: the statement that runs is cancelled, and its batch rolled back.
        """
        self._stopped.set()
        if kind is not None and not issubclass(kind, Exception):
            self._session.cancel()
        self._thread.join()

    def put(self, batch: Batch, *, waiting: Callable[[], None]) -> None:
        """Hand over the next batch; calls `waiting` now and then while the queue is full."""
        while True:
            self.raise_error()
            try:
                self._queue.put(batch, timeout=0.1)
            except queue.Full:
                waiting()
            else:
                return

    def close(self, *, waiting: Callable[[], None]) -> None:
        """Wait until every batch is committed."""
        self._put_end(waiting)
        while self._thread.is_alive():
            self._thread.join(timeout=0.1)
            waiting()
        self.raise_error()

    def raise_error(self) -> None:
        """Raise what ended the thread, if anything did."""
        if self._error is not None:
            raise self._error

    def _put_end(self, waiting: Callable[[], None]) -> None:
        while self._thread.is_alive():
            try:
                self._queue.put(None, timeout=0.1)
            except queue.Full:
                waiting()
            else:
                return

    def _run(self) -> None:
        try:
            try:
                while (batch := self._next(self._session)) is not None:
                    self._write(self._session, batch)
            finally:
                self._session.close()
        except BaseException as error:  # noqa: BLE001 - raised in the reader's thread
            self._error = error

    def _next(self, session: _Session) -> Batch | None:
        """The next batch, or nothing at the end; renews the lease while there is nothing to write."""
        rhythm = self._lease.ttl.total_seconds() / 3
        renewed = time.monotonic()
        while not self._stopped.is_set():
            try:
                return self._queue.get(timeout=min(rhythm, 0.1))
            except queue.Empty:
                if time.monotonic() - renewed >= rhythm:
                    session.run(lambda conn, _: renew(conn, self._lease), stopped=self._stopped)
                    renewed = time.monotonic()
        return None

    def _write(self, session: _Session, batch: Batch) -> None:
        parts = self._cut(batch)
        while parts and not self._stopped.is_set():
            part = parts.pop(0)
            try:
                outcome = session.run(partial(self._transact, part), stopped=self._stopped)
            except (errors.QueryCanceled, _TooLongError):
                if len(part) == 1:
                    raise
                self._most = max(1, len(part) // 2)
                parts = self._cut(part) + parts
                continue
            self.committed += len(part)
            self.failed += outcome.failed if outcome else 0
            self._at("committed")

    def _cut(self, batch: Batch) -> list[Batch]:
        most = self._most or len(batch)
        return [batch.part(at, min(at + most, len(batch))) for at in range(0, len(batch), most)]

    def _transact(self, batch: Batch, conn: Connection, doubt: bool) -> Outcome | None:  # noqa: FBT001 - one caller
        """Write one batch; nothing when a lost connection had committed it before."""
        began = time.monotonic()
        with fenced(conn, self._lease):
            if doubt and import_job.work(conn, self._lease).cursor == batch.start + len(batch):
                return None
            outcome = self._apply(conn, self._plan, batch, copying=lambda: self._at("copying"))
            if self._most_failed is not None and self.failed + outcome.failed >= self._most_failed:
                raise RefuseAllError(outcome)
            store_faults(conn, self._plan, outcome.faults)
            import_job.move_cursor(
                conn,
                self._lease,
                cursor=batch.start,
                success=outcome.success,
                failed=outcome.failed,
                skipped=outcome.skipped,
                updated=outcome.updated,
            )
            self._at("copied")
            if time.monotonic() - began > self._lease.ttl.total_seconds() / 3 and len(batch) > 1:
                raise _TooLongError
        return outcome


class _TooLongError(Exception):
    """A batch took longer than a third of the lease and was rolled back."""


class _Session:
    """A connection that is opened again when it is lost."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._stack = ExitStack()
        self._conn: Connection | None = None

    def cancel(self) -> None:
        """Cancel the statement that runs, from another thread; nothing happens when none does."""
        conn = self._conn
        if conn is not None and not conn.closed:
            with suppress(errors.Error):
                conn.cancel_safe(timeout=2)

    def run(self, work: Callable[[Connection, bool], T], *, stopped: threading.Event) -> T:
        """Run a whole transaction; repeat it after a deadlock and, on a new connection, after a lost one.

        `work` is told whether a connection was lost while it ran before: it may have been committed.

        Raises:
            DatabaseUnavailableError: the connection did not come back in time.
        """
        deadline = time.monotonic() + PATIENCE_S
        pauses = iter(_PAUSES_S)
        doubt = False
        while True:
            try:
                conn = self._connection()
                return repeat_on_conflict(partial(work, conn, doubt))
            except (errors.Error, DatabaseUnavailableError) as error:
                failure = database_error(error, self._db.label) if isinstance(error, errors.Error) else error
                if not isinstance(failure, DatabaseUnavailableError):
                    raise
                self.close()
                doubt = True
                if time.monotonic() > deadline or stopped.wait(next(pauses, _PAUSES_S[-1])):
                    raise failure from error

    def _connection(self) -> Connection:
        if self._conn is None or self._conn.closed:
            self.close()
            self._conn = self._stack.enter_context(self._db.dedicated())
        return self._conn

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._conn = None
        self._stack.close()
        self._stack = ExitStack()
