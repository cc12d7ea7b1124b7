"""Where psycopg's exceptions stop: at the edge of this room they become `DatabaseError`, with one sentence.

`Database.connection()` and `Database.dedicated()` are that edge, so inside a `with db.connection()` block a room may
still catch a class of `errors` (a unique violation, say); what leaves the block is ours. `translated` is the same
edge for code that was handed a connection.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg import errors

from importer.errors import DatabaseError, DatabaseUnavailableError

T = TypeVar("T")

#: Transactions that PostgreSQL broke off so that another could go on: repeating them is the remedy (PostgreSQL
#: manual, 13.5).
CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)

#: SQLSTATE classes that mean the connection is gone or refused: connection exception, invalid authorization.
_UNREACHABLE_CLASSES = ("08", "28")
#: admin shutdown, crash shutdown, cannot connect now, database dropped, idle session timeout, too many connections.
_UNREACHABLE = {"57P01", "57P02", "57P03", "57P04", "57P05", "53300"}

_ADVICE = {
    "25006": "the server or the session is read-only",
    "25P02": "a statement before it failed; roll the transaction back first",
    "42501": "the database user lacks the right",
    "53100": "the disk of the server is full; make room and try again",
    "53200": "the server is out of memory; try again",
    "55P03": "another session holds what was needed for too long; try again",
    "57014": "it took longer than the statement_timeout of the session, or was cancelled",
    "25P03": "the session was idle inside a transaction for too long and was ended",
}


@contextmanager
def translated(label: str) -> Iterator[None]:
    """Turn a psycopg error that leaves the block into a `DatabaseError` about the database `label`."""
    try:
        yield
    except psycopg.Error as error:
        raise database_error(error, label) from error


def database_error(error: psycopg.Error, label: str) -> DatabaseError:
    """Say in one sentence what PostgreSQL did; `DatabaseUnavailableError` when there is no connection (any more)."""
    state = error.sqlstate
    reason = " ".join((error.diag.message_primary or str(error) or type(error).__name__).split())
    if state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseUnavailableError(f"no connection to {label}: {reason}")
    if state is not None and (state in _UNREACHABLE or state[:2] in _UNREACHABLE_CLASSES):
        return DatabaseUnavailableError(f"no connection to {label}: {reason} (SQLSTATE {state})")
    advice = f"; {_ADVICE[state]}" if state in _ADVICE else ""
    return DatabaseError(f"{label}: {reason}{advice}" + (f" (SQLSTATE {state})" if state else ""))


def repeat_on_conflict(work: Callable[[], T], *, times: int = 5) -> T:
    """Run a whole transaction, and run it again when PostgreSQL broke it off by a deadlock or a serialization failure.

    `work` must begin and end its own transaction and may run up to `times` times; the last failure is raised. Between
    two runs there is a short pause of random length, so that the same two do not meet again.
    """
    for run in range(1, times):
        try:
            return work()
        except CONFLICTS:
            pass
        except DatabaseError as error:
            if not isinstance(error.__cause__, CONFLICTS):
                raise
        time.sleep(random.uniform(0, 0.02 * run))  # noqa: S311 - a pause is no secret
    return work()
