"""Everything that Dagster loads, listed by hand: `dg dev -w workspace.yaml`, or `make dev`."""

import logging
from collections.abc import Sequence

from dagster import Definitions

import importer as im
from pipelines.asset_jobs import JOBS, check_forms
from pipelines.assets import form_asset
from pipelines.checks import form_checks
from pipelines.resources import Importer
from pipelines.schedules import forms_hourly, retention_nightly
from pipelines.sensors import SENSORS
from pipelines.undo import undo_import
from pipelines.workflows import JOBS as WORKFLOW_JOBS
from pipelines.workflows import SENSORS as WORKFLOW_SENSORS

log = logging.getLogger(__name__)


def definitions(settings: im.Settings, known: im.KnownForms) -> Definitions:
    """What Dagster shows for these forms."""
    forms: Sequence[im.Form] = known.enabled
    return Definitions(
        assets=[form_asset(form) for form in forms],
        asset_checks=[form_checks(form) for form in forms],
        jobs=[*JOBS, undo_import, *WORKFLOW_JOBS, *([check_forms(forms)] if forms else [])],
        sensors=[*SENSORS, *WORKFLOW_SENSORS],
        schedules=[
            retention_nightly(settings.time_zone),
            *([forms_hourly(settings.time_zone)] if any(form.fresh_within for form in forms) else []),
        ],
        resources={"importer": Importer()},
        metadata={"forms": len(forms), **{f"no form: {name}": why for name, why in known.broken.items()}},
    )


def found_forms(settings: im.Settings) -> im.KnownForms:
    """The forms of the folder, and those of the database when it is named and answers. Starts no server.

    A form that comes later is there after the code location was reloaded.
    """
    if settings.database_url or settings.libpq:
        try:
            with im.connect(settings=settings) as db:
                return im.known_forms(settings.forms_folder, db=db)
        except im.DatabaseError as error:
            log.warning("forms stored in the database are not shown: %s", error)
    known = im.known_forms(settings.forms_folder)
    for name, why in known.broken.items():
        log.warning("%s is no form: %s", name, why)
    return known


_settings = im.Settings.from_environment()
defs = definitions(_settings, found_forms(_settings))
