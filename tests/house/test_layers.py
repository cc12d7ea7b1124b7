"""Who may import whom: the contracts of pyproject.toml, and what an import of the front door brings along."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.house.project import ROOT, modules

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def test_every_contract_is_kept() -> None:
    """Layers, front door, wings, psycopg and cycles: import-linter finds nothing."""
    command = Path(sys.executable).with_name("lint-imports")

    checked = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_room_of_the_durable_wing_is_kept_from_frames() -> None:
    """A new room cannot be forgotten in the contract that keeps frames out of the durable wing."""
    durable = {
        "db", "lease", "import_job", "timer_job", "target", "inbox", "outbox_message", "task_run", "workflow",
        "alerts", "metrics", "import_chain", "import_run", "import_address", "outbox_route", "retention",
    }  # fmt: skip
    built = {path.with_suffix("").parts[1] for path in modules("importer")} & durable
    contract = next(each for each in CONTRACTS if each["name"] == "No frames in the durable wing")

    assert {f"importer.{room}" for room in built} == set(contract["source_modules"])


def test_the_front_door_brings_no_orchestrator_along() -> None:
    """`import importer` loads neither Dagster nor IPython, and opens no connection."""
    script = "import sys, importer; print(sorted({'dagster', 'IPython', 'ipywidgets', 'notebook'} & set(sys.modules)))"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"
