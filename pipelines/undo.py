"""Taking an import back from the launchpad."""

from dagster import AssetKey, AssetObservation, Config, Failure, MetadataValue, OpExecutionContext, job, op
from dagster import in_process_executor as in_process
from pydantic import Field

import importer as im
from pipelines.importing import progress_log
from pipelines.resources import Importer

UNDO_IMPORT = "undo_import"


class UndoConfig(Config):
    """Which import is taken back."""

    job: int = Field(gt=0, description="Number of the import job, as its materialization shows it.")
    dry_run: bool = Field(default=False, description="Change nothing; the run's log says what would be done.")


@op
def undo_one_import(context: OpExecutionContext, config: UndoConfig, importer: Importer) -> None:
    """Take an import back; fails with a sentence when it cannot be."""
    try:
        if config.dry_run:
            context.log.info(repr(im.undo(config.job, db=importer.db, dry_run=True)))
            return
        move = progress_log(context, f"undo of import job {config.job}")
        back = im.undo(config.job, db=importer.db, progress=False, run_ref=context.run.run_id, watch=move)
    except (im.JobError, im.StoreError) as error:
        raise Failure(str(error), allow_retries=isinstance(error, im.StoreError)) from error
    context.log.info(f"job {back.id}: {back.success_rows:,} rows taken back, {back.failed_rows:,} kept")
    metadata = {
        "import_job": MetadataValue.int(config.job),
        "undo_job": MetadataValue.int(back.id),
        "rows_taken_back": MetadataValue.int(back.success_rows),
        "of_them_given_back_what_they_held": MetadataValue.int(back.updated_rows),
        "rows_kept": MetadataValue.int(back.failed_rows),
    }
    said = f"Import job {config.job} was taken back."
    context.log_event(AssetObservation(AssetKey([back.form]), description=said, metadata=metadata))


@job(name=UNDO_IMPORT, executor_def=in_process)
def undo_import() -> None:
    """Take an import back: rows it put in go, rows it changed get back what they held, rows changed since are kept."""
    undo_one_import()
