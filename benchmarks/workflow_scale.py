"""How workflow timers do at scale: `python -m benchmarks.workflow_scale [--divisor 100]`.

1. A claim of 20 timers with 1M pending in the future and 1M finished, as a ratio to an almost empty table.
2. A storm: 100,000 timers due at once, drained by one worker, the oldest first.
3. The lag of timers (moment fired after moment due) in `follow`, while imports run beside them.

On a server of its own with the settings of the house; nothing is left behind.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import importer as im
from importer import lease as leases
from importer.db import Connection, Database, EmbeddedServer, migrate
from importer.lease import Leased
from importer.settings import Rhythm
from importer.worker import follow
from importer.workflow import timers_due

WORKFLOW = im.Workflow.from_dict(
    {
        "name": "scale",
        "start": "wait",
        "nodes": [
            {"id": "wait", "type": "timer", "config": {"days": 10}},
            {"id": "say", "type": "log", "config": {"message": "{{n}}"}},
            {"id": "end", "type": "end"},
        ],
        "connections": [{"source": "wait", "target": "say"}, {"source": "say", "target": "end"}],
    }
)

#: Instances with a waiting token and its timer, as starting them would write them, but all at once.
_MANY = """
with made as (
    insert into rowlease.workflow_instances (
        workflow_name, workflow_version, start_digest, variables, next_token, status, finished_at
    )
    select 'scale', 1, 'x', '{"n": 1}', 2, %(status)s, case when %(status)s = 'running' then null else now() end
    from generate_series(1, %(count)s) returning id
),
tokens as (
    insert into rowlease.workflow_tokens (instance_id, number, node, status, entered_at, ended_at, outcome)
    select id, 1, 'wait', %(token)s, now(), case when %(token)s = 'active' then null else now() end,
        case when %(token)s = 'active' then null else 'done' end
    from made
)
insert into rowlease.timer_jobs (instance_id, token, node, status, due_at, finished_at)
select id, 1, 'wait', %(timer)s, case when %(timer)s = 'pending' then now() + %(ahead)s + id * %(apart)s end,
    case when %(timer)s = 'pending' then null else now() end
from made
"""


def fill(conn: Connection, count: int, *, ahead: timedelta, apart: timedelta, pending: bool = True) -> None:
    """Insert instances with timers."""
    words = ("running", "active", "pending") if pending else ("completed", "consumed", "completed")
    conn.execute("set statement_timeout = 0")
    for begun in range(0, count, 100_000):
        conn.execute(
            _MANY,
            {
                "count": min(100_000, count - begun),
                "ahead": ahead,
                "apart": apart,
                **dict(zip(("status", "token", "timer"), words, strict=True)),
            },
        )
    conn.execute("analyze rowlease.timer_jobs")


def claim_ms(conn: Connection, rounds: int = 200) -> float:
    """Take the median of a claim of 20 of what is due, rolled back."""

    def once() -> float:
        began = time.perf_counter()
        with conn.transaction(force_rollback=True):
            leases.claim(conn, Leased.TIMER_JOBS, holder="timer:bench", ttl=timedelta(seconds=60), limit=20)
            return (time.perf_counter() - began) * 1000

    return statistics.median(once() for _ in range(rounds))


def claims(db: Database, divisor: int) -> None:
    """Compare a claim on a small table with one on a large one."""
    count = 1_000_000 // divisor
    with db.connection() as conn:
        fill(conn, 40, ahead=timedelta(hours=-1), apart=timedelta())
        small = claim_ms(conn)
        fill(conn, count, ahead=timedelta(days=1), apart=timedelta(milliseconds=1))
        fill(conn, count, ahead=timedelta(), apart=timedelta(), pending=False)
        large = claim_ms(conn)
        conn.execute("truncate rowlease.workflow_instances restart identity cascade")
    print(f"claim of 20: {small:.2f} ms with 40 rows; {large:.2f} ms with {count:,} pending and {count:,} finished")
    print(f"             ratio {large / small:.2f}")


def storm(db: Database, divisor: int) -> None:
    """Drain many due timers with one worker."""
    count = 100_000 // divisor
    with db.connection() as conn:
        fill(conn, count, ahead=timedelta(days=-1), apart=timedelta(milliseconds=1))
        began = time.perf_counter()
        fired = timers_due(db, "timer:bench")
        seconds = time.perf_counter() - began
        row = conn.execute(
            "select bool_and(t.fence = 2) as once from rowlease.timer_jobs as t where status = 'completed'"
        ).fetchone()
        order = conn.execute(
            "select corr(instance_id, place) as order"
            " from (select instance_id, row_number() over (order by id) as place"
            " from rowlease.workflow_events where what = 'passed' and node = 'wait') as passed"
        ).fetchone()
        conn.execute("truncate rowlease.workflow_instances restart identity cascade")
    print(f"storm: {fired:,} timers in {seconds:.1f} s, {fired / seconds:,.0f} a second; {row}, {order}")


def lag(db: Database, divisor: int, folder: Path) -> None:
    """Measure the lag of timers in a worker that imports at the same time."""
    count = max(1_000, 2_000 // divisor)
    form = im.Form.from_dict(
        {"name": "lag", "table": "lag_rows", "columns": [{"name": "n", "title": "N", "type": "integer"}]}
    )
    with db.connection() as conn:
        fill(conn, count, ahead=timedelta(seconds=2), apart=timedelta(milliseconds=20))
    for number in range(4):
        im.submit(_workbook(folder / f"{number}.xlsx", number), form, db=db, create_table=True)
    stop = threading.Event()
    worker = threading.Thread(target=follow, args=(db,), kwargs={"stop": stop}, daemon=True)
    worker.start()
    try:
        _until(lambda: not _pending(db), deadline_s=300)
    finally:
        stop.set()
        worker.join()
    with db.connection() as conn:
        rows = conn.execute(
            "select extract(epoch from e.at - (select min(created_at) from rowlease.timer_jobs)"
            " - interval '2 seconds' - t.id * interval '20 milliseconds')::float8 as lag"
            " from rowlease.workflow_events as e join rowlease.timer_jobs as t on t.instance_id = e.instance_id"
            " where e.what = 'passed' and e.node = 'wait'"
        ).fetchall()
        conn.execute("truncate rowlease.workflow_instances restart identity cascade")
    shift = min(row["lag"] for row in rows)
    lags = sorted((row["lag"] - shift) * 1000 for row in rows)
    imported = sum(job.success_rows for job in im.jobs(db=db))
    print(
        f"lag of {len(lags):,} timers, one each 20 ms, while {imported:,} rows were imported: "
        f"p50 {lags[len(lags) // 2]:.0f} ms, p99 {lags[int(len(lags) * 0.99)]:.0f} ms"
    )


def _workbook(path: Path, number: int) -> Path:
    from xlsxwriter import Workbook  # noqa: PLC0415 - only this needs it

    with Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.write(0, 0, "N")
        for row in range(1, 50_001):
            sheet.write(row, 0, number * 100_000 + row)
    return path


def _pending(db: Database) -> bool:
    with db.connection() as conn:
        row = conn.execute("select exists (select from rowlease.timer_jobs where status = 'pending') as p").fetchone()
    return row is not None and bool(row["p"])


def _until(condition: Callable[[], bool], *, deadline_s: float) -> None:
    ends = time.monotonic() + deadline_s
    while not condition() and time.monotonic() < ends:
        time.sleep(0.1)


def main() -> None:
    """Run all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--divisor", type=int, default=1, help="make everything so much smaller")
    divisor = parser.parse_args().divisor
    folder = Path(tempfile.mkdtemp(prefix="rowlease-"))
    server = EmbeddedServer(folder)
    quick = Rhythm(start_delay=timedelta(milliseconds=1), batch=20, lease=timedelta(seconds=60))
    imports = Rhythm(start_delay=timedelta(milliseconds=1), batch=5, lease=timedelta(seconds=300))
    settings = im.Settings(data_folder=folder, timers=quick, imports=imports)
    try:
        with Database(server.url(), settings) as db:
            migrate(db)
            im.store_workflow(WORKFLOW, db=db)
            claims(db, divisor)
            storm(db, divisor)
            lag(db, divisor, folder)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
