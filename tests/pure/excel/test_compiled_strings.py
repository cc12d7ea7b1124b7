"""Shared strings read by the compiled scanner are those that expat reads, or are left to it."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from importer.errors import WorkbookError
from importer.excel.archive import Archive, open_binary
from importer.excel.compiled_scan import COMPILED, compiled_strings
from importer.excel.limits import Limits
from importer.excel.shared_strings import read_shared_strings
from tests.pure.excel.scanning import PIECES
from tests.workbooks import MAIN, zip_parts

pytestmark = pytest.mark.skipif(not COMPILED, reason="no C compiler was there when the package was installed")

ITEMS = (
    "<si><t>a &amp; b</t></si>",
    '<si><t xml:space="preserve">  a text of more than twelve bytes </t></si>',
    "<si><t/></si>",
    "<si/>",
    "<si><t>漢字 äöü 🙂</t></si>",
    "<si><r><t>rich</t></r><r><t>er</t></r><rPh><t>left out</t></rPh></si>",
    "<si><t>_x000D_</t></si>",
)


def read(path: Path, items: str, *, compiled: bool) -> list[str] | None:
    """Read a part of these items; None when it is refused."""
    part = f'<?xml version="1.0"?><sst xmlns="{MAIN}">{items}</sst>'
    zip_parts(path, {"xl/sharedStrings.xml": part.encode("utf-8", "surrogatepass")})
    with open_binary(path) as file:
        try:
            archive = Archive(file, Limits())
            strings = read_shared_strings(archive, "xl/sharedStrings.xml", Limits(), plain=compiled, compiled=compiled)
        except WorkbookError:
            return None
        texts, _ = strings.gather(range_of(len(strings)))
        return list(texts.to_list())


def range_of(length: int) -> pl.Series:
    """Give the indexes of all strings."""
    return pl.int_range(length, dtype=pl.Int64, eager=True)


def test_plain_items_are_taken() -> None:
    """Entities, long texts, empty items."""
    found = compiled_strings("".join(ITEMS[:5]).encode(), Limits())

    assert found is not None
    assert found.to_list() == ["a & b", "  a text of more than twelve bytes ", "", "", "漢字 äöü 🙂"]
    assert compiled_strings(ITEMS[5].encode(), Limits()) is None


def test_damaged_items_never_differ(tmp_path: Path) -> None:
    """Of some hundred damaged parts each is read as expat reads it, or refused as expat refuses it."""
    dice = random.Random(20261201)
    read_alike = 0
    for _ in range(400):
        items = "".join(dice.choice(ITEMS) for _ in range(dice.randint(1, 6)))
        for _ in range(dice.randint(0, 2)):
            at = dice.randrange(len(items) + 1)
            items = (
                items[:at] + dice.choice([*PIECES, "<t>", "</t>", "<si>", "</si>"]) + items[at + dice.randint(0, 3) :]
            )

        exact = read(tmp_path / "a.zip", items, compiled=False)

        assert read(tmp_path / "a.zip", items, compiled=True) == exact, items
        read_alike += exact is not None

    assert read_alike > 100
