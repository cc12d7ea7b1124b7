"""Looking after the run that is running, from a second connection: it is kept, or its function is told that it is gone.

Tiny runs are over before anybody looks. While a transaction of the run itself is open nothing is done: it renews the
lease, and a renewal from here would wait for its lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from importer import lease as leases
from importer.db import Connection, Database, statements
from importer.errors import DatabaseError, LeaseLostError
from importer.lease import Lease
from importer.task_run.context import Context, gone

log = logging.getLogger(__name__)

#: How often is looked, in seconds; so a cancel is seen within a second.
_LOOK_S = 0.5

#: A claimed run that has not begun: its lease, and the row of the claim.
Claimed = tuple[Lease, dict[str, Any]]

_ST = statements("task_run")


class Watch:
    """Watches one worker's current run, from a thread that starts with the first; close it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._current: Context | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        #: The rest of the slice: it goes back to the others when the current run takes long.
        self.rest: deque[Claimed] = deque()

    def take(self) -> Claimed | None:
        """Take the next claimed run off the slice."""
        with self._lock:
            return self.rest.popleft() if self.rest else None

    def begin(self, context: Context) -> None:
        """Watch a run from now on."""
        context.renewed_s = time.monotonic()
        self._current = context
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_on, name="rowlease-watch", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stop watching the run."""
        self._current = None

    def give_back_rest(self) -> None:
        """Give back what was claimed and has not begun."""
        with self._lock:
            rest, self.rest = self.rest, deque()
        if rest:
            with self._db.connection() as conn, conn.transaction():
                for lease, _ in rest:
                    with suppress(LeaseLostError):
                        leases.hand_back(conn, lease)
                conn.execute(_ST["wake"])

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _look_on(self) -> None:
        last: Context | None = None
        while True:
            context = self._current
            tick_s = _LOOK_S if context is None else min(_LOOK_S, context.lease.ttl.total_seconds() / 6)
            if self._stop.wait(tick_s):
                return
            if context is not None and context is self._current:
                try:
                    if context is last:  # it took a whole tick: let others have what waits behind it
                        self.give_back_rest()
                    with self._db.connection() as conn:
                        self._look(conn, context)
                except DatabaseError as error:
                    log.warning("task run %s: cannot be looked after: %s", context.run_id, error)
            last = context

    def _look(self, conn: Connection, context: Context) -> None:
        lease = context.lease
        if not context.guard.acquire(blocking=False):
            context.renewed_s = time.monotonic()  # its own transaction renews
            return
        try:
            row = conn.execute(_ST["held"], {"id": lease.id, "fence": lease.fence}).fetchone()
            if context is not self._current:
                return
            if row is None or not row["held"]:
                context.lost(gone(lease, None if row is None else row["status"]))
            elif time.monotonic() - context.renewed_s > lease.ttl.total_seconds() / 3:
                leases.renew(conn, lease)
                context.renewed_s = time.monotonic()
        except LeaseLostError as error:
            context.lost(error)
        finally:
            context.guard.release()
