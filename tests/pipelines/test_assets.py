"""A form is an asset: materialized once per import, by nothing when nothing is due; others depend on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    ExecuteInProcessResult,
    TableSchema,
    asset,
    materialize,
)

import importer as im
from pipelines.assets import form_asset, form_spec, owner
from pipelines.checks import form_checks
from pipelines.resources import Importer
from tests.importing import broken_workbook, form, site_workbook


@asset(deps=[AssetKey(["site_report"])])
def costs_by_site() -> None:
    """A downstream asset of a user's own."""


def run(importer: Importer, instance: DagsterInstance, site_form: im.Form, **config: object) -> ExecuteInProcessResult:
    """Materialize the form and what depends on it, as the page does."""
    return materialize(
        [form_asset(site_form), form_checks(site_form), costs_by_site],
        resources={"importer": importer},
        instance=instance,
        run_config={"ops": {"import_site_report": {"config": config}}},
        raise_on_error=False,
    )


def materialized(instance: DagsterInstance, key: str) -> list[object]:
    """Return the files of the materializations of an asset, oldest first."""
    events = instance.fetch_materializations(AssetKey([key]), limit=100).records
    found = [event.asset_materialization for event in reversed(events)]
    return [each.metadata["file"].value if "file" in each.metadata else None for each in found if each is not None]


def test_nothing_due_materializes_nothing(importer: Importer, instance: DagsterInstance, site_form: im.Form) -> None:
    """The run is green, and what depends on the form does not run either."""
    result = run(importer, instance, site_form)

    assert result.success
    assert materialized(instance, "site_report") == []
    assert materialized(instance, "costs_by_site") == []


def test_each_due_job_of_the_form_is_a_materialization(
    importer: Importer, instance: DagsterInstance, site_form: im.Form, tmp_path: Path
) -> None:
    """Jobs of other forms are left; what depends on the form runs once."""
    for number in range(3):
        im.submit(site_workbook(tmp_path / f"{number}.xlsx", 3, start=number), site_form, db=importer.db)
    im.submit(site_workbook(tmp_path / "other.xlsx", 3), form(name="other"), db=importer.db)
    im.import_workbook(site_workbook(tmp_path / "before.xlsx", 9), site_form, db=importer.db, progress=False)

    result = run(importer, instance, site_form)

    assert result.success
    assert materialized(instance, "site_report") == ["0.xlsx", "1.xlsx", "2.xlsx"]
    assert materialized(instance, "costs_by_site") == [None]
    assert im.due(db=importer.db) == 1


def test_a_file_in_the_config_is_imported(
    importer: Importer, instance: DagsterInstance, site_form: im.Form, inbox: Path
) -> None:
    """It alone, whatever else is due; the same file again materializes nothing."""
    site_workbook(inbox / "march.xlsx", 3)

    first = run(importer, instance, site_form, file="site_report/march.xlsx")
    again = run(importer, instance, site_form, file="site_report/march.xlsx")

    assert (first.success, again.success) == (True, True)
    assert materialized(instance, "site_report") == ["march.xlsx"]


def test_a_refused_workbook_fails_the_run_and_the_others_are_in(
    importer: Importer, instance: DagsterInstance, site_form: im.Form, tmp_path: Path
) -> None:
    """Every good one is a materialization, the bad one an observation."""
    im.submit(site_workbook(tmp_path / "0.xlsx", 3), site_form, db=importer.db, create_table=True)
    im.submit(broken_workbook(tmp_path / "1.xlsx", count=9, breaks_at=4), site_form, db=importer.db)
    im.submit(site_workbook(tmp_path / "2.xlsx", 3, start=2), site_form, db=importer.db)

    result = run(importer, instance, site_form)

    observed = instance.fetch_observations(AssetKey(["site_report"]), limit=10).records
    assert not result.success
    assert materialized(instance, "site_report") == ["0.xlsx", "2.xlsx"]
    assert len(observed) == 1


def test_checks_run_with_the_asset(
    importer: Importer, instance: DagsterInstance, site_form: im.Form, inbox: Path
) -> None:
    """Each once per run."""
    site_workbook(inbox / "march.xlsx", 100)

    result = run(importer, instance, site_form, file="site_report/march.xlsx")

    found = sorted((e.check_name, e.passed) for e in result.get_asset_check_evaluations())
    assert found == [("few_enough_faults", False), ("fresh", True), ("rows_as_counted", True)]


def test_a_form_shows_its_columns_and_rules(site_form: im.Form) -> None:
    """Before anything was imported the page says what is expected."""
    spec = form_spec(site_form)

    schema = spec.metadata["dagster/column_schema"]
    assert isinstance(schema, TableSchema)
    assert [(column.name, column.type) for column in schema.columns] == [
        ("site", "text"), ("day", "date"), ("crew", "integer"), ("cost", "decimal"), ("note", "text"),
    ]  # fmt: skip
    assert schema.columns[0].constraints.nullable is False
    assert schema.columns[2].constraints.other == ["at least 0", "at most 500"]
    assert (spec.key, spec.group_name, spec.kinds) == (AssetKey(["site_report"]), "forms", {"excel", "postgres"})
    assert list(spec.owners) == ["desk@example.com", "team:Site_controlling"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a@example.com", "a@example.com"), ("team:site", "team:site"), ("Bau & Co.", "team:Bau_Co"),
        ("&", "team:unnamed"),
    ],
)  # fmt: skip
def test_an_owner_is_a_person_or_a_team(name: str, shown: str) -> None:
    """Dagster takes e-mail addresses and team names of plain letters only."""
    assert owner(name) == shown
