"""The lease: a time-limited right to one row, and proof on every write that it still stands.

A lease begins when a claim commits and ends when the holder gives it back, when it ends the row, or when somebody
takes the row away. Between the two lies one *term*, and its name is the pair (id, fence). The fence of a row rises at
each claim and at everything that ends a term, so no two terms of a row ever share a number.

```
            claim                      renew (heartbeat, or the first statement of `fenced`)
 waiting ───────────> held ──────────────┐
    ^                  │ ^───────────────┘
    │  hand_back       ├──────────────> ended      end; retry_later and fail_exhausted at the last attempt
    └──────────────────┤
       retry_later     └──────────────> held, next fence      lease_until passed and somebody claims
```

**Who is authoritative.** The row, and nothing else: not a worker's memory, not its clock, not the fact that its
connection is still open. `lease_until` is judged by the database's clock, `rowlease.clock()`, and only by those who
would like to take the row. A holder never asks whether its time is up; it asks whether the row still has its fence. A
worker whose machine is an hour off is therefore no danger to anyone.

**What a delayed call cannot do.** Each write of a holder names id, fence and the held status in its `where`, and
looks at what came back: no row is `LeaseLostError`, and the transaction rolls back. A holder that was stopped for an
hour and wakes in the middle of a call can neither renew, nor hand back, nor end, nor (through `fenced`) commit a row
of work, once another has claimed, cancelled or failed the row. A renewal after `lease_until` is granted as long as
nobody took the row: its time being up makes a lease takeable, not lost.

**Work under a lease** runs in `fenced`: one transaction whose first statement renews by the fence and so locks the
row until the end. While that transaction is open nobody can take the row, even when its time runs out, since those
who claim pass over locked rows. Its commit therefore proves that the lease stood for all of it. A heartbeat from a
second connection would wait for this lock: renew only around work that is outside such a transaction.

**Under failure.** A holder that dies keeps the row until `lease_until`; then the next claim takes it as the next
attempt, with the first `started_at`. There is no rescuer. A row whose lease ran out at its last attempt is not claimed
but failed by `fail_exhausted`, which the rooms call before the claim and in its transaction, so that what they owe to
the world about the end of a row commits with it. Attempts count crashes and errors only: a graceful stop gives its
attempt back. A transaction that rolls back leaves the lease as it was before.

**What is not guaranteed.** That work outside the database happens once: two holders may overlap there, the older one
learning of its loss only at its next write. That a holder learns of its loss early. That a claim sees a row which
another transaction has locked at that moment: it is passed over, and found by the next. Order among several workers:
each takes the first rows that are free.

Rejected: advisory locks and `for update` held for the length of the work (they end with the connection, which says
nothing about the worker, and pin a transaction for hours); a random token in place of the fence (it is unequal but
not ordered, so of two writes one cannot tell the later); a process that rescues (one more thing that can be down).
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Any

from importer.db import Connection, Database, sql, statements
from importer.errors import LeaseLostError
from importer.settings import Rhythm

#: The longest `last_error` that is kept.
LONGEST_ERROR = 2000


@dataclass(frozen=True, kw_only=True)
class _Words:
    """A leased table and its words for the states of a row."""

    #: Name of the table in the schema `rowlease`.
    table: str
    #: Nobody holds the row; it may be claimed when due.
    waiting: str
    #: Somebody holds it.
    held: str
    #: What a row becomes when its attempts are used up.
    failed: str
    #: All states that a row does not leave by itself, `failed` among them.
    ended: tuple[str, ...]
    #: What a claim asks of a waiting row besides: the name of a predicate in `sql/statements/lease.sql`.
    also: str = "any_row"


class Leased(Enum):
    """The leased tables: a closed set, so that identifiers never come from elsewhere."""

    IMPORT_JOBS = _Words(
        table="import_jobs",
        waiting="pending",
        held="running",
        failed="failed",
        ended=("success", "partial_success", "failed", "cancelled"),
    )
    TIMER_JOBS = _Words(
        table="timer_jobs",
        waiting="pending",
        held="processing",
        failed="failed",
        ended=("completed", "failed", "cancelled"),
    )
    TASK_RUNS = _Words(
        table="task_runs",
        waiting="pending",
        held="running",
        failed="failed",
        ended=("succeeded", "failed", "cancelled"),
    )
    TRIGGERS = _Words(table="triggers", waiting="idle", held="checking", failed="disabled", ended=("disabled",))
    OUTBOX_MESSAGES = _Words(
        table="outbox_messages",
        waiting="pending",
        held="delivering",
        failed="dead",
        ended=("dispatched", "dead"),
        also="head_of_its_key",
    )

    def __repr__(self) -> str:
        """Name the table and leave its words out."""
        return f"Leased.{self.name}"

    @property
    def table(self) -> str:
        """Name of the table in the schema `rowlease`."""
        return self.value.table

    @property
    def waiting(self) -> str:
        """The word for a row that nobody holds and that may be claimed."""
        return self.value.waiting

    @property
    def held(self) -> str:
        """The word for a row that somebody holds."""
        return self.value.held

    @property
    def failed(self) -> str:
        """The word for a row whose attempts are used up."""
        return self.value.failed

    @property
    def ended(self) -> tuple[str, ...]:
        """All words for a row that is over, `failed` among them."""
        return self.value.ended


@dataclass(frozen=True, kw_only=True)
class Lease:
    """One term of holding one row, as the claim gave it."""

    #: The table of the row.
    table: Leased
    #: The row.
    id: int
    #: The number of this term.
    fence: int
    #: Who holds it; for logs of workers only.
    holder: str = field(repr=False)
    #: How long the lease lasts after each renewal.
    ttl: timedelta
    #: Which attempt this is, from 1.
    attempt: int


def holder_name(kind: str = "import") -> str:
    """Make a name for a holder that no other has: `import:{host}:{pid}:{uuid}`."""
    return f"{kind}:{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}"


def claim(
    conn: Connection,
    table: Leased,
    *,
    holder: str,
    ttl: timedelta,
    limit: int = 1,
    id: int | None = None,  # noqa: A002 - the column's name
) -> list[Lease]:
    """Take up to `limit` due rows, first by priority, then by due time and age; of a priority, run-out leases first.

    With `id` it takes that row only, waiting (due or not) or run out; an empty list means it is neither, or locked
    just now. Runs in the caller's transaction when there is one; commit before the work starts. Rows at their last
    attempt are not taken: call `fail_exhausted` before, in the same transaction.
    """
    parameters: dict[str, Any] = {"holder": holder, "ttl": ttl, "limit": limit, "id": id}
    name = "claim" if id is None else "claim_one"
    rows = conn.execute(_statement(table, name), parameters).fetchall()
    return [
        Lease(table=table, id=row["id"], fence=row["fence"], holder=holder, ttl=ttl, attempt=row["attempt_count"])
        for row in rows
    ]


def renew(conn: Connection, lease: Lease) -> None:
    """Prolong the lease to `ttl` from now; locks the row until the caller's transaction ends.

    Raises `LeaseLostError` when the row is not held under this fence any more.
    """
    _write(conn, lease, "renew", {"ttl": lease.ttl})


@contextmanager
def fenced(conn: Connection, lease: Lease) -> Iterator[Connection]:
    """One transaction that commits only if the lease stood for all of it.

    Its first statement renews the lease by its fence and so locks the row; leaving the block commits, an exception
    rolls everything back, the renewal included.

    Raises `LeaseLostError` before the block runs.

        with fenced(conn, lease):
            conn.execute(...)
    """
    with conn.transaction():
        renew(conn, lease)
        yield conn


def hand_back(conn: Connection, lease: Lease) -> None:
    """Let the row wait again, due at once in its old place, and give its attempt back: the end of a graceful stop.

    Raises `LeaseLostError`.
    """
    _write(conn, lease, "hand_back", {})


def retry_later(conn: Connection, lease: Lease, *, delay: timedelta, error: str) -> str:
    """Let the row wait for `delay` after an error, or fail it when its attempts are used up; return its new status.

    Raises `LeaseLostError`.
    """
    row = _write(conn, lease, "retry_later", {"delay": delay, "error": storable(error)})
    return str(row["status"])


def postpone(conn: Connection, lease: Lease, *, delay: timedelta, error: str) -> None:
    """Let the row wait for `delay` and give its attempt back: nothing failed, but this worker cannot do it.

    Raises `LeaseLostError`.
    """
    _write(conn, lease, "postpone", {"delay": delay, "error": storable(error)})


def end(conn: Connection, lease: Lease, *, status: str, error: str | None = None) -> None:
    """End the row with one of the table's ended words and clear the lease; an error of an earlier attempt is forgotten.

    Raises `LeaseLostError`, and `ValueError` on a word that is none of the table's.
    """
    if status not in lease.table.ended:
        raise ValueError(f"{status!r} ends no row of {lease.table.table}; {', '.join(lease.table.ended)} do")
    _write(conn, lease, "end", {"status": status, "error": None if error is None else storable(error)})


def fail_exhausted(conn: Connection, table: Leased) -> list[dict[str, Any]]:
    """Fail the rows whose lease ran out at their last attempt.

    Returns `id`, `fence`, `attempt_count` and `last_error` of each. Call it before `claim`, in the same transaction,
    together with whatever else the end of a row demands. Rows that another transaction has locked are passed over.
    """
    return conn.execute(_statement(table, "fail_exhausted")).fetchall()


def exhausted(conn: Connection, table: Leased, *, limit: int = 100) -> list[tuple[int, int]]:
    """Name the rows whose lease ran out at their last attempt, by id and fence; nothing is locked.

    For rooms that must lock other rows first; then `fail_exhausted_one` in the same transaction.
    """
    rows = conn.execute(_statement(table, "exhausted"), {"limit": limit}).fetchall()
    return [(int(row["id"]), int(row["fence"])) for row in rows]


def fail_exhausted_one(conn: Connection, table: Leased, id: int, fence: int) -> str | None:  # noqa: A002 - the column
    """Fail a row that `exhausted` named, unless it changed since; return its error, or None when it did."""
    row = conn.execute(_statement(table, "fail_exhausted_one"), {"id": id, "fence": fence}).fetchone()
    return None if row is None else str(row["last_error"])


def slices(
    db: Database,
    table: Leased,
    *,
    holder: str,
    rhythm: Rhythm,
    limit: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Lease]:
    """Yield due rows one by one, claimed in slices of `rhythm.batch`, until none is due or `limit` were yielded.

    Each is to be ended, postponed or left to run out before the next is asked for. The rest of a slice is renewed
    while it waits its turn, and handed back when `stopping` says so or the caller breaks off; a row that was lost
    meanwhile is passed over.
    """
    left = limit
    while (left is None or left > 0) and not stopping():
        size = rhythm.batch if left is None else min(rhythm.batch, left)
        with db.connection() as conn:
            rest = claim(conn, table, holder=holder, ttl=rhythm.lease, limit=size)
        if not rest:
            return
        left = None if left is None else left - len(rest)
        renewed = time.monotonic()
        try:
            while rest and not stopping():
                if time.monotonic() - renewed > rhythm.lease.total_seconds() / 3:
                    rest, renewed = _kept(db, rest, renew), time.monotonic()
                    continue
                yield rest.pop(0)
        finally:
            if rest:
                _kept(db, rest, hand_back)


def _kept(db: Database, rest: list[Lease], write: Callable[[Connection, Lease], None]) -> list[Lease]:
    """Renew or hand back each; return those that were still ours."""
    kept = []
    with db.connection() as conn:
        for lease in rest:
            with suppress(LeaseLostError):
                write(conn, lease)
                kept.append(lease)
    return kept


def storable(error: str) -> str:
    """Cut an error to what `last_error` takes: 2,000 characters, none that PostgreSQL cannot hold."""
    return error.replace("\0", "\ufffd").encode(errors="replace").decode()[:LONGEST_ERROR]


def _write(conn: Connection, lease: Lease, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Run a statement of the holder's; `LeaseLostError` when it found no row under this fence."""
    row = conn.execute(_statement(lease.table, name), {"id": lease.id, "fence": lease.fence, **parameters}).fetchone()
    if row is None:
        raise LeaseLostError(lease.table.table, lease.id, lease.fence)
    return row


@cache
def _statement(table: Leased, name: str) -> sql.Composed:
    """Fill a statement with the identifiers and words of a table (words as literals: partial indexes need them)."""
    return statements("lease")[name].format(
        table=sql.Identifier("rowlease", table.table),
        waiting=sql.Literal(table.waiting),
        held=sql.Literal(table.held),
        failed=sql.Literal(table.failed),
        also=statements("lease")[table.value.also],
    )
