"""What is done with import jobs: `work`, `jobs`, `show`, `faults`, `cancel`, `retry`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import importer as im
from importer import import_job
from importer.cli.for_sender import write_fault_workbook
from importer.cli.output import (
    fault_values,
    job_pairs,
    job_values,
    print_either,
    print_faults,
    print_job,
    print_json,
    print_pairs,
    print_table,
    write_faults,
)
from importer.cli.tasks import import_tasks
from importer.display import count, text
from importer.worker import follow


def work(arguments: argparse.Namespace) -> int:
    """Run queued jobs and tasks until stopped, or once."""
    import_tasks(arguments.tasks)
    with _asked_to_stop() as stop, _log_on_stderr(), im.connect() as db:
        if not arguments.once:
            follow(db, stop=stop)
            return 0
        counts = im.work(db=db, limit=arguments.limit, stopping=stop.is_set)
    print_either(counts, f"{count(counts['import_jobs'], 'import job')} run", as_json=arguments.json)
    return 0


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Give an event that SIGTERM and Ctrl-C set, until the block is left."""
    stop = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Show what the worker says of itself, and no other package's chatter, until the block is left."""
    log = logging.getLogger("importer")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]


def list_jobs(arguments: argparse.Namespace) -> int:
    """List jobs, the newest first."""
    with im.connect() as db:
        found = im.jobs(db=db, form=arguments.form, status=arguments.status, limit=arguments.limit)
    if arguments.json:
        print_json([job_values(job) for job in found])
        return 0
    headers = ("Job", "Status", "File", "Form", "Rows", "In", "Failed", "Skipped", "Created", "Time")
    rows = [
        (
            job.id, job.status.replace("_", " "), job.file_name, f"{job.form} v{job.form_version}", job.total_rows,
            job.success_rows, job.failed_rows, job.skipped_rows, job.created_at, job.duration,
        )
        for job in found
    ]  # fmt: skip
    print_table(headers, rows, empty="There are no import jobs.")
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Show one job with its attempts and its faults by rule."""
    with im.connect() as db:
        job = im.job(arguments.job, db=db)
        with db.connection() as conn:
            by_rule = import_job.faults_by_rule(conn, job.id)
            attempts = import_job.attempts(conn, job.id)
    if arguments.json:
        print_json({**job_values(job), "faults_by_rule": by_rule, "attempts": attempts})
        return 0
    print_job(job)
    more = [("content", job.content_hash), ("created", text(job.created_at)), ("started", text(job.started_at))]
    print_pairs([*more, ("finished", text(job.finished_at))])
    if job.replaced_by is not None:
        print_pairs([("replaced", f"by import job {job.replaced_by}")])
    if attempts:
        print()
        rows = [(each["began"], each["ended"], (each["how"] or "running").replace("_", " ")) for each in attempts]
        print_table(("Attempt began", "Ended", "How"), rows, empty="")
    if by_rule:
        print()
        print_table(("Rule", "Bad cells"), by_rule.items(), empty="")
        print(f"Which cells: rowlease faults {job.id}")
    return 0


def faults(arguments: argparse.Namespace) -> int:
    """List the bad cells of a job."""
    with im.connect() as db:
        job = im.job(arguments.job, db=db)
        found = im.faults(job, db=db)
        if arguments.xlsx:
            return write_fault_workbook(arguments, job, db)
    if arguments.csv:
        write_faults(found, arguments.csv)
    elif arguments.json:
        print_json(fault_values(found))
    elif found.height:
        print_pairs(job_pairs(job)[:2])
        print_faults(
            found, limit=arguments.limit, total=found.height, more=f"rowlease faults {job.id} --csv faults.csv"
        )
    else:
        print(f"Import job {job.id} has no faults.")
    return 0


def cancel(arguments: argparse.Namespace) -> int:
    """Cancel an open job."""
    with im.connect() as db:
        job = im.cancel(arguments.job, db=db)
    stay = f"; {count(job.success_rows, 'row')} of it stay in the table" if job.success_rows else ""
    print_either(job_values(job), f"Import job {job.id} is cancelled{stay}.", as_json=arguments.json)
    return 0


def retry(arguments: argparse.Namespace) -> int:
    """Queue a failed or cancelled job again."""
    with im.connect() as db:
        job = im.retry(arguments.job, db=db)
    after = f" and goes on after {count(job.cursor, 'row')}" if job.cursor else ""
    print_either(job_values(job), f"Import job {job.id} waits for a worker{after}.", as_json=arguments.json)
    return 0
