"""How a command prints: tables for people, JSON for programs, CSV for spreadsheets."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TextIO

import polars as pl

from importer.display import count, duration, rate, text, text_table
from importer.import_job import Job

#: What a spreadsheet would take for a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")

_FAULT_TITLES = ("row", "column", "rule", "value", "message")


def print_json(value: object) -> None:
    """Print one JSON value; moments are ISO 8601, durations seconds, exact numbers strings."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def job_values(job: Job) -> dict[str, object]:
    """Return a job as plain values, with its cursor; the earlier job by its number."""
    values = {field.name: getattr(job, field.name) for field in fields(job)}
    before = job.submitted_before
    values["history"] = [one.id for one in job.history]
    return {**values, "submitted_before": None if before is None else before.id, "cursor": job.cursor}


def print_job(job: Job) -> None:
    """Print a job in a few lines: what, how it ended, the counts, the time."""
    before = job.submitted_before
    if before is not None:
        at = f"{text(before.created_at)}, {before.status.replace('_', ' ')}"
        print(f"This content was sent before: import job {before.id} ({at}).")
    print(f"Import job {job.id}: {job.status.replace('_', ' ')}")
    print_pairs(job_pairs(job))
    if job.last_error and job.status in {"failed", "cancelled", "pending"}:
        print(f"  {'why':<9} {job.last_error}")


def job_pairs(job: Job) -> list[tuple[str, str]]:
    """Return what is to be said of a job, as names and texts."""
    of_total = "" if job.total_rows is None else f" of {count(job.total_rows, 'row')}"
    pairs = [
        ("file", job.file_name if job.sheet is None else f"{job.file_name}, sheet {job.sheet}"),
        ("form", f"{job.form}, version {job.form_version}"),
        ("rows in", f"{text(job.success_rows)}{of_total}"),
        ("failed", text(job.failed_rows)),
    ]
    if job.kind == "undo":
        pairs = [*pairs[:2], ("undo of", f"import job {job.parent_id}"), ("back", text(job.success_rows))]
        pairs.append(("kept", f"{text(job.failed_rows)} (changed since)"))
    elif job.parent_id is not None:
        pairs.append(("corrects", f"import job {job.parent_id}"))
    if job.updated_rows:
        pairs.append(("updated", f"{text(job.updated_rows)} of them were there before"))
    if job.skipped_rows and job.kind == "import":
        pairs.append(("skipped", f"{text(job.skipped_rows)} (they were there before)"))
    if job.undone_at is not None:
        pairs.append(("undone", f"{text(job.undone_at)}, by job {job.undone_by}"))
    if job.duration is not None:
        pairs.append(("time", f"{duration(job.duration)}, {rate(job.cursor, job.duration)}"))
    if job.due_at is not None and job.status == "pending":
        pairs.append(("due", text(job.due_at)))
    return pairs


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and texts, one pair a line."""
    for name, shown in pairs:
        print(f"  {name:<9} {shown}")


def print_faults(faults: pl.DataFrame, *, limit: int, total: int, more: str) -> None:
    """Print the first faults as a table, and how to see `more` when there are more."""
    if not total:
        return
    print()
    headers = [title.capitalize() for title in _FAULT_TITLES]
    caption = "Faults" if total <= limit else f"The first {limit} of {count(total, 'fault')}"
    print(text_table(headers, faults.head(limit).iter_rows(), caption=caption, widest=56))
    if total > limit:
        print(f"All of them: {more}")


def write_faults(faults: pl.DataFrame, target: str) -> None:
    """Write all faults as CSV to a file, or to standard output for `-`.

    In UTF-8 with a mark, as spreadsheets expect. A value that one would take for a formula gets an apostrophe in front.
    """
    if target == "-":
        _write_csv(faults, sys.stdout)
        return
    with Path(target).open("w", encoding="utf-8-sig", newline="") as file:
        _write_csv(faults, file)
    print(f"{count(faults.height, 'fault')} written to {target}")


def fault_values(faults: pl.DataFrame) -> list[dict[str, object]]:
    """Return faults as plain values, one mapping each."""
    return faults.to_dicts()


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print a table, or the sentence `empty` when it has no rows."""
    listed = list(rows)
    print(text_table(headers, listed) if listed else empty)


def print_either(value: Mapping[str, object] | Sequence[object], line: str, *, as_json: bool) -> None:
    """Print a value as JSON, or else the line that says it."""
    if as_json:
        print_json(value)
    else:
        print(line)


def _write_csv(faults: pl.DataFrame, file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("source_row", *_FAULT_TITLES[1:]))
    writer.writerows([_harmless(value) for value in row] for row in faults.iter_rows())


def _harmless(value: object) -> object:
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _plain(value: object) -> object:
    match value:
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal() | Path():
            return str(value)
        case Mapping():
            return dict(value)
        case tuple() | frozenset():
            return list(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no plain form")
