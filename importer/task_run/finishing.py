"""Writing the ends of many tiny runs at once, in the background, while the next ones run.

A run whose function has returned is not finished before its end is committed. Ends are gathered until there are enough
or the oldest is 50 ms old, and then written in one statement, each by its own fence. So a crash repeats at most what
was gathered and not yet written, which is bounded by `MOST`, in-flight ones included; an end that was committed never
runs again. A run that was lost meanwhile is left out by its fence, and only said in the log.

The rejected choice: to write the end of a run together with the claim of the next. It binds the end of work to there
being more work.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from typing import Any

from importer.db import Connection, Database, statements
from importer.errors import ImporterError
from importer.lease import Lease
from importer.task_run.context import At
from importer.task_run.persistence import persistently
from importer.task_run.queue import announce

log = logging.getLogger(__name__)

#: The most ends that are gathered or being written: what a crash can repeat.
MOST = 500
#: So many are written at once, as long as there are.
ENOUGH = 250
#: After this the oldest is written, alone if need be.
LONGEST_S = 0.05

#: A run that has ended, and its result as JSON.
End = tuple[Lease, str | None]

_ST = statements("task_run")


def write_ends(conn: Connection, ends: list[End]) -> list[int]:
    """Write ends; return the numbers of the runs that were lost before and are not ended.

    Those that nobody waits for in one statement that commits by itself, the others with their announcements.
    """
    if len(ends) == 1:
        lease, result = ends[0]
        rows = conn.execute(_ST["finish_one"], {"id": lease.id, "fence": lease.fence, "result": result}).fetchall()
    else:
        rows = conn.execute(_ST["finish_quietly"], _params(ends)).fetchall()
    written = {row["id"] for row in rows}
    if len(written) == len(ends):
        return []
    rest = [end for end in ends if end[0].id not in written]
    with conn.transaction():
        told = {row["id"] for row in conn.execute(_ST["finish"], _params(rest)).fetchall()}
        for run_id in sorted(told):
            announce(conn, run_id)
    return [lease.id for lease, _ in rest if lease.id not in told]


def _params(ends: list[End]) -> dict[str, list[Any]]:
    return {
        "ids": [lease.id for lease, _ in ends],
        "fences": [lease.fence for lease, _ in ends],
        "results": [result for _, result in ends],
    }


class Finishes:
    """Gathers ends and writes them from a thread of its own; close it, which writes what is left."""

    def __init__(self, db: Database, *, patience: dt.timedelta, at: At = lambda _point: None) -> None:
        self._db = db
        self._patience = patience
        self._at = at
        self._gathered: list[End] = []
        self._oldest_s = 0.0
        self._in_flight = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._error: ImporterError | None = None

    def add(self, lease: Lease, result: str | None) -> None:
        """Gather an end; waits while too many are unwritten. Raises what writing earlier ones raised."""
        with self._changed:
            while len(self._gathered) + self._in_flight >= MOST and self._error is None:
                self._changed.wait()
            self._raise()
            if not self._gathered:
                self._oldest_s = time.monotonic()
            self._gathered.append((lease, result))
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_on, name="rowlease-finishes", daemon=True)
                self._thread.start()
            elif len(self._gathered) in (1, ENOUGH):
                self._changed.notify_all()

    def drain(self) -> None:
        """Return when everything gathered is written. Raises what writing raised."""
        with self._changed:
            while (self._gathered or self._in_flight) and self._error is None:
                self._oldest_s = 0.0
                self._changed.notify_all()
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        """Write what is left and end the thread; errors were raised by `drain`."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _write_on(self) -> None:
        while True:
            with self._changed:
                while not self._gathered and not self._closing:
                    self._changed.wait()
                if not self._gathered:
                    return
                while len(self._gathered) < ENOUGH and not self._closing:
                    left_s = self._oldest_s + LONGEST_S - time.monotonic()
                    if left_s <= 0:
                        break
                    self._changed.wait(left_s)
                ends, self._gathered = self._gathered, []
                self._in_flight = len(ends)
            error = self._written(ends)
            with self._changed:
                self._in_flight = 0
                self._error = error
                self._changed.notify_all()
                if error is not None:
                    return

    def _written(self, ends: list[End]) -> ImporterError | None:
        """Write, again and again while the database restarts; a repeated write finds its ends written."""
        self._at("finishing")
        try:
            lost = persistently(self._db, lambda conn: write_ends(conn, ends), patience=self._patience)
        except ImporterError as error:
            return error
        if lost:
            log.warning(
                "task runs %s: ended by somebody else, or in a write whose answer was lost", ", ".join(map(str, lost))
            )
        self._at("finished")
        return None
