"""A trigger on new workbooks: what the inbox holds becomes imports, and each starts something once."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from importer.lease import holder_name
from importer.triggers import triggers_due
from tests.importing import form, site_workbook

MoveClock = Callable[..., None]


@im.task(name="inbox.note", version=1)
def note(ctx: im.Context) -> object:
    """Give back what came."""
    return ctx.input


@pytest.fixture
def watched(db: Database, tmp_path: Path) -> im.Settings:
    """Give settings with an inbox and a form whose files it takes."""
    (tmp_path / "inbox").mkdir()
    (tmp_path / "forms").mkdir()
    definition = {**form().to_dict(), "inbox": "*.xlsx"}
    (tmp_path / "forms" / "site_report.json").write_text(json.dumps(definition), encoding="utf-8")
    return replace(db.settings, inbox=tmp_path / "inbox", forms_folder=tmp_path / "forms")


def test_new_workbooks_start_imports(db: Database, watched: im.Settings, tmp_path: Path, move_clock: MoveClock) -> None:
    """Each whole file is one import and one firing, however often is looked."""
    im.put_trigger({"name": "t", "type": "file", "config": {"every": "30s"}, "target": {"task": "inbox.note"}}, db=db)
    for step, name in enumerate(["a.xlsx", "b.xlsx"]):
        site_workbook(tmp_path / "inbox" / name, 10, start=step * 100)
        for look in range(3):  # at the first it settles, at the next it is taken, then it is known
            move_clock(dt.timedelta(minutes=step * 10 + look))
            with Database(db.conninfo, watched) as now:
                triggers_due(now, holder_name("trigger"))

    assert [each.input["path"] for each in reversed(im.tasks(db=db))] == ["a.xlsx", "b.xlsx"]
    assert sorted(job.id for job in im.jobs(db=db)) == sorted(each.input["job_id"] for each in im.tasks(db=db))
    assert im.trigger("t", db=db).fire_count == 2
