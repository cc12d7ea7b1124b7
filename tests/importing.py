"""A form, workbooks of any length for it, and what must hold of every import: for tests of the import as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from importer import Form
from importer.db import Connection, sql
from importer.import_job import Job, job
from tests.workbooks import parts, write_workbook, zip_parts

#: site text, day date, crew integer 0..500, cost decimal, note text.
DEFINITION: dict[str, Any] = {
    "name": "site_report",
    "table": "site_reports",
    "columns": [
        {"name": "site", "title": "Site", "type": "text", "required": True},
        {"name": "day", "title": "Date", "type": "date"},
        {"name": "crew", "title": "Crew size", "type": "integer", "min": 0, "max": 500},
        {"name": "cost", "title": "Cost", "type": "decimal", "precision": 12, "scale": 2},
        {"name": "note", "title": "Note", "type": "text"},
    ],
}

#: Every one of these rows has a fault (crew is text) in a workbook of `site_workbook`.
BAD_EVERY = 50


def form(**changes: object) -> Form:
    """Give the form with other settings."""
    return Form.from_dict({**DEFINITION, **changes})


def keyed(**changes: object) -> Form:
    """Give the form with the key (site, day)."""
    return form(key=["site", "day"], **changes)


def row_xml(number: int, cells: Iterable[object]) -> str:
    """Give a row: str as inline text, int and float as numbers, None as no cell; a date is a `Serial`."""
    inner = "".join(_cell(f"{chr(65 + at)}{number}", value) for at, value in enumerate(cells) if value is not None)
    return f'<row r="{number}">{inner}</row>'


class Serial(int):
    """A day as Excel counts it, shown as a date."""


def _cell(ref: str, value: object) -> str:
    if isinstance(value, Serial):
        return f'<c r="{ref}" s="1"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{ref}"><v>{value}</v></c>'
    return f'<c r="{ref}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


HEADER = ("Site", "Date", "Crew size", "Cost", "Note")


def workbook(path: Path, rows: Iterable[Iterable[object]]) -> Path:
    """Write a workbook of these rows under the header of the form."""
    lines = [row_xml(1, HEADER), *(row_xml(number, cells) for number, cells in enumerate(rows, 2))]
    return write_workbook(path, "".join(lines), formats=["yyyy-mm-dd"])


def site_rows(count: int, *, start: int = 0, bad_every: int | None = BAD_EVERY) -> list[tuple[object, ...]]:
    """Give rows of which every `bad_every`-th has a fault."""
    return [
        (
            f"S{start + n:07d}",
            Serial(45000 + n % 300),
            "many" if bad_every and n % bad_every == bad_every - 1 else n % 400,
            n / 4,
            f"note {n}" if n % 3 else None,
        )
        for n in range(count)
    ]


def site_workbook(path: Path, count: int, *, start: int = 0, bad_every: int | None = BAD_EVERY) -> Path:
    """Write a workbook of `count` rows of which every `bad_every`-th has a fault."""
    return workbook(path, site_rows(count, start=start, bad_every=bad_every))


def broken_workbook(path: Path, *, count: int, breaks_at: int) -> Path:
    """Write a sound archive whose sheet breaks off in the row after `breaks_at` data rows."""
    lines = [row_xml(1, HEADER), *(row_xml(number, cells) for number, cells in enumerate(site_rows(count), 2))]
    made = parts("".join(lines), formats=["yyyy-mm-dd"])
    whole = made["xl/worksheets/sheet1.xml"]
    assert isinstance(whole, str)
    return zip_parts(path, {**made, "xl/worksheets/sheet1.xml": whole[: whole.index(f'<row r="{breaks_at + 2}"') + 30]})


def table_rows(conn: Connection, table: str = "site_reports") -> list[dict[str, Any]]:
    """Give all rows of the form's table by job and sheet row; none when there is no table yet."""
    if conn.execute("select to_regclass(%s) as there", [table]).fetchall() == [{"there": None}]:
        return []
    query = sql.SQL("select * from {} order by import_job_id, source_row").format(sql.Identifier(table))
    return conn.execute(query).fetchall()


def assert_each_row_once(conn: Connection, job_id: int, *, rows: int, bad_every: int | None = BAD_EVERY) -> Job:
    """Hold the promise: of the first `cursor` data rows the good are in the table once, the bad are faults once."""
    found = job(conn, job_id)
    bad = {n + 2 for n in range(found.cursor) if bad_every and n % bad_every == bad_every - 1}
    good = [n + 2 for n in range(found.cursor) if n + 2 not in bad]
    there = [row["source_row"] for row in table_rows(conn) if row["import_job_id"] == job_id]
    faults = conn.execute(
        "select source_row from rowlease.import_row_faults where job_id = %s order by source_row", [job_id]
    ).fetchall()
    assert there == good
    assert [row["source_row"] for row in faults] == sorted(bad)
    assert (found.success_rows, found.failed_rows, found.skipped_rows) == (len(good), len(bad), 0)
    if found.ended and found.status != "cancelled":
        assert found.cursor == found.total_rows == rows
    return found


def calls_on(point: str, times: int, action: Callable[[], object]) -> Callable[[str], None]:
    """Give a function for `at=` that acts when a point is reached for the n-th time."""
    seen: dict[str, int] = {}

    def at(reached: str) -> None:
        seen[reached] = seen.get(reached, 0) + 1
        if reached == point and seen[reached] == times:
            action()

    return at


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Give a row without some of its columns."""
    return {name: value for name, value in row.items() if name not in names}
