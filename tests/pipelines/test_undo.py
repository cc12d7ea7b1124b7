"""The loop in Dagster: faults where the sender finds them, an import taken back from the launchpad."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from dagster import DagsterInstance, ExecuteInProcessResult

import importer as im
from pipelines.resources import Importer
from pipelines.undo import undo_import
from tests.importing import form, site_workbook, table_rows
from tests.pipelines.test_asset_jobs import launch, log_lines, materializations, sentence


def undo(importer: Importer, instance: DagsterInstance, **config: object) -> ExecuteInProcessResult:
    """Run undo_import as the launchpad does."""
    run_config = {"ops": {"undo_one_import": {"config": config}}}
    return undo_import.execute_in_process(
        run_config=run_config, resources={"importer": importer}, instance=instance, raise_on_error=False
    )


def test_the_faults_lie_in_the_inbox_and_are_not_taken_in(
    importer: Importer, instance: DagsterInstance, inbox: Path
) -> None:
    """The metadata says where; what lies there is nobody's new workbook."""
    site_workbook(inbox / "march.xlsx", 100)

    (metadata,) = materializations(launch(importer, instance, file="site_report/march.xlsx"))

    written = Path(str(metadata["fault_workbook"]))
    assert written == inbox.parent / "faults" / f"march_faults_{metadata['import_job']}.xlsx"
    assert im.sheets(written)["name"].to_list() == ["Sheet1", "Faults", "_rowlease"]
    anywhere = form(inbox="**/*.xlsx")
    for _ in range(2):
        arrivals = im.take_in(importer.db, [anywhere], within=dt.timedelta(seconds=10), wait=True)
        assert not [taken for taken in arrivals.taken if "faults" in taken.path]


def test_an_import_is_taken_back(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """First a look, then the undo; the job carries the run's id, and the log says how many rows."""
    site_workbook(inbox / "march.xlsx", 100)
    launch(importer, instance, file="site_report/march.xlsx")
    job = im.jobs(db=importer.db)[0]

    look = undo(importer, instance, job=job.id, dry_run=True)
    done = undo(importer, instance, job=job.id)

    assert any("98 rows would go" in line for line in log_lines(instance, look.run_id))
    assert done.success
    back = im.jobs(db=importer.db)[0]
    assert (back.kind, back.success_rows, back.run_ref) == ("undo", 98, done.run_id)
    with importer.db.connection() as conn:
        assert table_rows(conn) == []


def test_what_cannot_be_taken_back_fails_with_a_sentence(importer: Importer, instance: DagsterInstance) -> None:
    """A job that is not there."""
    assert "no import job 999" in sentence(undo(importer, instance, job=999))
