"""Trying a transaction again while the database restarts."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import TypeVar

from importer.db import Connection, Database, repeat_on_conflict
from importer.errors import DatabaseUnavailableError

T = TypeVar("T")

#: Pause between two tries to connect, in seconds.
_PAUSE_S = 0.2


def persistently(db: Database, work: Callable[[Connection], T], *, patience: dt.timedelta) -> T:
    """Run a whole transaction; again when PostgreSQL broke it off, or the connection was lost and comes back.

    `work` may run twice although the first time was committed and only the answer was lost: it has to write what it
    finds written once more without harm. After `patience` without a connection the failure is raised.
    """
    ends = time.monotonic() + patience.total_seconds()

    def whole() -> T:
        with db.connection() as conn:
            return work(conn)

    while True:
        try:
            return repeat_on_conflict(whole)
        except DatabaseUnavailableError:
            if time.monotonic() > ends:
                raise
            time.sleep(_PAUSE_S)
