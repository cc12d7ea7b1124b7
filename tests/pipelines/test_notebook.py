"""A notebook beside Dagster: what it submits is run there, and what it launches runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.project import ROOT
from tests.notebooks.running import outputs, run
from tests.pipelines.stack import Stack


def test_jobs_are_watched_and_launched(
    stack: Stack, stack_conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is submitted is run by Dagster, and a run that is launched imports its file."""
    monkeypatch.setenv("DATABASE_URL", stack_conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(stack.folder / "data"))
    monkeypatch.setenv("DAGSTER_PORT", str(stack.port))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    shown = outputs(run(ROOT / "notebooks/4_watch_and_launch.ipynb", tmp_path))

    assert "('partial_success', 22, 3)" in shown
    assert "'SUCCESS'" in shown
    assert "('partial_success', 36, 4)" in shown
