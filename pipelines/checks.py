"""What must hold of a form after an import: few enough faults, rows in the table as counted, recent enough."""

import datetime as dt
from collections.abc import Iterator

from dagster import (
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    multi_asset_check,
)

import importer as im
from pipelines.resources import Importer

FAULTS = "few_enough_faults"
ROWS = "rows_as_counted"
FRESH = "fresh"


def form_checks(form: im.Form) -> AssetChecksDefinition:
    """The checks of one form, read in one look."""

    @multi_asset_check(name=f"checks_of_{form.name}", specs=specs(form))
    def checks(importer: Importer) -> Iterator[AssetCheckResult]:
        yield from evaluate(form, importer)

    return checks


def specs(form: im.Form) -> list[AssetCheckSpec]:
    """The checks of one form; freshness only where it says how fresh it must be."""
    described = {
        FAULTS: "The newest import was not refused and has no more failed rows than the form's stop_at, else none.",
        ROWS: "The table holds as many rows of the newest import as it counted.",
    }
    if form.fresh_within is not None:
        described[FRESH] = f"The newest import is no older than {form.fresh_within}."
    return [AssetCheckSpec(name, asset=AssetKey([form.name]), description=text) for name, text in described.items()]


def evaluate(form: im.Form, importer: Importer) -> Iterator[AssetCheckResult]:
    """Judge how a form stands now."""
    state = im.form_state(form, db=importer.db)
    yield _faults(form, state)
    yield _rows(form, state)
    fresh_within = im.fresh_within(form)
    if fresh_within is not None:
        yield _fresh(form, state, fresh_within)


def _faults(form: im.Form, state: im.FormState) -> AssetCheckResult:
    job = state.newest
    if job is None:
        return _result(form, FAULTS, passed=True, said="nothing was imported yet")
    allowed = im.failed_rows_allowed(form, job.cursor)
    refused = job.status == "failed"
    said = f"refused: {job.last_error}" if refused else f"{job.failed_rows:,} failed rows, {allowed:,} allowed"
    return _result(
        form,
        FAULTS,
        passed=not refused and job.failed_rows <= allowed,
        said=said,
        severity=AssetCheckSeverity.ERROR if refused else AssetCheckSeverity.WARN,
        import_job=job.id,
        failed_rows=job.failed_rows,
    )


def _rows(form: im.Form, state: im.FormState) -> AssetCheckResult:
    job = state.loaded
    if job is None:
        return _result(form, ROWS, passed=True, said="nothing was imported yet")
    there, new = state.table_rows, job.success_rows - job.updated_rows  # a row that it updated is an earlier import's
    said = f"the table {form.table} is gone" if there is None else f"{there:,} new rows in the table, {new:,} counted"
    return _result(form, ROWS, passed=there == new, said=said, import_job=job.id)


def _fresh(form: im.Form, state: im.FormState, within: dt.timedelta) -> AssetCheckResult:
    if state.age is None:
        return _result(form, FRESH, passed=False, said="nothing was imported yet", severity=AssetCheckSeverity.WARN)
    hours = state.age.total_seconds() / 3600
    said = f"the newest import ended {hours:,.1f} hours ago, {form.fresh_within} are allowed"
    return _result(form, FRESH, passed=state.age <= within, said=said, severity=AssetCheckSeverity.WARN)


def _result(
    form: im.Form,
    name: str,
    *,
    passed: bool,
    said: str,
    severity: AssetCheckSeverity = AssetCheckSeverity.ERROR,
    **metadata: int,
) -> AssetCheckResult:
    return AssetCheckResult(
        passed=passed,
        asset_key=AssetKey([form.name]),
        check_name=name,
        severity=severity,
        description=said,
        metadata=metadata,
    )
