"""Make a workbook from its recipe: raw sheet XML, the same bytes on every machine.

Run as a process of its own (``python -m benchmarks.writer RECIPE DIVISOR PATH``), so that polars never counts in the
memory of the process that measures. Values are arithmetic on the row number, not a random generator, and whole chunks
of rows are strings that polars formats: a million rows take about half a minute, most of it deflating.

The XML is what Excel writes for such a sheet: references and spans on each row, styles on dates, shared strings in the
order of their use for the free text.
"""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final
from xml.sax.saxutils import escape

import polars as pl

from benchmarks.recipes import RECIPES, ColumnRecipe, Recipe

#: Rows formatted at a time.
CHUNK_ROWS: Final = 50_000
#: One cell in so many is bad in a workbook with bad cells (2 %).
BAD_EVERY: Final = 50
_FIRST_DAY: Final = 44_927  # 1 January 2023
_BAD_WORDS: Final = ("n/a", "31.02.2025", "perhaps")
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def write_workbook(recipe: Recipe, path: Path) -> tuple[int, int]:
    """Write the workbook to `path` and return (rows without a bad cell, bad cells)."""
    strings = _SharedStrings(recipe)
    accepted_rows = faults = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, text in _small_parts(inline=recipe.inline).items():
            with archive.open(_entry(name), "w") as part:
                part.write((_XML + text).encode())
        if not recipe.inline:
            with archive.open(_entry("xl/sharedStrings.xml"), "w", force_zip64=True) as part:
                strings.write(part)
        with archive.open(_entry("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as part:
            last = f"{column_letters(len(recipe.columns) - 1)}{recipe.rows + 1}"
            part.write(f'{_XML}<worksheet xmlns="{_MAIN}"><dimension ref="A1:{last}"/><sheetData>'.encode())
            part.write(_header(recipe).encode())
            for lines, good, bad in _chunks(recipe, strings):
                part.write(lines.encode())
                accepted_rows += good
                faults += bad
            part.write(b"</sheetData></worksheet>")
    return accepted_rows, faults


def column_letters(position: int) -> str:
    """Return the letters of a column counted from 0: A, B ... Z, AA."""
    letters = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


class _SharedStrings:
    """Where each text of a recipe stands in the table: titles, bad words, words by column, then a note a row."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._texts: list[str] = [column.title for column in recipe.columns] + list(_BAD_WORDS)
        self.words_at: dict[tuple[str, ...], int] = {}
        for column in recipe.columns:
            if column.content == "words" and column.words not in self.words_at:
                self.words_at[column.words] = len(self._texts)
                self._texts += column.words
        self.notes_at = len(self._texts)
        self.bad_word_at = {word: len(recipe.columns) + n for n, word in enumerate(_BAD_WORDS)}

    def write(self, part: IO[bytes]) -> None:
        notes = any(column.content == "note" for column in self._recipe.columns)
        total = self.notes_at + (self._recipe.rows if notes else 0)
        part.write(f'{_XML}<sst xmlns="{_MAIN}" uniqueCount="{total}">'.encode())
        part.write("".join(f"<si><t>{escape(text)}</t></si>" for text in self._texts).encode())
        if notes:
            for frame in _row_frames(self._recipe.rows):
                lines = frame.select(pl.format("<si><t>{}</t></si>", _note(pl.col("i")))).to_series()
                part.write("".join(lines.to_list()).encode())
        part.write(b"</sst>")


def _entry(name: str) -> zipfile.ZipInfo:
    """Return a zip entry without today's date in it."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _small_parts(*, inline: bool) -> dict[str, str]:
    spreadsheet = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {"workbook": "sheet.main", "styles": "styles", "worksheets/sheet1": "worksheet"}
    relations = {"rId1": "worksheets/sheet1", "rId2": "styles"}
    if not inline:
        parts["sharedStrings"] = "sharedStrings"
        relations["rId3"] = "sharedStrings"
    overrides = "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="{spreadsheet}.{kind}+xml"/>' for part, kind in parts.items()
    )
    related = "".join(
        f'<Relationship Id="{id_}" Type="{_OFFICE}/{part.split("/")[0].removesuffix("s") if "/" in part else part}"'
        f' Target="{part}.xml"/>'
        for id_, part in relations.items()
    )
    return {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml"'
        f' ContentType="application/xml"/>{overrides}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type='
        f'"{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="Report" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{related}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/>'
        '</font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders>'
        '<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="3"><xf numFmtId="0" xfId="0"/>'
        '<xf numFmtId="14" xfId="0" applyNumberFormat="1"/><xf numFmtId="2" xfId="0" applyNumberFormat="1"/></cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
    }


def _header(recipe: Recipe) -> str:
    cells = (
        f'<c r="{column_letters(n)}1" t="inlineStr"><is><t>{escape(column.title)}</t></is></c>'
        if recipe.inline
        else f'<c r="{column_letters(n)}1" t="s"><v>{n}</v></c>'
        for n, column in enumerate(recipe.columns)
    )
    return f'<row r="1" spans="1:{len(recipe.columns)}">{"".join(cells)}</row>'


def _row_frames(rows: int) -> Iterator[pl.DataFrame]:
    for start in range(0, rows, CHUNK_ROWS):
        yield pl.select(i=pl.int_range(start, min(start + CHUNK_ROWS, rows), dtype=pl.Int64))


def _chunks(recipe: Recipe, strings: _SharedStrings) -> Iterator[tuple[str, int, int]]:
    """Yield the XML of some rows, how many of them have no bad cell, and how many bad cells they have."""
    i = pl.col("i")
    cells = [_cell(recipe, column, n, strings) for n, column in enumerate(recipe.columns)]
    bad = [_is_bad(n).cast(pl.Int64) for n in range(len(recipe.columns))] if recipe.bad_cells else [i * 0]
    row = pl.concat_str(
        pl.lit('<row r="'), i + 2, pl.lit(f'" spans="1:{len(recipe.columns)}">'), *cells, pl.lit("</row>")
    )
    for frame in _row_frames(recipe.rows):
        made = frame.select(row=row, faults=pl.sum_horizontal(bad))
        yield "".join(made["row"].to_list()), int((made["faults"] == 0).sum()), int(made["faults"].sum())


def _cell(recipe: Recipe, column: ColumnRecipe, position: int, strings: _SharedStrings) -> pl.Expr:
    open_ = pl.concat_str(pl.lit(f'<c r="{column_letters(position)}'), pl.col("i") + 2)
    cell = pl.concat_str(open_, _inside(recipe, column, position, strings), pl.lit("</c>"))
    if column.blank_every:
        cell = pl.when(_drawn(position + 500, column.blank_every) == 0).then(pl.lit("")).otherwise(cell)
    if recipe.bad_cells:
        wrong = pl.concat_str(open_, pl.lit(_bad_inside(recipe, column, strings)), pl.lit("</c>"))
        cell = pl.when(_is_bad(position)).then(wrong).otherwise(cell)
    return cell


def _inside(recipe: Recipe, column: ColumnRecipe, position: int, strings: _SharedStrings) -> pl.Expr:
    """Return attributes and content of a good cell, from the end of its reference on."""
    drawn = _drawn(position, column.below)
    match column.content:
        case "integer":
            return _number("", drawn)
        case "float":  # quarters, as people enter them: 12.75
            return _number(' s="2"', drawn / 4)
        case "long_float":  # a quotient, as formulas leave them: 17 digits
            return _number(' s="2"', (drawn * 100 + 1) / 700)
        case "date":
            return _number(' s="1"', drawn + _FIRST_DAY)
        case "boolean":
            return _number(' t="b"', _drawn(position, 2))
    at = _drawn(position, max(len(column.words), 1))
    if not recipe.inline:
        index = pl.col("i") + strings.notes_at if column.content == "note" else at + strings.words_at[column.words]
        return _number(' t="s"', index)
    words = pl.Series([escape(word) for word in column.words], dtype=pl.String)
    text = _note(pl.col("i")) if column.content == "note" else pl.lit(words).gather(at)
    return pl.concat_str(pl.lit('" t="inlineStr"><is><t>'), text, pl.lit("</t></is>"))


def _number(attributes: str, value: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit(f'"{attributes}><v>'), value, pl.lit("</v>"))


def _bad_inside(recipe: Recipe, column: ColumnRecipe, strings: _SharedStrings) -> str:
    """Return attributes and content of a cell that is exactly one fault of its column."""
    match column.content:
        case "integer":
            word = _BAD_WORDS[0]
        case "date":
            word = _BAD_WORDS[1]
        case "boolean":
            word = _BAD_WORDS[2]
        case "words" | "note":
            return '" t="e"><v>#N/A</v>'
        case _:
            return '" t="e"><v>#DIV/0!</v>'
    if recipe.inline:
        return f'" t="inlineStr"><is><t>{word}</t></is>'
    return f'" t="s"><v>{strings.bad_word_at[word]}</v>'


def _is_bad(position: int) -> pl.Expr:
    return _drawn(position + 900, BAD_EVERY) == 0


def _drawn(salt: int, below: int) -> pl.Expr:
    """Return a number from 0 up to `below` for each row, by squares modulo a prime, others for each salt."""
    prime = 2_147_483_647
    spread = (pl.col("i") + 1) * (48_271 + 2_039 * salt) % prime
    return (spread * spread + salt) % prime % below


def _note(i: pl.Expr) -> pl.Expr:
    """Return free text that no two rows share, about 90 characters, as XML."""
    works = pl.Series(
        ["formwork stripped", "rebar placed &amp; tied", "façade anchors drilled", "screed poured", "shafts cleaned"]
    )
    return pl.format(
        "Visit {} with foreman {}: {} up to axis {}, remaining work is to follow in week {}",
        i + 100_000,
        _drawn(701, 97),
        pl.lit(works).gather(_drawn(702, len(works))),
        _drawn(703, 60),
        _drawn(704, 52) + 1,
    )


def main(name: str, divisor: str, path: str) -> None:
    """Make one workbook and print what a right import of it must find."""
    accepted_rows, faults = write_workbook(RECIPES[name].scaled(int(divisor)), Path(path))
    print(json.dumps({"accepted_rows": accepted_rows, "faults": faults}))


if __name__ == "__main__":
    main(*sys.argv[1:])
