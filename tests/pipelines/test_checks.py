"""What is judged after an import: faults, rows, freshness."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import AssetCheckSeverity

import importer as im
from pipelines.checks import evaluate
from pipelines.resources import Importer
from tests.importing import Serial, broken_workbook, site_workbook, workbook


def judged(form: im.Form, importer: Importer) -> dict[str, bool]:
    """Return check -> passed."""
    return {result.check_name or "": result.passed for result in evaluate(form, importer)}


def test_a_form_without_an_import_is_not_fresh(importer: Importer, site_form: im.Form) -> None:
    """There is nothing wrong with it otherwise."""
    assert judged(site_form, importer) == {"few_enough_faults": True, "rows_as_counted": True, "fresh": False}


def test_a_clean_import_passes(importer: Importer, site_form: im.Form, tmp_path: Path) -> None:
    """No faults, rows as counted, fresh."""
    path = site_workbook(tmp_path / "march.xlsx", 10, bad_every=None)
    im.import_workbook(path, site_form, db=importer.db, progress=False)

    assert set(judged(site_form, importer).values()) == {True}


def test_a_refused_workbook_is_an_error_and_the_rows_before_it_stand(
    importer: Importer, site_form: im.Form, tmp_path: Path
) -> None:
    """Faults say it, rows and freshness are those of the newest import that is in."""
    im.import_workbook(
        site_workbook(tmp_path / "0.xlsx", 10, bad_every=None), site_form, db=importer.db, progress=False
    )
    with pytest.raises(im.WorkbookError):
        im.import_workbook(
            broken_workbook(tmp_path / "1.xlsx", count=9, breaks_at=4), site_form, db=importer.db, progress=False
        )

    results = {result.check_name: result for result in evaluate(site_form, importer)}

    assert not results["few_enough_faults"].passed
    assert results["few_enough_faults"].severity == AssetCheckSeverity.ERROR
    assert results["rows_as_counted"].passed


def test_a_row_removed_behind_our_back_is_seen(importer: Importer, site_form: im.Form, tmp_path: Path) -> None:
    """The table is counted, not the job."""
    im.import_workbook(site_workbook(tmp_path / "0.xlsx", 10), site_form, db=importer.db, progress=False)
    with importer.db.connection() as conn:
        conn.execute("delete from site_reports where source_row = 2")

    assert judged(site_form, importer)["rows_as_counted"] is False


def test_a_row_that_was_updated_is_counted_with_the_import_that_brought_it(
    importer: Importer, site_form: im.Form, tmp_path: Path
) -> None:
    """An import that only changes rows that are there has none of its own, and that is as it should be."""
    keyed = dataclasses.replace(site_form, key=("site", "day"), on_clash="update")
    rows = [("S1", Serial(45000), 3, 1.5, "old"), ("S2", Serial(45000), 3, 1.5, "old")]
    im.import_workbook(workbook(tmp_path / "0.xlsx", rows), keyed, db=importer.db, progress=False)
    rows = [("S1", Serial(45000), 4, 1.5, "new"), ("S3", Serial(45000), 3, 1.5, "old")]
    im.import_workbook(workbook(tmp_path / "1.xlsx", rows), keyed, db=importer.db, progress=False)

    assert judged(keyed, importer)["rows_as_counted"] is True


def test_an_old_import_is_not_fresh(
    importer: Importer, site_form: im.Form, tmp_path: Path, move_clock: Callable[..., None]
) -> None:
    """By the form's own interval and the database's clock."""
    im.import_workbook(site_workbook(tmp_path / "0.xlsx", 10), site_form, db=importer.db, progress=False)
    with importer.db.connection() as conn:
        move_clock(timedelta(hours=25), conn)
        young = judged(site_form, importer)["fresh"]
        move_clock(timedelta(hours=27), conn)
    with importer.db.connection() as conn:
        move_clock(timedelta(hours=27), conn)

    old = judged(site_form, importer)["fresh"]

    assert (young, old) == (True, False)


@pytest.mark.parametrize(
    ("on_fault", "total", "allowed"), [("keep", 100, 0), ({"stop_at": 50}, 10, 50), ({"stop_at": "5%"}, 199, 9)]
)
def test_faults_are_allowed_up_to_stop_at(site_form: im.Form, on_fault: object, total: int, allowed: int) -> None:
    """A form that keeps good rows allows none without a word."""
    form = dataclasses.replace(site_form, on_fault=on_fault)  # type: ignore[arg-type]

    assert im.failed_rows_allowed(form, total) == allowed


@pytest.mark.parametrize(
    ("written", "meant"), [("90s", 90), ("15m", 900), ("26h", 93600), ("2d", 172800), (None, None)]
)
def test_freshness_is_read_as_written(site_form: im.Form, written: str | None, meant: int | None) -> None:
    """Seconds, minutes, hours, days, weeks."""
    within = im.fresh_within(dataclasses.replace(site_form, fresh_within=written))

    assert (None if within is None else within.total_seconds()) == meant
