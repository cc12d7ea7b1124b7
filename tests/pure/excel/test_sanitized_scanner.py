"""The compiled scanner stays within its bounds, under the address sanitizer, on damaged runs."""

from __future__ import annotations

import pytest

from tests.fuzz_scanner import compiler, sanitized


@pytest.mark.skipif(compiler() is None, reason="no gcc with the address sanitizer is there to build the scanner with")
def test_damaged_runs_under_the_address_sanitizer() -> None:
    """No access out of bounds, no undefined arithmetic, no cell that differs; `make soak` runs many more."""
    assert "none differs" in sanitized(3000, seed=20261201)
