"""The examples of `deploy/` are what Dagster takes, and differ from `make dev`'s file only where they say so."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._config import validate_config
from dagster._core.instance.config import dagster_instance_config_schema

from tests.house.project import ROOT

EXAMPLES = sorted((ROOT / "deploy").glob("dagster*.yaml"))


def read(path: Path) -> dict[str, Any]:
    """Return an example."""
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", [ROOT / "dagster.yaml", *EXAMPLES], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_instance_file_is_valid(path: Path) -> None:
    """Every key is one that Dagster knows, with a value it takes."""
    checked = validate_config(dagster_instance_config_schema(), read(path))

    assert checked.success, checked.errors


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_differ_only_in_the_launcher(path: Path) -> None:
    """What `make dev` was tried with is what production is told to use."""
    example, ours = read(path), read(ROOT / "dagster.yaml")
    example.pop("run_launcher", None)
    example["concurrency"]["runs"] = ours["concurrency"]["runs"]

    assert example == ours


@pytest.mark.parametrize("name", ["kubernetes", "celery"])
def test_a_launcher_takes_its_configuration(name: str) -> None:
    """Where the launcher's package is installed, its own schema judges; where not, that it is named as a class."""
    launcher = read(ROOT / f"deploy/dagster.{name}.yaml")["run_launcher"]
    if importlib.util.find_spec(launcher["module"].partition(".")[0]) is None:
        assert set(launcher) == {"module", "class", "config"}
        return
    taken = getattr(importlib.import_module(launcher["module"]), launcher["class"])

    checked = validate_config(taken.config_type(), launcher["config"])

    assert checked.success, checked.errors
