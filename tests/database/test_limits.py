"""Limits of workbooks are settings: named by the environment, refused when unknown, and they hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from tests.importing import form, site_workbook


def test_a_limit_of_the_settings_refuses_a_workbook_and_leaves_nothing(db: Database, tmp_path: Path) -> None:
    """The reason is too_large, and no row of the batches before stays."""
    path = site_workbook(tmp_path / "a.xlsx", 3000)
    strict = im.Settings.from_environment({"ROWLEASE_LIMIT_CELLS": "5000", "ROWLEASE_DATA_FOLDER": str(tmp_path)})
    assert strict.limits == {"cells": 5000}

    with Database(db.conninfo, strict) as cramped, pytest.raises(im.WorkbookError) as refusal:
        im.import_workbook(path, form(), db=cramped, batch_rows=100, progress=False)

    assert refusal.value.reason == "too_large"
    assert [(job.status, job.cursor) for job in im.jobs(db=db)] == [("failed", 0)]


def test_a_limit_that_there_is_not_is_named(db: Database, tmp_path: Path) -> None:
    """A typo in a setting stops the import with the names there are."""
    path = site_workbook(tmp_path / "a.xlsx", 3)

    with (
        Database(db.conninfo, replace(db.settings, limits={"cell": 5})) as wrong,
        pytest.raises(im.SettingsError, match=r"ROWLEASE_LIMIT_CELL: there is no such limit; there are .*cells"),
    ):
        im.import_workbook(path, form(), db=wrong, progress=False)


@pytest.mark.parametrize("variable", ["ROWLEASE_LIMIT_CELLS=0", "ROWLEASE_LIMIT_ROWS=many", "ROWLEASE_SCANNER=on"])
def test_a_value_that_cannot_be_used_stops_start_up(variable: str) -> None:
    """It names the variable."""
    name, value = variable.split("=")

    with pytest.raises(im.SettingsError, match=name):
        im.Settings.from_environment({name: value})


def test_the_compiled_scanner_can_be_left_out(db: Database, tmp_path: Path) -> None:
    """The rows are the same without it."""
    path = site_workbook(tmp_path / "a.xlsx", 500)
    first = im.import_workbook(path, form(), db=db, progress=False)

    with Database(db.conninfo, replace(db.settings, compiled_scanner=False)) as plain:
        second = im.import_workbook(path, form(), db=plain, force=True, progress=False)

    assert (first.success_rows, first.failed_rows) == (second.success_rows, second.failed_rows)
