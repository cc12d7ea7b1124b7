"""A damaged workbook is read or refused, never anything else; `tests/fuzz_reader.py` damages them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def damage(rounds: int, seed: int) -> str:
    """Damage workbooks in a process of its own, whose memory is nobody else's; return what it says."""
    command = [sys.executable, "-m", "tests.fuzz_reader", "--rounds", str(rounds), "--seed", str(seed)]
    root = Path(__file__).parents[3]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.strip()


def test_damaged_workbooks_are_read_or_refused() -> None:
    """No exception but `WorkbookError`, no difference between scanners, no more memory than a reader may take."""
    assert "150 damaged workbooks, 0 wrong" in damage(rounds=150, seed=1)


@pytest.mark.soak
def test_many_damaged_workbooks_are_read_or_refused() -> None:
    """The same for long: twenty workbooks for each round that the soak is asked for."""
    rounds = 20 * int(os.environ.get("ROWLEASE_SOAK_ROUNDS", "1000"))

    print(damage(rounds=rounds, seed=1_000_000))  # noqa: T201 - the figures of the soak
