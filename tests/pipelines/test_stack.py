"""The real thing: processes, an inbox, a database; a workbook comes in, and whatever is killed, each row is in once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
import yaml
from psycopg import sql

import importer as im
from importer import import_job
from importer.worker import LANES
from tests.importing import form, site_rows, site_workbook, table_rows, workbook
from tests.pipelines.stack import AT_WORK, Stack, find
from tests.waiting import until

ROWS = 3_000
BATCH_ROWS = 100
BAD_EVERY = 50


@contextmanager
def paced(db: im.Database, table: str, seconds: float) -> Iterator[None]:
    """Let each batch that goes into a table take this long, so that an import can be caught in the middle."""
    names = {"table": sql.Identifier(table), "function": sql.Identifier(f"pace_{table}"), "s": sql.Literal(seconds)}
    with psycopg.connect(db.conninfo, autocommit=True) as conn:
        conn.execute(
            sql.SQL(
                "create or replace function {function}() returns trigger language plpgsql as"
                " $$ begin perform pg_sleep({s}); return null; end $$"
            ).format(**names)
        )
        conn.execute(
            sql.SQL(
                "create trigger pace before insert on {table} for each statement execute function {function}()"
            ).format(**names)
        )
    try:
        yield
    finally:
        with psycopg.connect(db.conninfo, autocommit=True) as conn:
            conn.execute(sql.SQL("drop trigger if exists pace on {table}").format(**names))


@pytest.fixture
def slow(stack: Stack, stack_db: im.Database, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Give a function that drops a workbook for the slow form; its table exists and takes its time."""
    slow_form = form(name="slow_report", table="slow_reports")
    im.import_workbook(site_workbook(tmp_path / "first.xlsx", 1), slow_form, db=stack_db, progress=False)

    def drop(name: str) -> str:
        start = sum(map(ord, name))
        site_workbook(tmp_path / name, ROWS, start=start)
        os.rename(tmp_path / name, stack.inbox / "slow_report" / name)  # noqa: PTH104 - appears at once, as a whole
        return f"slow_report/{name}"

    with paced(stack_db, "slow_reports", 0.15):
        yield drop


def job_of(db: im.Database, name: str) -> im.Job | None:
    """Return the import job of a file, if there is one."""
    return next((job for job in im.jobs(db=db) if job.file_name == name), None)


def in_the_middle(db: im.Database, name: str) -> im.Job:
    """Wait until an import has committed a few batches and goes on; return its job."""

    def caught() -> im.Job | None:
        job = job_of(db, name)
        return job if job is not None and job.status == "running" and job.cursor >= 3 * BATCH_ROWS else None

    return find(caught, deadline_s=90, every_s=0.02)


def each_row_once(db: im.Database, job: im.Job, table: str) -> im.Job:
    """Wait for the end of an import and hold that each good row is in the table once, and each bad one is a fault."""
    ended = find(lambda: next((j for j in [im.job(job, db=db)] if j.ended), None), deadline_s=120, every_s=0.1)
    bad = {n + 2 for n in range(ROWS) if n % BAD_EVERY == BAD_EVERY - 1}
    with db.connection() as conn:
        rows = [row["source_row"] for row in table_rows(conn, table) if row["import_job_id"] == job.id]
    assert rows == [n + 2 for n in range(ROWS) if n + 2 not in bad]
    assert im.faults(job, db=db)["source_row"].to_list() == sorted(bad)
    assert ended.status == "partial_success"
    return ended


def attempts(db: im.Database, job: im.Job) -> list[str | None]:
    """Return how the attempts of a job ended."""
    with db.connection() as conn:
        return [each["how"] for each in import_job.attempts(conn, job.id)]


def test_a_workbook_in_the_inbox_becomes_rows_and_a_materialization(
    stack: Stack, stack_db: im.Database, tmp_path: Path
) -> None:
    """It is copied in slowly, seen when it is whole, imported by one run, and the form shows what came in."""
    whole = site_workbook(tmp_path / "march.xlsx", 100).read_bytes()
    place = stack.inbox / "site_report" / "march.xlsx"
    place.write_bytes(whole[:2000])
    until(lambda: "march.xlsx" in str(im.inbox_ledger(db=stack_db)), deadline_s=60)
    place.write_bytes(whole)

    job = find(lambda: next((j for j in [job_of(stack_db, "march.xlsx")] if j and j.ended), None), deadline_s=90)

    run = stack.ended(job.run_ref or "")
    shown = stack.materializations("site_report")
    assert (run["jobName"], run["status"]) == ("process_imports", "SUCCESS")
    assert (job.success_rows, job.failed_rows) == (98, 2)
    with stack_db.connection() as conn:
        assert len(table_rows(conn, "site_reports")) == 98
    assert len(shown) == 1
    assert shown[0]["runId"] == run["runId"]
    assert {name: shown[0]["metadata"][name] for name in ("file", "rows", "failed_rows", "import_job")} == {
        "file": "march.xlsx", "rows": 100, "failed_rows": 2, "import_job": job.id,
    }  # fmt: skip
    assert [row["source_row"] for row in shown[0]["metadata"]["faults"]] == [51, 101]
    assert stack.checks("site_report") == {
        "few_enough_faults": "FAILED", "rows_as_counted": "SUCCEEDED", "fresh": "SUCCEEDED",
    }  # fmt: skip


def test_terminate_gives_the_job_back_and_ends_its_sql(stack: Stack, stack_db: im.Database, tmp_path: Path) -> None:
    """Within two seconds the job waits with its committed rows and no statement of it runs; then it is resumed."""
    stuck_form = form(name="stuck_report", table="stuck_reports")
    im.import_workbook(site_workbook(tmp_path / "first.xlsx", 1), stuck_form, db=stack_db, progress=False)
    site_workbook(tmp_path / "april.xlsx", ROWS)
    stored = im.Store(stack_db.settings.store).put(tmp_path / "april.xlsx").content_hash

    with paced(stack_db, "stuck_reports", 40):
        run_id = stack.import_workbook("stuck_report", stored, batch_rows=BATCH_ROWS)
        until(lambda: sleeping(stack_db) == 1, deadline_s=90)
        asked = time.monotonic()
        stack.terminate(run_id)
        until(lambda: sleeping(stack_db) == 0, deadline_s=2, every_s=0.05)
        job = find(lambda: next(iter(im.run_jobs(run_id, db=stack_db)), None), deadline_s=2)
        until(lambda: "handed_back" in attempts(stack_db, job), deadline_s=2, every_s=0.05)
        took = time.monotonic() - asked
        run = stack.ended(run_id)

    assert run["status"] == "CANCELED"
    assert took < 4
    ended = each_row_once(stack_db, job, "stuck_reports")
    assert ended.attempt_count <= 2


def sleeping(db: im.Database) -> int:
    """Count the statements of imports that wait in the paced table."""
    with psycopg.connect(db.conninfo, autocommit=True) as conn:
        found = conn.execute(
            "select count(*) from pg_stat_activity where application_name = 'rowlease' and state = 'active'"
            " and wait_event = 'PgSleep' and datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_a_killed_worker_is_resumed(stack: Stack, stack_db: im.Database, slow: Callable[[str], str]) -> None:
    """The run is reported failed, the lease runs out, a sensor's run goes on from the cursor."""
    slow("worker.xlsx")
    job = in_the_middle(stack_db, "worker.xlsx")

    stack.worker(job.run_ref or "").kill()

    assert stack.ended(job.run_ref or "")["status"] == "FAILURE"
    ended = each_row_once(stack_db, job, "slow_reports")
    assert ended.run_ref != job.run_ref
    assert attempts(stack_db, job) == ["interrupted", "finished"]
    stack.nothing_at_work()


def test_a_killed_code_server_and_worker_are_resumed(
    stack: Stack, stack_db: im.Database, slow: Callable[[str], str]
) -> None:
    """Nobody saw the run die: it is found by its lease, reported failed, and the import goes on."""
    slow("server.xlsx")
    job = in_the_middle(stack_db, "server.xlsx")
    worker = stack.worker(job.run_ref or "")
    server = stack.child("code-server", "start")

    for process in (*server.children(recursive=True), server, worker):
        with_suppressed(process)

    run = stack.ended(job.run_ref or "")
    assert run["status"] == "FAILURE"
    each_row_once(stack_db, job, "slow_reports")
    assert any("the worker of this run is gone" in event["message"] for event in stack.events(run["runId"]))
    stack.nothing_at_work()
    assert stack.runs(statuses=AT_WORK) == []


def with_suppressed(process: psutil.Process) -> None:
    """Kill a process that may be gone."""
    if process.is_running():
        process.kill()


def test_a_killed_daemon_stops_no_import(stack: Stack, stack_db: im.Database, slow: Callable[[str], str]) -> None:
    """The run goes on without it; what came meanwhile is seen by the next one."""
    slow("daemon.xlsx")
    job = in_the_middle(stack_db, "daemon.xlsx")

    stack.child("dagster._daemon").kill()
    slow("meanwhile.xlsx")

    each_row_once(stack_db, job, "slow_reports")
    assert attempts(stack_db, job) == ["finished"]
    second = find(lambda: job_of(stack_db, "meanwhile.xlsx"), deadline_s=90)
    each_row_once(stack_db, second, "slow_reports")
    stack.nothing_at_work()


def test_many_workbooks_at_once_are_few_runs(stack: Stack, stack_db: im.Database, tmp_path: Path) -> None:
    """Each is imported once and is a materialization of its own; the runs can be counted on one hand."""
    before = {run["runId"] for run in stack.runs()}
    for number in range(60):
        path = workbook(tmp_path / f"many-{number}.xlsx", site_rows(3, start=10_000 + 10 * number))
        os.rename(path, stack.inbox / "site_report" / path.name)  # noqa: PTH104 - appears at once, as a whole

    def imported() -> list[im.Job]:
        return [job for job in im.jobs(db=stack_db, form="site_report") if job.file_name.startswith("many-")]

    until(lambda: len(imported()) == 60 and all(job.ended for job in imported()), deadline_s=180, every_s=0.5)
    stack.nothing_at_work()

    runs = [run for run in stack.runs() if run["runId"] not in before]
    shown = [m for m in stack.materializations("site_report") if str(m["metadata"]["file"]).startswith("many-")]
    assert {(job.status, job.success_rows) for job in imported()} == {("success", 3)}
    assert len(shown) == 60
    assert len(runs) <= 5


def test_a_form_that_is_put_into_the_folder_needs_no_code(stack: Stack) -> None:
    """After a reload of the code location it is an asset; a broken one beside it hides nothing."""
    (stack.forms / "late_report.yaml").write_text(yaml.safe_dump(form(name="late_report", table="lates").to_dict()))
    (stack.forms / "broken.yaml").write_text("name: broken")
    before = stack.assets()

    stack.reload()

    assert "late_report" not in before
    assert until(lambda: {*before, "late_report"} <= set(stack.assets()), deadline_s=60)


#: Starts a worker on a host of another name: to the lease, two of them on one machine are two hosts.
AS_HOST = """
import socket, sys
name = sys.argv.pop(1)
socket.gethostname = lambda: name
from importer.cli import main
sys.exit(main())
"""


def listening(db: im.Database) -> int:
    """Count the connections on which workers wait for notifications: one for each of their lanes."""
    with psycopg.connect(db.conninfo, autocommit=True) as conn:
        found = conn.execute(
            "select count(*) from pg_stat_activity where application_name = 'rowlease worker'"
            " and datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])


def a_host(name: str, log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a worker on a host of this name."""
    with log.open("wb") as written:
        return subprocess.Popen([sys.executable, "-c", AS_HOST, name, "work"], env=environment, stderr=written)


def test_two_hosts_and_dagster_share_a_queue(stack: Stack, stack_db: im.Database, tmp_path: Path) -> None:
    """Two workers without a daemon and a code location drain it together: each job once, in one attempt."""
    plain = form(name="shared_report", table="shared_reports")
    im.import_workbook(site_workbook(tmp_path / "first.xlsx", 1), plain, db=stack_db, progress=False)
    paths = [workbook(tmp_path / f"shared-{n}.xlsx", site_rows(3, start=50_000 + 10 * n)) for n in range(60)]
    environment = {
        **os.environ,
        "DATABASE_URL": stack_db.conninfo,
        "ROWLEASE_DATA_FOLDER": str(stack.folder / "data"),
        "ROWLEASE_IMPORTS_START_DELAY_S": "0.1",
    }
    names = ("host-a", "host-b")
    logs = [tmp_path / f"{name}.log" for name in names]
    hosts = [a_host(name, log, environment) for name, log in zip(names, logs, strict=True)]

    def shared() -> list[im.Job]:
        return [job for job in im.jobs(db=stack_db, form="shared_report") if job.file_name.startswith("shared-")]

    try:
        until(lambda: listening(stack_db) == len(hosts) * len(LANES), deadline_s=60)
        with stack_db.connection() as conn, conn.transaction():
            for path in paths:
                im.submit(path, plain, db=stack_db, conn=conn)
        until(lambda: all(job.ended for job in shared()), deadline_s=120, every_s=0.2)
    finally:
        for host in hosts:
            host.terminate()
        codes = [host.wait(30) for host in hosts]

    assert codes == [0, 0]
    assert all(f"claimed as import:{name}:" in log.read_text() for name, log in zip(names, logs, strict=True))
    assert {(job.status, job.success_rows) for job in shared()} == {("success", 3)}
    assert {tuple(attempts(stack_db, job)) for job in shared()} == {("finished",)}
    with stack_db.connection() as conn:
        rows = [row["site"] for row in table_rows(conn, "shared_reports")]
    assert len(rows) == len(set(rows)) == 181
