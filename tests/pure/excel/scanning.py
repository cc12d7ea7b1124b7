"""Runs of rows for scanners: random ones, mutated ones, and what each scanner makes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from importer.errors import WorkbookError
from importer.excel.compiled_scan import CompiledScanner
from importer.excel.exact_scan import ExactScanner
from importer.excel.limits import Limits
from importer.excel.raw_cells import RawCells, RawGrid, SheetCounts, Tag

HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
LIMITS = Limits()

#: row, column, tag, style, text
Cell = tuple[int, int, int, int, str]
#: last row, cells, formulas, hidden rows
Counted = tuple[int, int, int, int]

SEEDS = (
    (
        '<row r="1"><c r="A1"><v>1</v></c><c r="B1" t="s"><v>3</v></c></row><row r="2"><c r="A2">'
        '<v>2.5E-3</v></c><c r="B2" t="s"><v>31</v></c></row>'
    ),
    (
        '<row r="1" spans="1:3" ht="15"><c r="A1" t="inlineStr"><is><t>a &amp; b &lt; a longer text</t></is>'
        '</c></row><row r="3"><c r="C3" s="2"/></row><row r="4" hidden="1"><c r="B4" t="b"><v>1</v></c>'
        '</row><row r="9"/>'
    ),
    (
        '<row r="7"><c r="A7"><f>A1+1</f><v>3</v></c><c r="D7"><f t="shared" si="0"/><v>3</v></c>'
        '<c r="E7" t="str"><f>""</f><v></v></c></row><row r="8"><c r="A8" t="e"><v>#N/A</v></c></row>'
    ),
    '<row r="1048576"><c r="XFD1048576" s="1" t="str"><v>äöü漢字🙂 and more than twelve bytes</v></c></row>',
    (
        '<row r="2"><c r="A2" s="1"><v>45000</v></c><c r="B2" s="2"><v>1</v></c></row><row r="3">'
        '<c r="A3" s="1"><v>45001</v></c><c r="B3" s="3"><v>x</v></c></row>'
    ),
    '<row r="1"><c r="A1"><v>1</v></c><c r="A1"><v>2</v></c></row><row r="2"><c r="A2"></c></row>',
    (
        '<row r="5"><c r="A5" t="inlineStr"><is><t xml:space="preserve"> x </t></is></c><c r="B5" t="d">'
        "<v>2024-02-29</v></c></row>"
    ),
)

PIECES = (
    "<", ">", "&", "&#10;", "&amp;", "&lt;", "]]>", "\x01", "\r", "\n", '"', "'", "/", "</v>", "<v>", "</c>", "</row>",
    "<is><t>", "</t></is>", '<row r="', '<c r="', "/>", "<f>", "</f>", '<f t="shared" si="1">', "<!-- x -->", "<x/>",
    "0", "9", "A", "Z", "XFD", "XFE", "1048577", ' t="s"', ' s="7"', " s=7", ' t="zz"', "é", "\ufffe", "\U0001f642",
    ' r="A1"', ' xmlns="y"', "<![CDATA[x]]>", "<v/>",
)  # fmt: skip


def mutations(count: int, seed: int) -> Iterator[bytes]:
    """Give runs that were sound once: bytes and pieces put in, taken out, doubled, swapped."""
    dice = random.Random(seed)
    for _ in range(count):
        run = bytearray(dice.choice(SEEDS).encode())
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(run) + 1)
            end = min(len(run), at + dice.choice((0, 0, 1, 1, 2, 5, 20)))
            what = dice.randrange(5)
            if what == 0:
                run[at:end] = dice.choice(PIECES).encode()
            elif what == 1:
                del run[at:end]
            elif what == 2:
                run[at:at] = run[at:end]
            elif what == 3:
                run[at:end] = bytes([dice.randrange(256)])
            else:
                run += dice.choice(SEEDS).encode()
        yield bytes(run)


def exactly(run: bytes) -> tuple[list[Cell], Counted] | None:
    """What the exact scanner makes of a run; None when it refuses it or rows are left open."""
    counts = SheetCounts()
    scanner = ExactScanner("sheet1.xml", LIMITS, counts)
    try:
        scanner.feed(HEAD)
        scanner.feed(run)
        if not scanner.between_rows:
            return None
        scanner.feed(b"</sheetData></worksheet>", last=True)
    except WorkbookError:
        return None
    return _cells(scanner.take()), _counted(counts)


def compiled(run: bytes) -> tuple[list[Cell], Counted] | None:
    """What the compiled scanner makes of a run; None when it leaves it to the exact one."""
    counts = SheetCounts()
    found = CompiledScanner(HEAD, LIMITS, counts).scan(run)
    return None if found is None else (_cells(found), _counted(counts))


def _counted(counts: SheetCounts) -> Counted:
    return counts.last_row, counts.cells, counts.formulas, counts.hidden_rows


def _cells(raw: RawCells | RawGrid) -> list[Cell]:
    """All cells in one order, texts without the white space that no tag but TEXT keeps."""
    if isinstance(raw, RawGrid):
        cells = [
            (row, at, int(column.tag), column.style, str(text))
            for at, column in raw.columns.items()
            for row, text in zip(raw.rows.to_list(), column.text.to_list(), strict=True)
            if text is not None
        ]
        return sorted([*cells, *(_cells(raw.others) if raw.others is not None else [])])
    rows = zip(raw.row, raw.column, raw.tag, raw.style, raw.text, strict=True)
    stripped = ((r, c, t, s, x if t == Tag.TEXT else x.strip(" \t\r\n")) for r, c, t, s, x in rows)
    return sorted(cell for cell in stripped if cell[4] != "")
