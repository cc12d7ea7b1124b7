"""Whether a workbook was sent before, and how it differs from what earlier imports have in the table."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from importer import import_chain, import_job
from importer.batch.door import database_of, id_of
from importer.batch.importing import CHUNK_ROWS
from importer.batch.lookups import looked_up
from importer.batch.opened import opened
from importer.batch.plan import Batch, Plan
from importer.db import Connection, Database, repeat_on_conflict
from importer.display import count, table
from importer.errors import FormError
from importer.forms import CheckedChunk, Form, Reading, SeenKeys, read_rows
from importer.import_job import Job
from importer.target import Rows, Target, compare, differences, exists

#: Stands for a job: no job has this id.
_NO_JOB = -1


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a workbook differs from what is in the table, row by row of the form's key; nothing was changed."""

    file_name: str
    #: The newest import of the very same content into the form whose rows count; none when it was never sent.
    sent_before: Job | None
    #: Rows whose key is not in the table.
    new: int
    #: Rows whose key is there with other values.
    changed: int
    #: Rows that are there as they are.
    same: int
    #: Rows of earlier imports that the workbook does not have.
    gone: int
    #: Rows with a fault, which are none of these.
    failed: int

    @property
    def is_nearly_the_same(self) -> bool:
        """Whether it has the keys that are there, and only some rows differ: perhaps a new edition."""
        return self.same > 0 and self.same >= self.new + self.changed + self.gone and self.sent_before is None

    def __repr__(self) -> str:
        """Counts, in a line or two."""
        before = self.sent_before
        sent = "" if before is None else f"sent before as import job {before.id} ({before.created_at:%Y-%m-%d %H:%M})\n"
        counts = f"{count(self.new, 'row')} new, {self.changed:,} changed, {self.same:,} the same, {self.gone:,} gone"
        nearly = (
            "; nearly the same as what is there: only_changes=True loads the rest" if self.is_nearly_the_same else ""
        )
        return f"{sent}{self.file_name}: {counts}, {self.failed:,} with a fault{nearly}"

    def _repr_html_(self) -> str:
        headers = ["new", "changed", "the same", "gone", "with a fault"]
        row = (self.new, self.changed, self.same, self.gone, self.failed)
        return table(headers, [row], caption=self.file_name)


def compare_with_table(
    path: str | os.PathLike[str],
    form: Form,
    *,
    db: Database | None = None,
    job: Job | int | None = None,
    sheet: str | None = None,
) -> Comparison:
    """Say how a workbook differs from what earlier imports have in the form's table, by the form's key.

    `job`: only its rows and those of its corrections count, instead of all that imports brought.

    Raises:
        FormError: the form has no key.
        WorkbookError: the workbook cannot be imported at all.
        TargetError: the table that is there does not fit the form.
    """
    if not form.key:
        raise FormError(form.name, ["it has no key, so nothing says which row of a sheet is which row of the table"])
    form = dataclasses.replace(form, sheet=sheet) if sheet is not None else form
    file = Path(path)
    with database_of(db) as database, opened(file, database.settings, form) as workbook:
        reading = read_rows(workbook, form, chunk_rows=CHUNK_ROWS)
        seen = SeenKeys(form)
        batches = [_batch(seen, chunk) for chunk in reading]
        with database.connection() as conn:
            return repeat_on_conflict(lambda: _compared(conn, file, form, reading, batches, job))


def _batch(seen: SeenKeys, chunk: CheckedChunk) -> Batch:
    checked = seen.sift(chunk)
    return Batch(start=0, rows=checked.rows, accepted=checked.accepted, faults=checked.faults)


def _compared(
    conn: Connection, file: Path, form: Form, reading: Reading, batches: list[Batch], job: Job | int | None
) -> Comparison:
    plan = Plan(form=form, target=Target.of(form.to_dict()), job_id=_NO_JOB)
    good = 0
    with conn.transaction(force_rollback=True):
        jobs = None if job is None else [id_of(job), *import_chain.imports_of_chain(conn, id_of(job))]
        before = import_job.sent_before(conn, form_name=form.name, content_hash=_hash(file))
        resolved = [looked_up(conn, plan, batch)[0] if plan.target.looked_up else batch for batch in batches]
        good = sum(batch.accepted.height for batch in resolved)
        same, changed, gone = 0, 0, 0
        if exists(conn, plan.target):
            compare(conn, plan.target)
            found = differences(conn, plan.target, _encoded(plan, resolved), stage_id=_NO_JOB, jobs=jobs)
            same, changed, gone = found.same, found.changed, found.gone
    return Comparison(
        file_name=file.name,
        sent_before=before,
        new=good - same - changed,
        changed=changed,
        same=same,
        gone=gone,
        failed=reading.rows_seen - good,
    )


def _encoded(plan: Plan, batches: list[Batch]) -> Iterator[Rows]:
    for batch in batches:
        yield plan.encode(batch.accepted)


def _hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
