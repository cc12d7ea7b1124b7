"""A damaged workbook is read or refused, never anything else; `tests/fuzz_reader.py` damages them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz_reader import fuzz


def test_damaged_workbooks_are_read_or_refused(tmp_path: Path) -> None:
    """No exception but `WorkbookError`, no difference between scanners, no more memory than a reader may take."""
    assert fuzz(rounds=150, seed=1, folder=tmp_path) == []


@pytest.mark.soak
def test_many_damaged_workbooks_are_read_or_refused(tmp_path: Path) -> None:
    """The same for long: twenty workbooks for each round that the soak is asked for."""
    rounds = 20 * int(os.environ.get("ROWLEASE_SOAK_ROUNDS", "1000"))

    wrong = fuzz(rounds=rounds, seed=1_000_000, folder=tmp_path)

    print(f"{rounds:,} damaged workbooks, {len(wrong)} wrong")  # noqa: T201 - the figures of the soak
    assert wrong == []
