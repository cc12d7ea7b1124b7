"""The set-up says what is missing in one sentence, and is not repeated."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.project import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with what the set-up reads, and no environment."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def _python(folder: Path, script: str) -> Path:
    path = folder / "python3"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60, env=outside
    )


def test_an_old_python_is_refused_in_a_sentence(checkout: Path) -> None:
    """The sentence names the version that is wanted, the one found, and how to name another."""
    old = _python(checkout, 'case "$*" in *platform*) echo 3.9.2;; *) exit 1;; esac')

    made = _make(checkout, "test", f"PYTHON={old}")

    assert made.returncode != 0
    assert made.stderr.startswith(f"Python 3.11 or newer is needed, and '{old}' is 3.9.2.")
    assert not (checkout / ".venv").exists()


def test_a_missing_python_is_said(checkout: Path) -> None:
    """No interpreter at all: the sentence says what to install."""
    made = _make(checkout, "demo", "PYTHON=no-such-python")

    assert made.returncode != 0
    assert made.stderr.startswith("Python is missing: no 'no-such-python' here.")


def test_a_missing_venv_module_is_said(checkout: Path) -> None:
    """Debian keeps `venv` in a package of its own; the sentence names it."""
    without = _python(checkout, 'case "$*" in *venv*) echo "ensurepip is not available" >&2; exit 1;; esac')

    made = _make(checkout, "lint", f"PYTHON={without}")

    assert made.returncode != 0
    assert "apt-get install python3-venv" in made.stderr
    assert not (checkout / ".venv" / ".ready").exists()


def test_a_second_call_sets_nothing_up(checkout: Path) -> None:
    """What stands is used: a target of a ready environment runs its own command only."""
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".ready").touch()

    planned = _make(checkout, "--dry-run", "demo")

    assert planned.stdout.strip() == ".venv/bin/rowlease demo"


@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "soak", "lock", "dev"])
def test_each_target_is_there_and_named_in_the_help(checkout: Path, target: str) -> None:
    """`make` alone lists every target."""
    assert f"make {target} " in _make(checkout).stdout
    assert _make(checkout, "--dry-run", target).returncode == 0
