"""What is old goes: faults of jobs that ended long ago, workbooks that no job can need any more, and what ended well.

Job rows stay for ever: they are the memory that knows a workbook again. A workbook stays as long as a job is open or
can be taken up (failed or cancelled before its sheet's end), and for the set number of days after its last job ended.
One that no job names is a submission that was broken off, or one under way: it stays for a day.

Of timers, durable runs and messages those that ended well go, after days of their own. Failed and dead ones stay until
somebody has looked at them, and so do runs that were started under a key: they know the key again.

Safe to break off and to run by two at once. *Not guaranteed*: that a workbook is found by somebody who kept its path.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import partial
from typing import LiteralString

from importer.db import Connection, Database, statements
from importer.store import Store

_ST = statements("retention")

#: How long a workbook that no job names stays in the store.
GRACE = dt.timedelta(days=1)

#: Jobs, or workbooks, per look.
_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What went."""

    #: Bad cells of jobs that ended long ago.
    faults: int = 0
    #: Workbooks of the store.
    workbooks: int = 0
    #: What rows held before imports changed them: those imports cannot be undone any more.
    before_images: int = 0
    #: Timers, durable runs and messages that ended well.
    timers: int = 0
    runs: int = 0
    messages: int = 0


def prune(db: Database) -> Pruned:
    """Remove what is older than the settings keep; return how much went.

    Each job's faults go in a transaction of their own.

    Raises:
        StoreError, DatabaseError: what went before that is gone; the rest goes next time.
    """
    return Pruned(
        faults=_prune_faults(db),
        workbooks=_prune_workbooks(db),
        before_images=_prune_before_images(db),
        timers=_prune_ended(db, "delete_timers"),
        runs=_prune_ended(db, "delete_runs"),
        messages=_prune_ended(db, "delete_messages"),
    )


def _prune_ended(db: Database, statement: LiteralString) -> int:
    """Remove rows that ended well, some at a time, each time in a transaction of its own."""
    params = {"keep": dt.timedelta(days=db.settings.keep_finished_days), "limit": _AT_ONCE}
    gone = 0
    with db.connection() as conn:
        while (some := conn.execute(_ST[statement], params).rowcount) > 0:
            gone += some
    return gone


def _prune_faults(db: Database) -> int:
    keep = dt.timedelta(days=db.settings.keep_faults_days)
    gone = 0
    with db.connection() as conn:
        while ids := conn.execute(_ST["jobs_with_old_faults"], {"keep": keep, "limit": _AT_ONCE}).fetchall():
            for row in ids:
                gone += conn.execute(_ST["delete_faults"], {"id": row["id"], "keep": keep}).rowcount
    return gone


def _prune_before_images(db: Database) -> int:
    """An undo needs the workbook too, so before-images stay as long as it."""
    keep = dt.timedelta(days=db.settings.keep_workbooks_days)
    gone = 0
    with db.connection() as conn:
        while ids := conn.execute(_ST["jobs_with_old_images"], {"keep": keep, "limit": _AT_ONCE}).fetchall():
            for row in ids:
                gone += conn.execute(_ST["delete_images"], {"id": row["id"], "keep": keep}).rowcount
    return gone


def _prune_workbooks(db: Database) -> int:
    keep = dt.timedelta(days=db.settings.keep_workbooks_days)
    store = Store(db.settings.store)
    store.restore()
    hashes = list(store.contents())
    gone = 0
    with db.connection() as conn:
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            for content_hash in sorted(set(some) - needed(conn, some, keep=keep)):
                gone += store.discard(
                    content_hash, older_than=GRACE, needed=partial(_is_needed, conn, keep, content_hash)
                )
    return gone


def needed(conn: Connection, hashes: list[str], *, keep: dt.timedelta) -> set[str]:
    """Of these contents, those that a job can need or that one needed not long ago."""
    rows = conn.execute(_ST["needed"], {"hashes": hashes, "keep": keep}).fetchall()
    return {row["content_hash"] for row in rows}


def _is_needed(conn: Connection, keep: dt.timedelta, content_hash: str) -> bool:
    return bool(needed(conn, [content_hash], keep=keep))
