"""The values of the room: a job as it stood when it was read, what its holder needs, what a submission asks."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from importer.display import table

Status = Literal["pending", "running", "success", "partial_success", "failed", "cancelled"]
Kind = Literal["import", "undo"]
How = Literal["finished", "refused", "failed", "handed_back", "retry", "cancelled", "interrupted"]

#: The statuses of a job that has come to its end.
ENDED: frozenset[str] = frozenset({"success", "partial_success", "failed", "cancelled"})


@dataclass(frozen=True, kw_only=True)
class Job:
    """One import job as it stood when it was read; moments are aware and in UTC."""

    #: Number of the job.
    id: int
    #: Name of its form.
    form: str
    #: Version of the form it was submitted with.
    form_version: int
    #: Name of the file as the first sender called it, without folders.
    file_name: str
    #: SHA-256 of the content, hexadecimal.
    content_hash: str
    #: The sheet asked for at submission, null for the form's own choice.
    sheet: str | None
    #: pending running success partial_success failed cancelled.
    status: Status
    #: Data rows of the sheet, null until it was read to its end.
    total_rows: int | None
    #: Rows in the table.
    success_rows: int
    #: Rows with at least one fault.
    failed_rows: int
    #: Rows whose key was there already (`on_clash: skip`).
    skipped_rows: int
    #: Attempts that crashed, failed or are running now.
    attempt_count: int
    #: Who runs it outside, for example a Dagster run id.
    run_ref: str | None
    #: The job that took the place of this one's rows.
    replaced_by: int | None
    #: Why the workbook was refused, one of the reasons of `WorkbookError`.
    reason: str | None
    #: The last error, in words.
    last_error: str | None
    #: What of the workbook was not read and why (after the end).
    left_out: Mapping[str, Any] | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    #: When a waiting job becomes due.
    due_at: dt.datetime | None
    #: `import`, or `undo`: takes back what its parent did.
    kind: Kind
    #: The job whose failed rows this one sends again, or that it undoes.
    parent_id: int | None
    #: Of the rows in the table: those that were there and changed (`on_clash: update`).
    updated_rows: int
    #: When its rows were taken back, and by which job.
    undone_at: dt.datetime | None
    undone_by: int | None
    #: The earlier job, when the call that returned this one made none.
    submitted_before: Job | None = None
    #: All jobs that it hangs together with, oldest first: what it corrects, corrections, undos (`im.job` reads it).
    history: tuple[Job, ...] = dataclasses.field(default=(), compare=False, repr=False)

    @property
    def cursor(self) -> int:
        """How many data rows were dealt with."""
        return self.success_rows + self.failed_rows + self.skipped_rows

    @property
    def ended(self) -> bool:
        """Whether the job has come to its end."""
        return self.status in ENDED

    @property
    def duration(self) -> dt.timedelta | None:
        """From the first start to the end; null before the end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at

    def _repr_html_(self) -> str:
        return jobs_html([self])


class Jobs(tuple[Job, ...]):
    """Jobs, newest first; a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return jobs_html(self)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the holder of a job needs to run it."""

    form_name: str
    form_version: int
    file_name: str
    content_hash: str
    size_bytes: int
    sheet: str | None
    create_table: bool
    batch_rows: int | None
    replaces: tuple[int, ...]
    success_rows: int
    failed_rows: int
    skipped_rows: int
    definition: Mapping[str, Any]
    digest: str
    kind: Kind
    parent_id: int | None
    only_changes: bool

    @property
    def cursor(self) -> int:
        """How many data rows earlier attempts dealt with."""
        return self.success_rows + self.failed_rows + self.skipped_rows


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of `submit`: a content in the store, a form as data, and options."""

    #: The form as `Form.to_dict()` gives it, with its name and digest.
    definition: Mapping[str, Any]
    form_name: str
    digest: str
    file_name: str
    content_hash: str
    size_bytes: int
    sheet: str | None = None
    key: str | None = None
    force: bool = False
    replace: bool = False
    create_table: bool = False
    batch_rows: int | None = None
    priority: int = 2
    max_attempts: int = 5
    run_ref: str | None = None
    #: The import whose failed rows come again, corrected.
    parent_id: int | None = None
    #: Leave rows that are in the table as they are, import the others.
    only_changes: bool = False


def from_row(row: Mapping[str, Any]) -> Job:
    """Make a job of a row as it may be seen."""
    names = {f.name for f in dataclasses.fields(Job)} - {"form", "submitted_before", "history"}
    return Job(form=row["form_name"], **{name: row[name] for name in names})


def jobs_html(jobs: Sequence[Job]) -> str:
    """Jobs as an escaped HTML table."""
    headers = ("job", "form", "file", "status", "rows", "in", "failed", "skipped", "took", "error")
    rows = [
        (
            j.id,
            f"{j.form} v{j.form_version}",
            j.file_name,
            j.status,
            "" if j.total_rows is None else j.total_rows,
            j.success_rows,
            j.failed_rows,
            j.skipped_rows,
            "" if j.duration is None else f"{j.duration.total_seconds():.1f} s",
            j.last_error or "",
        )
        for j in jobs
    ]
    return table(headers, rows)
