"""The front door: what it exports is documented, and nothing else is meant to be used."""

from __future__ import annotations

import importer


def test_every_public_name_exists_and_is_documented() -> None:
    """`__all__` is sorted, each name in it is there and has a docstring of its own."""
    undocumented = [
        name
        for name in importer.__all__
        if not name.startswith("__") and not (getattr(importer, name).__doc__ or "").strip()
    ]

    assert sorted(importer.__all__) == list(importer.__all__)
    assert undocumented == []


def test_the_front_door_names_what_is_promised() -> None:
    """The names that programs outside call are there."""
    promised = {
        "Form", "sheets", "read_cells", "check", "connect", "import_workbook", "submit", "work", "jobs", "job",
        "faults", "cancel", "retry", "WorkbookError", "ImporterError",
    }  # fmt: skip

    assert promised <= set(importer.__all__)
