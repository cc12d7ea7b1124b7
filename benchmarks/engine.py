"""``python -m benchmarks.engine``: durable tasks beside the bare statements and, where it is installed, pgqueuer.

    python -m benchmarks.engine                     20,000 tasks that do nothing, three rounds
    python -m benchmarks.engine --jobs 2000 --rounds 1

Each side gets a database of its own. A worker is a process that connects, says that it is ready, and drains when it is
told to, so start-up is not measured; the time is from the word to the end of the last worker. The sides take turns, and
the order turns round with each round. ``bare`` is what can be reached with plain statements: a narrow table without
checks, claims of 500 with SKIP LOCKED, and fenced updates one by one (``each``) or of all claimed (``batch``).

Pick-up is the time from the call that enqueues to the first line of the function, in an idle worker that listens.
``--peers PYTHON`` names an interpreter in which pgqueuer is installed; without it that side is left out and said so.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from benchmarks.machine import machine_words
from benchmarks.peers import ROOT
from benchmarks.server import Server, address_of, open_server
from importer.db import Database, migrate
from importer.lease import holder_name
from importer.settings import Settings
from importer.task_run import Context, Task, enqueue, enqueue_many, tasks_due

_CLAIMED: Final = 500
_DATABASE: Final = "rowlease_bench_engine"
_BARE: Final = """
create table bare (
    id bigint generated always as identity primary key,
    status text not null default 'pending',
    due_at timestamptz not null default now(),
    fence bigint not null default 0,
    input jsonb
);
create index on bare (due_at) where status = 'pending'
"""
_BARE_CLAIM: Final = """
update bare set status = 'running', fence = fence + 1
where id = any (array(
    select id from bare where status = 'pending' and due_at <= now() order by due_at limit %s for update skip locked
))
returning id, fence
"""
_BARE_EACH: Final = "update bare set status = 'done' where id = %s and fence = %s and status = 'running'"
_BARE_BATCH: Final = """
update bare set status = 'done'
from unnest(%s::bigint[], %s::bigint[]) as ended (id, fence)
where bare.id = ended.id and bare.fence = ended.fence and status = 'running'
"""


def nothing(_ctx: Context) -> None:
    """Do nothing."""


TASKS: Final = {
    "ours, together": Task(name="nothing", version=1, function=nothing),
    "ours, each": Task(name="nothing", version=1, function=nothing, finish="each"),
}
SIDES: Final = ("bare, each", "ours, each", "bare, batch", "pgqueuer", "ours, together")


def work(side: str, address: str) -> None:
    """Be a worker: connect, say that it is ready, drain when told, say how many were run."""
    if side.startswith("ours"):
        with Database(address, Settings()) as db:
            with db.connection():
                _wait_for_the_word()
            done = tasks_due(db, holder_name("task"), tasks=[TASKS[side]])
    else:
        with psycopg.connect(address, autocommit=True) as conn:
            _wait_for_the_word()
            done = _drain_bare(conn, each=side.endswith("each"))
    print(done, flush=True)


def _wait_for_the_word() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _drain_bare(conn: psycopg.Connection, *, each: bool) -> int:
    done = 0
    while rows := conn.execute(_BARE_CLAIM, [_CLAIMED]).fetchall():
        if each:
            for row in rows:
                conn.execute(_BARE_EACH, row)
        else:
            conn.execute(_BARE_BATCH, [[row[0] for row in rows], [row[1] for row in rows]])
        done += len(rows)
    return done


@contextmanager
def fresh(server: Server) -> Iterator[str]:
    """Give the address of an empty database, dropped at the end."""
    name = sql.Identifier(_DATABASE)
    with psycopg.connect(server.url, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        conn.execute(sql.SQL("create database {}").format(name))
        yield address_of(server.url, _DATABASE)
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(name))


def put(side: str, address: str, jobs: int, peers: str) -> float:
    """Enqueue the jobs in bulk; return how many a second."""
    if side.startswith("ours"):
        with Database(address, Settings()) as db:
            migrate(db)
            began = time.perf_counter()
            enqueue_many(TASKS[side], range(jobs), db=db)
    elif side == "pgqueuer":
        return float(_peer(peers, "put", address, jobs))
    else:
        with psycopg.connect(address, autocommit=True) as conn:
            conn.execute(_BARE)
            began = time.perf_counter()
            with conn.cursor().copy("copy bare (input) from stdin") as copy:
                copy.write("".join(f"{number}\n" for number in range(jobs)))
    took_s = time.perf_counter() - began
    with psycopg.connect(address, autocommit=True) as conn:
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")
    return jobs / took_s


def drain(side: str, address: str, jobs: int, workers: int, peers: str) -> float:
    """Let so many workers drain the queue; return how many a second."""
    if side == "pgqueuer":
        command = [peers, str(Path(__file__).with_name("engine_pgqueuer.py")), "work", address, str(jobs)]
    else:
        command = [sys.executable, "-m", "benchmarks.engine", "--worker", side, "--address", address]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(workers)
    ]
    for each in running:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    began = time.perf_counter()
    for each in running:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    done = sum(int(each.communicate()[0].split()[-1]) for each in running)
    took_s = time.perf_counter() - began
    if side != "pgqueuer" and done != jobs:
        raise RuntimeError(f"{side}: {done} of {jobs} jobs were run")
    return jobs / took_s


def _peer(peers: str, *arguments: object) -> str:
    script = str(Path(__file__).with_name("engine_pgqueuer.py"))
    made = subprocess.run([peers, script, *map(str, arguments)], check=True, capture_output=True, text=True)
    return made.stdout.split()[-1]


def pick_up_ms(address: str, times: int) -> list[float]:
    """Measure how long an idle worker takes to begin a run, in milliseconds."""
    began: list[float] = []
    ran = threading.Event()

    def note(_ctx: Context) -> None:
        began.append(time.perf_counter())
        ran.set()

    task = Task(name="pick-up", version=1, function=note)
    stop = threading.Event()
    settings = Settings()
    settings = replace(settings, tasks=replace(settings.tasks, start_delay=timedelta(milliseconds=1)))
    found = []
    with Database(address, settings) as db:
        migrate(db)
        worker = threading.Thread(target=_listen, args=(db, task, stop))
        worker.start()
        for _ in range(times):
            stop.wait(0.02)
            ran.clear()
            asked = time.perf_counter()
            enqueue(task, db=db)
            ran.wait(10)
            found.append((began[-1] - asked) * 1000)
        stop.set()
        worker.join()
    return found


def _listen(db: Database, task: Task, stop: threading.Event) -> None:
    """Serve one task as the worker does: look, then wait for a notification."""
    with db.dedicated() as conn:
        conn.execute("listen rowlease")
        while not stop.is_set():
            if not tasks_due(db, holder_name("task"), tasks=[task]):
                for _ in conn.notifies(timeout=0.5, stop_after=1):
                    pass


def measure(options: argparse.Namespace, server: Server) -> dict[str, dict[str, list[float]]]:
    """Run all sides in turns; return figures by side and by what was measured."""
    figures: dict[str, dict[str, list[float]]] = {}
    sides = [side for side in SIDES if side != "pgqueuer" or options.peers]
    for turn in range(options.rounds):
        for side in sides if turn % 2 == 0 else reversed(sides):
            for workers in (1, 2):
                with fresh(server) as address:
                    bulk = put(side, address, options.jobs, options.peers)
                    rate = drain(side, address, options.jobs, workers, options.peers)
                found = figures.setdefault(side, {})
                found.setdefault("bulk", []).append(bulk)
                found.setdefault(f"drain {workers}", []).append(rate)
                print(f"{side}: bulk {bulk:,.0f}, drained by {workers}: {rate:,.0f} a second", file=sys.stderr)
    with fresh(server) as address:
        figures["pick-up, ms"] = {"ours": pick_up_ms(address, options.pick_ups)}
    return figures


def table(figures: dict[str, dict[str, list[float]]]) -> str:
    """Write the medians, and the marks that follow from them."""
    pick = sorted(figures["pick-up, ms"]["ours"])
    middles = {
        side: {what: statistics.median(values) for what, values in found.items()}
        for side, found in figures.items()
        if side != "pick-up, ms"
    }
    lines = ["| side | bulk enqueue, a second | drained by one worker | by two |", "|---|--:|--:|--:|"]
    for side, found in middles.items():
        lines.append(f"| {side} | {found['bulk']:,.0f} | {found['drain 1']:,.0f} | {found['drain 2']:,.0f} |")
    lines += [
        "",
        f"Pick-up of an idle worker: {statistics.median(pick):.1f} ms, p99 {pick[len(pick) * 99 // 100]:.1f} ms.",
        "",
        "| mark | must be | is |",
        "|---|--:|--:|",
    ]
    marks: list[tuple[str, str, str, str, float]] = [
        ("one by one, of bare each, one worker", "ours, each", "bare, each", "drain 1", 1.0),
        ("one by one, of bare each, two workers", "ours, each", "bare, each", "drain 2", 1.0),
        ("many at once, of pgqueuer, one worker", "ours, together", "pgqueuer", "drain 1", 1.05),
        ("many at once, of pgqueuer, two workers", "ours, together", "pgqueuer", "drain 2", 1.2),
    ]
    for name, ours, other, what, must in marks:
        if other in middles:
            lines.append(f"| {name} | {must:.2f} | {middles[ours][what] / middles[other][what]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description="Durable tasks beside their peers."
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pick-ups", type=int, default=200)
    parser.add_argument("--peers", default="", metavar="PYTHON", help="an interpreter in which pgqueuer is installed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.address)
        return
    with tempfile.TemporaryDirectory(prefix="rowlease-") as folder, open_server(Path(folder) / "pgdata") as server:
        figures = measure(options, server)
    print(f"{machine_words()}; PostgreSQL; {options.jobs:,} jobs, medians of {options.rounds}.\n")
    print(table(figures))
    if out := os.environ.get("ROWLEASE_BENCH_JSON"):
        Path(out).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
