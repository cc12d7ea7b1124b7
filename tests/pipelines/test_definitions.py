"""What Dagster loads: written down, complete, and there without a database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dagster import Definitions

import importer as im
from pipelines.definitions import definitions, found_forms
from tests.house.project import ROOT
from tests.importing import form, site_workbook

#: Every name that Dagster shows for a form `site_report` that says how fresh it must be, and one that does not. Names
#: are kept by Dagster's books and by people's bookmarks: changing one is a change that users see.
SNAPSHOT = {
    "assets": ["another", "site_report"],
    "checks": [
        "another:few_enough_faults", "another:rows_as_counted",
        "site_report:few_enough_faults", "site_report:fresh", "site_report:rows_as_counted",
    ],
    "jobs": [
        "answer_approval", "cancel_workflow", "check_forms", "import_workbook", "process_imports", "process_steps",
        "retention", "start_workflow", "undo_import",
    ],
    "sensors": ["due_imports", "due_steps", "failed_runs", "inbox", "lost_runs"],
    "schedules": ["forms_hourly", "retention_nightly"],
    "ops": {
        "import_workbook": ["import_one_workbook"],
        "process_imports": ["run_due_imports"],
        "retention": ["remove_what_is_old"],
        "undo_import": ["undo_one_import"],
        "process_steps": ["run_due_steps"],
        "start_workflow": ["start_one_workflow"],
        "answer_approval": ["answer_one_approval"],
        "cancel_workflow": ["cancel_one_workflow"],
    },
}  # fmt: skip


def shown(defs: Definitions) -> dict[str, object]:
    """Return every name of the definitions."""
    repository = defs.get_repository_def()
    return {
        "assets": sorted(spec.key.to_user_string() for spec in defs.resolve_all_asset_specs()),
        "checks": sorted(
            f"{key.asset_key.to_user_string()}:{key.name}" for key in repository.asset_graph.asset_check_keys
        ),
        "jobs": sorted(name for name in repository.job_names if not name.startswith("__")),
        "sensors": sorted(each.name for each in repository.sensor_defs),
        "schedules": sorted(each.name for each in repository.schedule_defs),
        "ops": {
            name: sorted(node.name for node in repository.get_job(name).nodes)
            for name in repository.job_names
            if not name.startswith("__") and name != "check_forms"
        },
    }


def test_every_name_is_written_down() -> None:
    """Assets, checks, jobs, sensors and schedules are those of the snapshot."""
    known = im.KnownForms(enabled=(form(fresh_within="26h"), form(name="another")))

    assert shown(definitions(im.Settings(), known)) == SNAPSHOT


def test_there_are_definitions_without_a_form() -> None:
    """A first start has none, and the queue and the inbox are watched all the same."""
    names = shown(definitions(im.Settings(), im.KnownForms()))

    assert (names["assets"], names["checks"]) == ([], [])
    assert names["sensors"] == SNAPSHOT["sensors"]


def test_everything_runs_by_itself() -> None:
    """Sensors and schedules are on from the start, and schedules are meant in the zone of the settings."""
    repository = definitions(
        im.Settings(time_zone="Europe/Berlin"), im.KnownForms(enabled=(form(fresh_within="1h"),))
    ).get_repository_def()

    assert {each.default_status.value for each in repository.sensor_defs} == {"RUNNING"}
    assert {each.default_status.value for each in repository.schedule_defs} == {"RUNNING"}
    assert {each.execution_timezone for each in repository.schedule_defs} == {"Europe/Berlin"}


def test_a_file_in_the_folder_is_a_form(tmp_path: Path) -> None:
    """A form needs no code, and a broken one does not hide the others: its file is named with what is wrong."""
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(form().to_dict()))
    (tmp_path / "bad.yaml").write_text("name: bad\ncolumns: []\n")
    (tmp_path / "twice.json").write_text((tmp_path / "good.yaml").read_text())
    (tmp_path / "notes.txt").write_text("no form")

    known = found_forms(im.Settings(forms_folder=tmp_path))
    defs = definitions(im.Settings(), known)

    assert [each.name for each in known.enabled] == ["site_report"]
    assert sorted(known.broken) == ["bad.yaml", "twice.json"]
    assert "no form: bad.yaml" in defs.metadata


def test_a_form_of_the_database_is_shown_unless_it_is_disabled(conninfo: str, db: im.Database, tmp_path: Path) -> None:
    """What was submitted from a notebook has its asset; a disabled form has none, file or not."""
    im.submit(site_workbook(tmp_path / "march.xlsx", 1), form(name="by_notebook"), db=db)
    settings = im.Settings(database_url=conninfo, forms_folder=tmp_path)
    before = found_forms(settings)
    with db.connection() as conn:
        conn.execute("update rowlease.forms set enabled = false")

    after = found_forms(settings)

    assert [each.name for each in before.enabled] == ["by_notebook"]
    assert (after.enabled, after.disabled) == ((), ("by_notebook",))


def test_a_database_that_does_not_answer_is_no_hindrance(tmp_path: Path) -> None:
    """Definitions load, with the forms of the folder."""
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(form().to_dict()))
    settings = im.Settings(database_url="postgresql://127.0.0.1:1/none", forms_folder=tmp_path)

    assert [each.name for each in found_forms(settings).enabled] == ["site_report"]


def test_a_setting_that_cannot_be_used_stops_the_start_in_one_sentence(tmp_path: Path) -> None:
    """The code location does not load, and says which variable to change."""
    environment = {**os.environ, "ROWLEASE_IMPORTS_LEASE_S": "-5", "DAGSTER_HOME": str(tmp_path)}

    started = subprocess.run(
        [sys.executable, "-c", "import pipelines.definitions"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert started.returncode != 0
    assert (
        started.stderr.strip()
        .splitlines()[-1]
        .startswith("importer.errors.SettingsError: setting ROWLEASE_IMPORTS_LEASE_S: ")
    )


def test_loading_starts_no_server(tmp_path: Path) -> None:
    """Without an address nothing is connected to, and no server of the user's own is started."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "DATABASE_URL"))}
    environment |= {"ROWLEASE_DATA_FOLDER": str(tmp_path / "nowhere")}

    subprocess.run([sys.executable, "-c", "import pipelines.definitions"], cwd=ROOT, env=environment, check=True)

    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("variable", ["DATABASE_URL", "ROWLEASE_DATABASE_URL"])
def test_a_password_is_in_no_message(variable: str, tmp_path: Path) -> None:
    """The address of a database that does not answer is named without it."""
    environment = {**os.environ, variable: "postgresql://me:s3cret@127.0.0.1:1/none", "DAGSTER_HOME": str(tmp_path)}

    loaded = subprocess.run(
        [sys.executable, "-c", "import pipelines.definitions"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "s3cret" not in loaded.stdout + loaded.stderr
    assert "127.0.0.1:1" in loaded.stderr
