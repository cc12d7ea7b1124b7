"""One import inside a run: its progress in the run's log, and what it leaves in Dagster's books when it has ended."""

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    Config,
    Failure,
    MaterializeResult,
    MetadataValue,
    OpExecutionContext,
)
from pydantic import Field

import importer as im
from pipelines.checks import evaluate
from pipelines.resources import Importer
from pipelines.shown import import_metadata

Context = OpExecutionContext | AssetExecutionContext

#: A run's log has a line of progress no more often than this.
PROGRESS_S = 2.0


class FileConfig(Config):
    """Which workbook is imported, and how."""

    sheet: str | None = Field(default=None, description="Sheet to read, by name, instead of the form's own choice.")
    force: bool = Field(default=False, description="Import it although the same content was imported before.")
    batch_rows: int | None = Field(
        default=None, gt=0, description="Rows per transaction; empty: the setting (10,000 unless set)."
    )


@dataclass(frozen=True, kw_only=True)
class Imported:
    """One import that ended, and what is shown of it."""

    job: im.Job
    metadata: Mapping[str, MetadataValue[Any]]
    #: It was this run that imported it; else it had been imported before.
    here: bool = True

    @property
    def materialized(self) -> bool:
        """Whether it put rows into the table, or had none to put in."""
        return self.here and self.job.status in {"success", "partial_success"}

    @property
    def counts(self) -> str:
        """How many rows became what."""
        job = self.job
        if job.kind == "undo":
            return f"import job {job.parent_id} was taken back"
        return f"{job.success_rows:,} rows in, {job.failed_rows:,} failed, {job.skipped_rows:,} skipped"

    def as_results(self) -> Iterator[MaterializeResult[None]]:
        """The result of an asset whose run imported this, if it did."""
        if self.materialized:
            yield MaterializeResult(asset_key=AssetKey([self.job.form]), metadata=self.metadata)

    def log(self, context: Context) -> None:
        """Write it down at once: a materialization of its form, else an observation."""
        key = AssetKey([self.job.form])
        if self.materialized:
            context.log_event(AssetMaterialization(key, description=self.counts, metadata=self.metadata))
        elif self.here:
            context.log_event(AssetObservation(key, description=self.job.last_error, metadata=self.metadata))


def import_file(context: Context, importer: Importer, form: im.Form, file: str, config: FileConfig) -> Imported:
    """Submit a file of the inbox (or of the store, by its hash) and run its job here; return it as it ended.

    Raises:
        Failure: with the sentence that a person needs: the workbook is refused, or another run works on it.
    """
    settings = importer.settings()
    try:
        job = im.import_workbook(
            im.locate(file, db=importer.db),
            form,
            db=importer.db,
            sheet=config.sheet,
            force=config.force,
            batch_rows=config.batch_rows,
            create_table=settings.create_tables,
            run_ref=context.run.run_id,
            progress=False,
            # Half a lease: a run that holds nothing for a whole one is taken for lost.
            wait=settings.imports.lease / 2,
            watch=progress_log(context, file),
        )
    except (im.WorkbookError, im.TargetError, im.JobError, im.FormError, im.StoreError) as error:
        raise Failure(str(error), allow_retries=isinstance(error, im.StoreError)) from error
    if not job.ended:
        raise Failure(
            f"import job {job.id} ({job.file_name}) is {job.status} and another run or worker has it; nothing was done "
            "here. It goes on there, or by itself when that one's lease runs out."
        )
    imported = _imported(context, importer, job, here=job.submitted_before is None or job.run_ref == context.run.run_id)
    if not imported.here:
        context.log.warning(
            f"the same content was imported before as import job {job.id}; set force to import it again"
        )
    if job.status == "failed":
        imported.log(context)
        raise Failure(f"{job.file_name}: {job.last_error}", metadata=imported.metadata, allow_retries=False)
    return imported


def import_form(context: Context, importer: Importer, form: im.Form) -> Iterator[MaterializeResult[None]]:
    """Run every due job of a form: each a materialization of its own, the last one as the asset's result.

    Raises:
        Failure: one or more were refused; the others are in.
    """
    last: Imported | None = None
    failed = []
    try:
        for imported in import_due(context, importer, form=form):
            if last is not None:
                last.log(context)
            last = imported
            if imported.job.status == "failed":
                failed.append(f"{imported.job.file_name}: {imported.job.last_error}")
    except BaseException:  # also a run that is terminated has imported what it imported
        if last is not None:
            last.log(context)
        raise
    if failed:
        if last is not None:
            last.log(context)
        raise Failure("; ".join(failed), allow_retries=False)
    if last is not None:
        yield from last.as_results()


def import_due(
    context: Context,
    importer: Importer,
    *,
    form: im.Form | None = None,
    limit: int | None = None,
    within: dt.timedelta | None = None,
) -> Iterator[Imported]:
    """Run due jobs (of one form) and yield each that ended; one that fails does not stop the others."""
    for ran in im.run_due(
        importer.db,
        form=form.name if form else None,
        limit=limit,
        within=within,
        run_ref=context.run.run_id,
        started=lambda job: progress_log(context, f"import job {job.id} ({job.form}, {job.file_name})"),
    ):
        if ran.job.ended:
            yield _imported(context, importer, ran.job)
        else:
            context.log.error(f"import job {ran.job.id} ({ran.job.file_name}) waits again: {ran.error}")


def check_form(context: Context, importer: Importer, form: im.Form) -> None:
    """Judge a form and write that into Dagster's books, in a run that has no asset of its own."""
    for result in evaluate(form, importer):
        evaluation = AssetCheckEvaluation(
            asset_key=AssetKey([form.name]),
            check_name=result.check_name or "",
            passed=result.passed,
            severity=result.severity,
            description=result.description,
            metadata=result.metadata or {},
        )
        context.log_event(evaluation)  # type: ignore[arg-type]  # it takes one, and its annotation leaves it out


def _imported(context: Context, importer: Importer, job: im.Job, *, here: bool = True) -> Imported:
    metadata = {
        **import_metadata(job, db=importer.db, run_id=context.run.run_id),
        **_fault_workbook(context, importer, job),
    }
    imported = Imported(job=job, metadata=metadata, here=here)
    said = f"import job {job.id} ({job.form}, {job.file_name}): {job.status.replace('_', ' ')}"
    if job.status in {"failed", "cancelled"}:
        context.log.error(f"{said}: {job.last_error or imported.counts}")
    else:
        context.log.info(f"{said}, {imported.counts}")
    return imported


def _fault_workbook(context: Context, importer: Importer, job: im.Job) -> Mapping[str, MetadataValue[Any]]:
    """The sender's workbook with the bad cells marked, put where the sender finds it; none when it cannot be."""
    if not job.failed_rows:
        return {}
    try:
        return {"fault_workbook": MetadataValue.path(im.put_fault_workbook(job, db=importer.db))}
    except (im.StoreError, im.WorkbookError) as error:
        context.log.warning(f"the faults of import job {job.id} are not written into a workbook: {error}")
        return {}


def progress_log(context: Context, title: str) -> Callable[[int, int], None]:
    """A function that writes (rows dealt with, rows failed) into the run's log, every few seconds."""
    began = said = time.monotonic()
    first: int | None = None

    def move(rows: int, failed: int) -> None:
        nonlocal said, first
        now = time.monotonic()
        if first is None:
            first = rows
            context.log.info(f"{title}: begins" + (f" after {rows:,} rows of an earlier attempt" if rows else ""))
        elif now - said >= PROGRESS_S:
            said = now
            context.log.info(f"{title}: {rows:,} rows, {failed:,} failed, {(rows - first) / (now - began):,.0f} rows/s")

    return move
