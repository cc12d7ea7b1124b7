"""Timers: due moments of workflow tokens that survive restarts, crashes and weeks.

```
put ──► pending ──claim──► processing ──► completed     its token was moved, in the same transaction
            ▲                  │ ├──────► failed        attempts used up; its instance fails with it
            └── retry, release─┘ └──────► cancelled     the instance or the token was over, or another way was faster
```

A timer is a leased row (`importer.lease`), one per token, due by the database's clock. What firing it means is the
business of `importer.workflow`; here is the row. A token whose node is entered again keeps the timer it has.

**Not guaranteed**: that a timer fires at its moment; it fires when a worker looks after it, the oldest first.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from importer.db import Connection, statements

Status = Literal["pending", "processing", "completed", "failed", "cancelled"]

_ST = statements("timer_job")


@dataclass(frozen=True, kw_only=True)
class TimerJob:
    """One timer as it stood when it was read; moments are aware and in UTC."""

    id: int
    #: pending processing completed failed cancelled.
    status: Status
    #: When it is to fire; null once it fired or failed.
    due_at: dt.datetime | None
    #: Attempts that crashed, failed or are running now.
    attempt_count: int
    max_attempts: int
    #: The last error, or why no worker here could fire it.
    last_error: str | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    #: The workflow instance, and the number of the token in it.
    instance_id: int
    token: int
    #: The node on which the token stands.
    node: str


def put(
    conn: Connection, *, instance_id: int, token: int, node: str, due_at: dt.datetime, max_attempts: int, wake: bool
) -> None:
    """Write the timer of a token in the caller's transaction, unless it has one; `wake` tells waiting workers."""
    params = {
        "instance_id": instance_id,
        "token": token,
        "node": node,
        "due_at": due_at,
        "max_attempts": max_attempts,
    }
    conn.execute(_ST["put"], params)
    if wake:
        conn.execute(_ST["wake"])


def cancel(conn: Connection, *, instance_id: int, tokens: Iterable[int]) -> int:
    """Cancel the open timers of these tokens, also a held one, whose holder then loses it; return how many."""
    return conn.execute(_ST["cancel"], {"instance_id": instance_id, "tokens": list(tokens)}).rowcount


def timer(conn: Connection, id: int) -> TimerJob | None:  # noqa: A002 - the column's name
    """Read one timer; none when it is gone."""
    row = conn.execute(_ST["timer"], {"id": id}).fetchone()
    return None if row is None else _timer(row)


def timers(conn: Connection, *, instance_id: int) -> list[TimerJob]:
    """Read the timers of an instance, oldest first."""
    return [_timer(row) for row in conn.execute(_ST["of_instance"], {"instance_id": instance_id}).fetchall()]


def due(conn: Connection) -> int:
    """Count the timers that could be claimed now, up to a thousand."""
    row = conn.execute(_ST["due"]).fetchone()
    return 0 if row is None else int(row["due"])


def next_moment_s(conn: Connection) -> float | None:
    """Seconds until a timer becomes due or a lease runs out (negative: already); null when there is none."""
    row = conn.execute(_ST["next_moment"]).fetchone()
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def _timer(row: Mapping[str, Any]) -> TimerJob:
    return TimerJob(**row)
