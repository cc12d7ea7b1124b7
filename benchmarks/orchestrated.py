"""Figures of the imports that Dagster drives, beside a worker without it: `python -m benchmarks.orchestrated`.

Starts what `make dev` starts, in a folder of its own with an embedded server, and measures:

- memory of the idle stack by process, and of a run;
- what a tick with nothing to do costs;
- a workbook dropped into the inbox: time to its first and to its last row;
- the same workbook submitted to `rowlease work`;
- many small workbooks dropped at once: how long, how many runs;
- the same number drained by two workers with host names of their own and a Dagster code location together.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import xlsxwriter
import yaml

import importer as im
from pipelines.resources import Importer
from tests.pipelines.stack import Stack

FORM = im.Form.from_dict(
    {
        "name": "reading",
        "table": "readings",
        "columns": [
            {"name": "meter", "title": "Meter", "type": "text", "required": True},
            {"name": "day", "title": "Day", "type": "integer", "min": 0},
            {"name": "value", "title": "Value", "type": "decimal", "precision": 12, "scale": 3},
        ],
    }
)

#: Names a host by its own, so that two workers on one machine are two hosts to the lease.
AS_HOST = """
import socket, sys
name = sys.argv.pop(1)
socket.gethostname = lambda: name
from importer.cli import main
sys.exit(main())
"""


def write(path: Path, rows: int, start: int = 0) -> Path:
    """Write a workbook of readings."""
    workbook = xlsxwriter.Workbook(path, {"constant_memory": True})
    sheet = workbook.add_worksheet()
    sheet.write_row(0, 0, ["Meter", "Day", "Value"])
    for number in range(rows):
        sheet.write_row(number + 1, 0, [f"M{start + number:09d}", number % 366, (start + number) / 8])
    workbook.close()
    return path


def until(condition: Callable[[], Any], deadline_s: float = 900, every_s: float = 0.02) -> float:
    """Wait for a condition; return the moment it held."""
    ends = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError(condition)
        time.sleep(every_s)
    return time.monotonic()


def say(what: str, value: str) -> None:
    """Print one figure."""
    print(f"{what:<58} {value}", flush=True)


def memory(stack: Stack) -> None:
    """Resident memory of the idle stack, shared pages counted once (PSS)."""
    total = 0
    for process in stack.family():
        name = next(
            (
                w
                for w in ("webserver", "_daemon", "code-server", "grpc", "pipelines.dev")
                if w in " ".join(process.cmdline())
            ),
            process.name(),
        )
        pss = process.memory_full_info().pss
        total += pss
        say(f"memory, idle: {name}", f"{pss / 1e6:.0f} MB")
    say("memory, idle: all", f"{total / 1e6:.0f} MB")


def ticks(importer: Importer) -> None:
    """What a tick with nothing to do costs beside Dagster's own work."""
    im.take_in(importer.db, [FORM])
    for name, ask in (
        ("due_imports", lambda: im.due(db=importer.db)),
        ("inbox", lambda: im.take_in(importer.db, [FORM])),
        ("lost_runs with one run", lambda: im.run_leases(["none"], db=importer.db)),
    ):
        began = time.perf_counter()
        for _ in range(200):
            ask()
        say(f"idle tick of {name}", f"{(time.perf_counter() - began) / 200 * 1e3:.2f} ms")


def dropped(stack: Stack, db: im.Database, folder: Path, rows: int) -> None:
    """From the rename into the inbox to rows, with Dagster."""
    path = write(folder / "dropped.xlsx", rows)
    peak = 0
    began = time.monotonic()
    path.rename(stack.inbox / FORM.name / path.name)
    taken = until(lambda: im.jobs(db=db, limit=1) and im.jobs(db=db, limit=1)[0].file_name == "dropped.xlsx")
    first = until(lambda: im.jobs(db=db, limit=1)[0].cursor)
    job = im.jobs(db=db, limit=1)[0]
    worker = stack.worker(job.run_ref or "") if job.run_ref else None

    def ended() -> bool:
        nonlocal peak
        if worker is not None and worker.is_running():
            try:
                peak = max(peak, worker.memory_info().rss)
            except psutil.Error:
                return im.job(job, db=db).ended
        return im.job(job, db=db).ended

    last = until(ended)
    say(f"dropped file of {rows:,} rows: job in the queue", f"{taken - began:.1f} s")
    say(f"dropped file of {rows:,} rows: first rows (Dagster)", f"{first - began:.1f} s")
    say(f"dropped file of {rows:,} rows: last row (Dagster)", f"{last - began:.1f} s")
    say("memory of the run that imported it, most", f"{peak / 1e6:.0f} MB")


def followed(db: im.Database, folder: Path, rows: int) -> None:
    """From the submission to rows, with a worker that listens."""
    stop = threading.Event()
    thread = threading.Thread(target=im.follow, args=(db,), kwargs={"stop": stop})
    thread.start()
    time.sleep(db.settings.imports.start_delay.total_seconds() + 1)
    waits = []
    for number in range(10):
        job = im.submit(write(folder / f"follow-{number}.xlsx", 1, start=10**8 + number), FORM, db=db)
        done = wait_for(db, job)
        assert done.started_at is not None
        waits.append((done.started_at - done.created_at).total_seconds())
    say("submitted to `rowlease work`: claimed after (median of 10)", f"{sorted(waits)[5] * 1e3:.0f} ms")
    path = write(folder / "follow.xlsx", rows, start=10**7)
    began = time.monotonic()
    job = im.submit(path, FORM, db=db)
    first = until(lambda: im.job(job, db=db).cursor, every_s=0.005)
    last = until(lambda: im.job(job, db=db).ended, every_s=0.005)
    say(f"submitted file of {rows:,} rows: first rows (work)", f"{first - began:.2f} s")
    say(f"submitted file of {rows:,} rows: last row (work)", f"{last - began:.2f} s")
    stop.set()
    thread.join(30)


def wait_for(db: im.Database, job: im.Job) -> im.Job:
    """Wait for the end of a job and return it as it ended."""
    until(lambda: im.job(job, db=db).ended, every_s=0.005)
    return im.job(job, db=db)


def many(stack: Stack, db: im.Database, folder: Path, count: int) -> None:
    """Small workbooks dropped at once."""
    paths = [write(folder / f"many-{n}.xlsx", 5, start=2 * 10**8 + 10 * n) for n in range(count)]
    before = {run["runId"] for run in stack.runs()}
    began = time.monotonic()
    for path in paths:
        path.rename(stack.inbox / FORM.name / path.name)
    done = until(lambda: _ended(db, "many-") == count, every_s=0.5)
    until(lambda: not stack.runs(statuses=["STARTED", "QUEUED", "STARTING"]), every_s=0.5)
    runs = [run for run in stack.runs() if run["runId"] not in before]
    good = sum(job.status == "success" for job in im.jobs(db=db) if job.file_name.startswith("many-"))
    say(f"{count:,} small workbooks dropped at once: all in", f"{done - began:.0f} s, {good:,} success")
    say(f"{count:,} small workbooks dropped at once: runs", f"{len(runs)}: {sorted(r['status'] for r in runs)}")


def _ended(db: im.Database, prefix: str) -> int:
    return sum(job.ended for job in im.jobs(db=db) if job.file_name.startswith(prefix))


@contextmanager
def hosts(environment: dict[str, str], *names: str) -> Iterator[None]:
    """Workers without a daemon, each with a host name of its own."""
    workers = [
        subprocess.Popen([sys.executable, "-c", AS_HOST, name, "work"], env=environment, stderr=subprocess.DEVNULL)
        for name in names
    ]
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(60)


def together(db: im.Database, folder: Path, environment: dict[str, str], count: int) -> None:
    """Two hosts and Dagster drain one queue."""
    paths = [write(folder / f"shared-{n}.xlsx", 5, start=4 * 10**8 + 10 * n) for n in range(count)]
    with hosts(environment, "host-a", "host-b"):
        time.sleep(8)  # until they have started
        began = time.monotonic()
        with db.connection() as conn, conn.transaction():
            for path in paths:
                im.submit(path, FORM, db=db, conn=conn)
        done = until(lambda: _ended(db, "shared-") == count, every_s=0.2)
        with db.connection() as conn:
            shares = conn.execute(
                "select case when a.run_ref is null then 'two hosts' else 'Dagster' end as who, count(*) as jobs,"
                " count(distinct job_id) as distinct_jobs from rowlease.import_attempts as a"
                " join rowlease.import_jobs as j on j.id = a.job_id where j.file_name like 'shared-%%' group by 1"
            ).fetchall()
            rows = conn.execute(
                "select count(*) as rows, count(distinct meter) as meters from readings"
                " where meter between 'M400000000' and 'M499999999'"
            ).fetchone()
    say(f"{count} jobs drained by two hosts and Dagster together", f"{done - began:.1f} s, {shares}, {rows}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workbooks", type=int, default=1_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rowlease-bench-"))
    stack = Stack(folder)
    (stack.inbox / FORM.name).mkdir(parents=True)
    (stack.forms / "reading.yaml").write_text(yaml.safe_dump(FORM.to_dict()))
    try:
        began = time.monotonic()
        stack.start()
        say("`make dev`: pages after", f"{time.monotonic() - began:.1f} s")
        _measure(stack, folder, options.rows, options.workbooks)
    finally:
        stack.end()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(stack: Stack, folder: Path, rows: int, workbooks: int) -> None:
    settings = im.Settings(data_folder=folder / "data", inbox=stack.inbox, forms_folder=stack.forms)
    with im.connect(settings=settings) as db:
        im.import_workbook(write(folder / "first.xlsx", 1, start=10**9 - 1), FORM, db=db, progress=False)
        time.sleep(10)  # the stack has settled
        memory(stack)
        ticks(Importer(database_url=db.conninfo, inbox=str(stack.inbox), forms_folder=str(stack.forms)))
        dropped(stack, db, folder, rows)
        many(stack, db, folder, workbooks)
        environment = {
            **os.environ,
            "DATABASE_URL": db.conninfo,
            "ROWLEASE_DATA_FOLDER": str(settings.data_folder),
            "ROWLEASE_IMPORTS_START_DELAY_S": "0.1",
        }
        together(db, folder, environment, 200)
        with im.connect(db.conninfo, settings) as own:
            # Dagster's sensors look every five seconds, the worker is told at once: these are the worker's.
            followed(own, folder, rows)


if __name__ == "__main__":
    main()
