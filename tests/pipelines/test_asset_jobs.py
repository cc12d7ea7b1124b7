"""What is launched: one workbook, the queue; counts and faults in Dagster's books, the run's id on job and attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterEventType, DagsterInstance, ExecuteInProcessResult, TableMetadataValue

import importer as im
from importer import import_job
from pipelines.asset_jobs import import_workbook, process_imports, retention
from pipelines.resources import Importer
from tests.importing import broken_workbook, form, site_workbook


def launch(importer: Importer, instance: DagsterInstance, **config: object) -> ExecuteInProcessResult:
    """Run import_workbook as the launchpad does."""
    run_config = {"ops": {"import_one_workbook": {"config": {"form": "site_report", **config}}}}
    return import_workbook.execute_in_process(
        run_config=run_config, resources={"importer": importer}, instance=instance, raise_on_error=False
    )


def process(importer: Importer, instance: DagsterInstance, **config: object) -> ExecuteInProcessResult:
    """Run process_imports as a sensor does."""
    run_config = {"ops": {"run_due_imports": {"config": config}}}
    return process_imports.execute_in_process(
        run_config=run_config, resources={"importer": importer}, instance=instance, raise_on_error=False
    )


def materializations(result: ExecuteInProcessResult) -> list[dict[str, Any]]:
    """Return the metadata of each materialization of a run."""
    events = [e for e in result.all_events if e.event_type == DagsterEventType.ASSET_MATERIALIZATION]
    return [
        {
            name: value.records if isinstance(value, TableMetadataValue) else value.value
            for name, value in e.step_materialization_data.materialization.metadata.items()
        }
        for e in events
    ]


def sentence(result: ExecuteInProcessResult) -> str:
    """Return what a failed run says."""
    failed = [e for e in result.all_events if e.event_type == DagsterEventType.STEP_FAILURE]
    failure = failed[0].step_failure_data
    assert failure.user_failure_data is not None
    return failure.user_failure_data.description or ""


def log_lines(instance: DagsterInstance, run_id: str) -> list[str]:
    """Return what a run said for people."""
    return [entry.user_message for entry in instance.all_logs(run_id) if entry.dagster_event is None]


def test_a_workbook_is_imported_and_materialized(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """Counts, file, content, job and faults stand with the materialization; the job carries the run's id."""
    site_workbook(inbox / "march.xlsx", 100)

    result = launch(importer, instance, file="site_report/march.xlsx")

    job = im.jobs(db=importer.db)[0]
    (metadata,) = materializations(result)
    assert result.success
    assert (metadata["dagster/row_count"], metadata["rows"], metadata["failed_rows"]) == (98, 100, 2)
    assert (metadata["import_job"], metadata["file"], metadata["content_hash"]) == (
        job.id, "march.xlsx", job.content_hash,
    )  # fmt: skip
    assert [record.data["source_row"] for record in metadata["faults"]] == [51, 101]
    assert metadata["faults_by_rule"].startswith("![type 2](data:image/svg+xml;base64,")
    assert job.run_ref == result.run_id


def test_nobody_sees_the_holder(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """Neither in metadata nor in a run's log stands who holds the lease."""
    site_workbook(inbox / "march.xlsx", 100)

    result = launch(importer, instance, file="site_report/march.xlsx")

    said = " ".join(log_lines(instance, result.run_id)) + str(materializations(result))
    assert "import:" not in said
    assert im.jobs(db=importer.db)[0].status == "partial_success"


def test_the_attempt_carries_the_run(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """So that a run that is gone is known by its attempts."""
    site_workbook(inbox / "march.xlsx", 3)

    result = launch(importer, instance, file="site_report/march.xlsx")

    with importer.db.connection() as conn:
        attempts = import_job.attempts(conn, im.jobs(db=importer.db)[0].id)
    assert [(each["run_ref"], each["how"]) for each in attempts] == [(result.run_id, "finished")]
    assert [job.file_name for job in im.run_jobs(result.run_id, db=importer.db)] == ["march.xlsx"]


def test_the_log_shows_progress(
    importer: Importer, instance: DagsterInstance, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who looks at the run sees how far it is."""
    monkeypatch.setattr("pipelines.importing.PROGRESS_S", 0.0)
    site_workbook(inbox / "march.xlsx", 3_000)

    result = launch(importer, instance, file="site_report/march.xlsx", batch_rows=500)

    said = log_lines(instance, result.run_id)
    assert any("rows/s" in line and "1,500 rows, 30 failed" in line for line in said), said


def test_a_refused_workbook_fails_the_run_with_its_sentence(
    importer: Importer, instance: DagsterInstance, inbox: Path
) -> None:
    """The run says what the importer says, and nothing is materialized."""
    (inbox / "march.xlsx").write_text("no workbook")

    result = launch(importer, instance, file="site_report/march.xlsx")

    assert not result.success
    assert "march.xlsx" in sentence(result)
    assert materializations(result) == []


def test_a_workbook_that_breaks_later_fails_the_run_too(
    importer: Importer, instance: DagsterInstance, inbox: Path
) -> None:
    """Rows that were in are out again, and the run is red."""
    broken_workbook(inbox / "march.xlsx", count=3_000, breaks_at=2_500)

    result = launch(importer, instance, file="site_report/march.xlsx", batch_rows=100)

    assert not result.success
    assert materializations(result) == []
    assert im.jobs(db=importer.db)[0].success_rows == 0


@pytest.mark.parametrize("file", ["site_report/missing.xlsx", "../forms/site_report.yaml"])
def test_a_file_that_is_not_below_the_inbox_fails_the_run(
    importer: Importer, instance: DagsterInstance, file: str
) -> None:
    """The sentence names the inbox."""
    result = launch(importer, instance, file=file)

    assert "inbox" in sentence(result)


def test_an_unknown_form_fails_the_run(importer: Importer, instance: DagsterInstance) -> None:
    """The sentence names the forms there are."""
    result = launch(importer, instance, form="site_reprot", file="march.xlsx")

    assert "site_report" in sentence(result)


def test_the_same_file_again_changes_nothing_and_says_so(
    importer: Importer, instance: DagsterInstance, inbox: Path
) -> None:
    """The run is green, warns, and materializes nothing; `force` imports it again."""
    site_workbook(inbox / "march.xlsx", 3)
    launch(importer, instance, file="site_report/march.xlsx")

    again = launch(importer, instance, file="site_report/march.xlsx")
    forced = launch(importer, instance, file="site_report/march.xlsx", force=True)

    assert again.success
    assert materializations(again) == []
    assert any("imported before as import job" in line for line in log_lines(instance, again.run_id))
    assert len(materializations(forced)) == 1


def test_a_workbook_of_the_store_is_imported_by_its_hash(
    importer: Importer, instance: DagsterInstance, tmp_path: Path
) -> None:
    """What was submitted once need not lie in the inbox."""
    job = im.submit(site_workbook(tmp_path / "march.xlsx", 3), form(), db=importer.db)
    im.cancel(job, db=importer.db)

    result = launch(importer, instance, file=job.content_hash)

    assert result.success
    assert im.job(job, db=importer.db).status == "success" or im.jobs(db=importer.db)[0].status == "success"


def test_a_job_that_another_has_is_left_to_it(
    importer: Importer, instance: DagsterInstance, inbox: Path, site_form: im.Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits for a while, then fails and says where the import goes on; it never holds what is not its own."""
    monkeypatch.setenv("ROWLEASE_IMPORTS_LEASE_S", "1")
    job = im.submit(site_workbook(inbox / "march.xlsx", 3), site_form, db=importer.db)
    with importer.db.connection() as conn:
        import_job.claim(conn, holder="import:elsewhere", ttl=importer.settings().imports.lease * 600, id=job.id)

    result = launch(importer, instance, file="site_report/march.xlsx")

    assert "another run or worker has it" in sentence(result)
    assert im.job(job, db=importer.db).status == "running"


def test_the_queue_is_drained_and_a_bad_workbook_does_not_stop_it(
    importer: Importer, instance: DagsterInstance, tmp_path: Path, site_form: im.Form
) -> None:
    """Each import is a materialization of its own; the refused one is an observation, and the run is green."""
    for number in range(4):
        path = tmp_path / f"{number}.xlsx"
        if number == 1:
            broken_workbook(path, count=10, breaks_at=5)
        else:
            site_workbook(path, 3, start=number)
        im.submit(path, site_form, db=importer.db, create_table=True)

    result = process(importer, instance, pass_jobs=2)

    observed = [e for e in result.all_events if e.event_type == DagsterEventType.ASSET_OBSERVATION]
    assert result.success
    assert [m["file"] for m in materializations(result)] == ["0.xlsx", "2.xlsx", "3.xlsx"]
    assert len(observed) == 1
    assert {job.run_ref for job in im.jobs(db=importer.db)} == {result.run_id}
    assert any("4 imports in 2 passes; 0 still due" in line for line in log_lines(instance, result.run_id))


def test_the_queue_is_left_when_the_time_is_over(
    importer: Importer, instance: DagsterInstance, tmp_path: Path, site_form: im.Form
) -> None:
    """What is not begun stays due, for the next run."""
    im.submit(site_workbook(tmp_path / "march.xlsx", 3), site_form, db=importer.db)

    result = process(importer, instance, within_s=0)

    assert result.success
    assert im.due(db=importer.db) == 1


def test_checks_are_judged_with_the_import(importer: Importer, instance: DagsterInstance, inbox: Path) -> None:
    """Faults warn, rows are as counted, and the form is fresh."""
    site_workbook(inbox / "march.xlsx", 100)

    result = launch(importer, instance, file="site_report/march.xlsx")

    evaluations = {e.check_name: e for e in result.get_asset_check_evaluations()}
    assert {name: each.passed for name, each in evaluations.items()} == {
        "few_enough_faults": False, "rows_as_counted": True, "fresh": True,
    }  # fmt: skip


def test_retention_says_what_went(importer: Importer, instance: DagsterInstance) -> None:
    """Nothing old: nothing goes, and the run says so."""
    result = retention.execute_in_process(resources={"importer": importer}, instance=instance)

    assert any("removed: 0 faults, 0 workbooks" in line for line in log_lines(instance, result.run_id))
