"""What people and sensors launch: one workbook, the queue, and what is done at night."""

import dataclasses
import datetime as dt
import time
from collections.abc import Sequence

from dagster import (
    AssetSelection,
    Config,
    Failure,
    JobDefinition,
    OpExecutionContext,
    define_asset_job,
    in_process_executor,
    job,
    op,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import Field

import importer as im
from pipelines.importing import FileConfig, check_form, import_due, import_file
from pipelines.resources import Importer

IMPORT_WORKBOOK = "import_workbook"
PROCESS_IMPORTS = "process_imports"
RETENTION = "retention"
CHECK_FORMS = "check_forms"


class WorkbookConfig(FileConfig):
    """One workbook of the inbox, or of the store, into one form."""

    form: str = Field(description="Name of the form, as its asset is called.")
    file: str = Field(
        description="Path below the inbox, for example site_report/march.xlsx; or the content hash of a workbook that "
        "was submitted before."
    )


@op
def import_one_workbook(context: OpExecutionContext, config: WorkbookConfig, importer: Importer) -> None:
    """Import one workbook here and now; fails with a sentence when it is refused."""
    try:
        form = importer.forms().form(config.form)
    except im.FormError as error:
        raise Failure(str(error), allow_retries=False) from error
    imported = import_file(context, importer, form, config.file, config)
    imported.log(context)
    check_form(context, importer, form)


@job(name=IMPORT_WORKBOOK, executor_def=in_process_executor)
def import_workbook() -> None:
    """Import one workbook: choose a form and a file in the launchpad; the run's log shows its progress."""
    import_one_workbook()


class PassConfig(Config):
    """How long a run goes on."""

    pass_jobs: int | None = Field(default=None, gt=0, description="Import jobs per pass; empty: the setting (5).")
    within_s: float | None = Field(
        default=None, ge=0, description="Seconds after which no other job is begun; empty: the setting (600)."
    )


@op
def run_due_imports(context: OpExecutionContext, config: PassConfig, importer: Importer) -> None:
    """Run due import jobs in passes until none is due or the time is over; a bad workbook does not stop the others."""
    settings = importer.settings()
    within_s = settings.pass_limit.total_seconds() if config.within_s is None else config.within_s
    pass_jobs = config.pass_jobs or settings.imports.batch
    forms = {form.name: form for form in importer.forms().enabled}
    ends, passes, done = time.monotonic() + within_s, 0, 0
    while (left_s := ends - time.monotonic()) > 0:
        due = im.due(db=importer.db)
        if not due:
            break
        passes += 1
        touched = set()
        for imported in import_due(context, importer, limit=pass_jobs, within=dt.timedelta(seconds=left_s)):
            imported.log(context)
            touched.add(imported.job.form)
            done += 1
        for name in sorted(touched & forms.keys()):
            check_form(context, importer, forms[name])
    context.log.info(f"{done:,} imports in {passes:,} passes; {im.due(db=importer.db):,} still due")


@job(name=PROCESS_IMPORTS, executor_def=in_process_executor)
def process_imports() -> None:
    """Run the import jobs that are due, whoever submitted them."""
    run_due_imports()


@op
def remove_what_is_old(context: OpExecutionContext, importer: Importer) -> None:
    """Remove old faults, workbooks that no job can need any more, and what ended well long ago."""
    went = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in dataclasses.asdict(im.prune(importer.db)).items()
    )
    context.log.info(f"removed: {went}; import jobs stay")


@job(name=RETENTION, executor_def=in_process_executor)
def retention() -> None:
    """Remove what is older than the settings keep: ROWLEASE_KEEP_FAULTS_DAYS, _WORKBOOKS_DAYS, _FINISHED_DAYS."""
    remove_what_is_old()


def check_forms(forms: Sequence[im.Form]) -> UnresolvedAssetJobDefinition:
    """Judge every form as it stands, also those that nothing was imported into for a while."""
    return define_asset_job(
        CHECK_FORMS,
        selection=AssetSelection.checks_for_assets(*(form.name for form in forms)),
        description="Judge every form as it stands: faults, rows in the table, freshness.",
        executor_def=in_process_executor,
    )


#: The asset jobs that are there with or without forms.
JOBS: Sequence[JobDefinition] = (import_workbook, process_imports, retention)
