"""A bar for a person who waits: rows, rate, faults; in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.batch.importing import Progress


@contextmanager
def bar(title: str, *, shown: bool) -> Iterator[Progress]:
    """Give a function that moves the bar to (rows dealt with, rows failed); nothing is shown unless `shown`."""
    if not shown:
        yield lambda _rows, _failed: None
        return
    from tqdm.auto import tqdm  # noqa: PLC0415 - tqdm looks for a notebook when it is imported

    with tqdm(desc=title, unit=" rows", unit_scale=True) as line:

        def move(rows: int, failed: int) -> None:
            if rows != line.n:
                line.set_postfix_str(f"{failed:,} failed", refresh=False)
                line.update(rows - line.n)

        yield move
