"""What is done with a workbook: `check`, `import`, `submit`."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import importer as im
from importer.cli.output import (
    fault_values,
    job_values,
    print_faults,
    print_job,
    print_json,
    print_pairs,
    write_faults,
)
from importer.display import count, duration, rate, text
from importer.errors import FormError
from importer.settings import Settings

_FORM_ENDINGS = (".yaml", ".yml", ".json")


class FormNotFoundError(FormError):
    """No form goes by that name where it was looked for."""


def check(arguments: argparse.Namespace) -> int:
    """Say what an import would refuse; 0 when nothing, 1 when some rows."""
    if arguments.database:
        with im.connect() as db:
            form = find_form(arguments.form, db)
            report = im.check(arguments.file, form, db=db, sheet=arguments.sheet)
    else:
        report = im.check(arguments.file, find_form(arguments.form, None), sheet=arguments.sheet)
    failed = report.rows - report.accepted.height
    if arguments.csv:
        write_faults(report.faults, arguments.csv)
    if arguments.json:
        print_json(
            {
                "file_name": report.file_name,
                "form": report.form.name,
                "rows": report.rows,
                "accepted_rows": report.accepted.height,
                "failed_rows": failed,
                "faults": fault_values(report.faults),
                "left_out": list(report.left_out.lines),
                "not_checked": list(report.not_checked),
            }
        )
    elif arguments.csv != "-":
        _print_report(report, failed, limit=arguments.limit)
    return 1 if failed else 0


def _print_report(report: im.CheckReport, failed: int, *, limit: int) -> None:
    elapsed = timedelta(seconds=report.seconds or 0)
    print(f"{report.file_name} against the form {report.form.name}: ", end="")
    print(f"{count(failed, 'row')} would fail" if failed else "every row is good")
    print_pairs(
        [
            ("rows", text(report.rows)),
            ("good", text(report.accepted.height)),
            ("failed", text(failed)),
            ("time", f"{duration(elapsed)}, {rate(report.rows, elapsed)}"),
        ]
    )
    for title, lines in (("Left out", report.left_out.lines), ("Not checked", report.not_checked)):
        if lines:
            print(f"\n{title}")
            print("\n".join(f"  - {line}" for line in lines))
    print_faults(report.faults, limit=limit, total=report.faults.height, more="the same command with --csv FILE")


def import_here(arguments: argparse.Namespace) -> int:
    """Import a workbook here; the exit code says how it ended."""
    with _sigterm_as_interrupt(), im.connect() as db:
        job = im.import_workbook(
            arguments.file,
            find_form(arguments.form, db),
            db=db,
            sheet=arguments.sheet,
            force=arguments.force,
            replace=arguments.replace,
            corrects=arguments.corrects,
            only_changes=arguments.only_changes,
            create_table=not arguments.no_create,
            progress=not (arguments.quiet or arguments.json),
        )
        faults = im.faults(job, db=db)
    if arguments.json:
        print_json(job_values(job))
    else:
        print_job(job)
        more = f"rowlease faults {job.id} --csv faults.csv"
        print_faults(faults, limit=arguments.limit, total=faults.height, more=more)
    return ended_code(job)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C, so that the job is given back at once, until the block is left."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def submit(arguments: argparse.Namespace) -> int:
    """Queue a workbook; 0 when it is queued or was imported before."""
    with im.connect() as db:
        job = im.submit(
            arguments.file,
            find_form(arguments.form, db),
            db=db,
            sheet=arguments.sheet,
            key=arguments.key,
            force=arguments.force,
            replace=arguments.replace,
            corrects=arguments.corrects,
            only_changes=arguments.only_changes,
            create_table=arguments.create,
            priority=arguments.priority,
        )
    if arguments.json:
        print_json(job_values(job))
    else:
        print_job(job)
        if not job.ended:
            print(f"\nA worker imports it: rowlease work. How far it is: rowlease show {job.id}")
    return 0


def ended_code(job: im.Job) -> int:
    """Return the exit code that says how a job ended."""
    if job.failed_rows:
        return 1
    return {"success": 0, "pending": 3, "running": 3}.get(job.status, 2)


def find_form(name: str, db: im.Database | None) -> im.Form:
    """Return a form by its file, by its name in the folder of forms, or by its name in the database.

    Raises:
        FormNotFoundError: it is in none of these places.
        FormError: it is no valid form.
    """
    path = Path(name)
    if path.suffix.lower() in _FORM_ENDINGS or path.is_file():
        return im.Form.from_file(path)
    folder = Settings.from_environment().forms_folder
    for ending in _FORM_ENDINGS:
        if (folder / f"{name}{ending}").is_file():
            return im.Form.from_file(folder / f"{name}{ending}")
    nowhere = f"there is no file of this name, and no {name}.yaml or {name}.json in {folder}"
    if db is None:
        raise FormNotFoundError(name, [nowhere])
    try:
        return im.stored_form(name, db=db)
    except im.JobError as error:
        raise FormNotFoundError(name, [f"{nowhere}, and none is stored in the database"]) from error
