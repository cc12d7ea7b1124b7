"""What the Excel loop costs, beside the plain import of the same rows in one run.

    python -m benchmarks.excel_loop            100,000 rows x 12 columns
    python -m benchmarks.excel_loop 20000      fewer

Each line is a step with its time, its time over that of the plain import, and the most memory that its process took.
A PostgreSQL of its own runs in a temporary folder, with fsync as it comes.

On two busy cores, over the plain import (1.0 s to 1.3 s, 160 MB): with a key 1.4, lookups 1.8, fault workbook 2.8, the
small one 1.4, corrected file 6.1, update of which 1 % differ 2.0, update of half and half new 3.9, its undo 3.2; no
step takes more than 190 MB.
"""

from __future__ import annotations

import multiprocessing as mp
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import xlsxwriter

import importer as im
from importer.db import Database, EmbeddedServer, migrate
from importer.settings import Settings

_COLUMNS = 12
#: Every so manieth row has a bad cell where bad cells are asked for: 2,000 of 100,000.
_BAD_EVERY = 50


def _definition(table: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - keys of a form
    columns: list[dict[str, Any]] = [{"name": "id", "title": "Id", "type": "integer", "required": True}]
    columns += [{"name": f"number_{n}", "title": f"Number {n}", "type": "integer"} for n in range(5)]
    columns += [{"name": f"text_{n}", "title": f"Text {n}", "type": "text"} for n in range(4)]
    columns += [{"name": "day", "title": "Day", "type": "date"}, {"name": "firm", "title": "Firm", "type": "text"}]
    return {"name": table, "table": table, "columns": columns, **changes}


def _with_lookup(table: str) -> dict[str, Any]:
    plain = _definition(table)
    lookup = {"table": "firms", "match": "name", "take": "id"}
    return {**plain, "columns": [*plain["columns"][:-1], {**plain["columns"][-1], "type": "integer", "lookup": lookup}]}


def _write(path: Path, rows: range, *, bad: bool = False, changed_every: int = 0) -> Path:
    """Write a workbook; `changed_every`-th rows hold another number than they would."""
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("Report")
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        titles = [column["title"] for column in _definition("t")["columns"]]
        for at, title in enumerate(titles):
            sheet.write_string(0, at, title)
        for place, number in enumerate(rows, start=1):
            sheet.write_number(place, 0, number)
            for at in range(5):
                moved = 1 if changed_every and number % changed_every == 0 else 0
                sheet.write_number(place, 1 + at, number * 7 + at + moved)
            for at in range(4):
                sheet.write_string(place, 6 + at, f"text {number % 997} {at}")
            if bad and place % _BAD_EVERY == 0:
                sheet.write_string(place, 10, "never")
            else:
                sheet.write_number(place, 10, 45_000 + number % 900, day)
            sheet.write_string(place, 11, f"Firm {number % 10_000}")
    return path


def _measured(conninfo: str, folder: Path, step: Callable[[Database], object], pipe: Any) -> None:  # noqa: ANN401
    with Database(conninfo, Settings(data_folder=folder)) as db:
        began = time.perf_counter()
        step(db)
        took = time.perf_counter() - began
    pipe.send((took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


class _Table:
    """The steps so far, printed as they come."""

    def __init__(self, conninfo: str, folder: Path) -> None:
        self._conninfo, self._folder = conninfo, folder
        self._plain_s: float | None = None

    def step(self, name: str, work: Callable[[Database], object]) -> None:
        """Do a step in a process of its own."""
        here, there = mp.Pipe()
        process = mp.get_context("fork").Process(target=_measured, args=(self._conninfo, self._folder, work, there))
        process.start()
        process.join()
        took, peak_mb = here.recv()
        self._plain_s = took if self._plain_s is None else self._plain_s
        print(f"{name:<58} {took:7.2f} s  {took / self._plain_s:5.2f} x  {peak_mb:6.0f} MB", flush=True)


def _imports(path: Path, definition: dict[str, Any], **options: Any) -> Callable[[Database], object]:  # noqa: ANN401
    return lambda db: im.import_workbook(path, im.Form.from_dict(definition), db=db, progress=False, **options)


def _newest(db: Database, form: str) -> im.Job:
    return im.jobs(db=db, form=form, limit=1)[0]


def main(rows: int) -> None:
    """Make the workbooks, run the steps, print the table."""
    folder = Path(tempfile.mkdtemp(prefix="rowlease-loop-"))
    server = EmbeddedServer(folder / "server")
    try:
        conninfo = server.url()
        with Database(conninfo, Settings(data_folder=folder)) as db:
            migrate(db)
        with psycopg.connect(conninfo) as conn:
            conn.execute("create table firms (id serial primary key, name text unique)")
            conn.execute("insert into firms (name) select 'Firm ' || n from generate_series(0, 9999) as n")
        _steps(_Table(conninfo, folder), folder, rows)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _steps(table: _Table, folder: Path, rows: int) -> None:
    whole, faulty = _write(folder / "a.xlsx", range(rows)), _write(folder / "b.xlsx", range(rows), bad=True)
    differing = _write(folder / "c.xlsx", range(rows), changed_every=100)
    returned = _write(folder / "e.xlsx", range(rows))
    mixed = _write(folder / "d.xlsx", range(rows // 2, rows + rows // 2), changed_every=1)
    keyed, updating = _definition("keyed", key=["id"]), _definition("keyed", key=["id"], on_clash="update")
    print(f"{rows:,} rows x {_COLUMNS}")
    table.step("plain import", _imports(whole, _definition("plain")))
    table.step("import of a form with a key", _imports(whole, keyed))
    table.step(f"lookups of {rows:,} rows against 10,000", _imports(whole, _with_lookup("looked_up")))
    table.step("import with a bad cell in every 50th row", _imports(faulty, _definition("faulty")))
    table.step(
        f"fault workbook, {rows // _BAD_EVERY:,} faults",
        lambda db: im.fault_workbook(_newest(db, "faulty"), folder / "marked.xlsx", db=db),
    )
    table.step(
        f"small fault workbook, {rows // _BAD_EVERY:,} faults",
        lambda db: im.fault_workbook(_newest(db, "faulty"), folder / "small.xlsx", db=db, only_failed=True),
    )
    table.step(
        "corrected file back in (all rows, the failed ones right)",
        lambda db: _imports(returned, _definition("faulty"), corrects=_newest(db, "faulty"))(db),
    )
    table.step("update of rows of which 1 % differ", _imports(differing, updating))
    table.step("import of which half updates, half is new", _imports(mixed, updating))
    table.step("undo of it", lambda db: im.undo(_newest(db, "keyed"), db=db, progress=False))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
