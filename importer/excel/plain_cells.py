"""Lines of cells become raw cells, wherever they stand; and what is not plain is told apart."""

from __future__ import annotations

import re

import polars as pl

from importer.excel.limits import Limits
from importer.excel.plain_lines import CELL_MARKS, FORMULA_CLOSED, FORMULA_END
from importer.excel.raw_cells import NUMBER_SHAPE, RawCells, Tag
from importer.excel.tags import CellTag, TagReader
from importer.excel.xml_text import plain_text

#: what a value must look like for its tag to need no other look at it
SHAPES = {Tag.NUMBER: NUMBER_SHAPE, Tag.SHARED: "^(?:0|[1-9][0-9]{0,8})$", Tag.BOOL: "^[01]$"}
#: different tags of one run, beyond which it is not worth looking them up
MOST_TAGS = 1_000
_LETTERS = re.compile(r"[A-Z]{1,3}", re.ASCII)
_COLUMNS = {"row": pl.Int32, "column": pl.Int32, "tag": pl.UInt8, "style": pl.Int32, "text": pl.String}


class NotPlainError(Exception):
    """The run must go the exact way."""


def require(truth: object) -> None:
    """Go on only where this is so."""
    if not truth:
        raise NotPlainError


def cell_tag(tags: TagReader, end: str) -> CellTag:
    """Look up what follows the name of a cell."""
    tag = tags.cell(end)
    if tag is None:
        raise NotPlainError
    return tag


def column_of(letters: str) -> int:
    """Give the column from 0 of its letters."""
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return column - 1


def contents(tag: CellTag, values: pl.Series) -> tuple[pl.Series, bool]:
    """Give the decoded texts of values of one tag (null for null), and whether all have the shape of the tag."""
    begins = values.str.starts_with("v>")
    if tag.inline:
        begins |= values.str.starts_with("i>")
    require(begins.all())
    text = values.str.slice(2)
    shape = SHAPES.get(tag.tag)
    if shape is not None and text.str.contains(shape).all():
        return text, True
    decoded = plain_text(text)
    if decoded is None:
        raise NotPlainError
    return decoded, False


def read_cells(openings: pl.Series, values: pl.Series, rows: pl.Series, tags: TagReader, limits: Limits) -> RawCells:
    """Read lines of cells with the numbers of their rows (Int32); blank cells are left out."""
    parts = openings.str.strip_chars_start(CELL_MARKS).str.splitn('"', 2).struct.unnest()
    references, ends = parts.to_series(0), parts.to_series(1)
    require(not ends.null_count())
    named = pl.DataFrame({"reference": references, "row": rows.cast(pl.String)}).select(
        letters=pl.col("reference").str.strip_suffix(pl.col("row")),
        numbered=pl.col("reference").str.ends_with(pl.col("row")),
    )
    require(named["numbered"].all())
    letters = named["letters"]
    names = letters.unique()
    require(len(names) <= limits.columns)
    columns = []
    for name in names.to_list():
        require(_LETTERS.fullmatch(name))
        columns.append(column_of(name))
        require(columns[-1] < limits.columns)
    column = letters.replace_strict(names, pl.Series(columns, dtype=pl.Int32), return_dtype=pl.Int32)
    return _by_end(pl.DataFrame({"end": ends, "value": values, "row": rows, "column": column}), tags)


def _by_end(cells: pl.DataFrame, tags: TagReader) -> RawCells:
    """Read cells by the ends of their tags, of which there are few."""
    found: list[pl.DataFrame] = []
    require(cells["end"].n_unique() <= MOST_TAGS)
    parts = cells.with_row_index("at").partition_by("end", as_dict=True)
    for (end,), part in parts.items():
        tag, values = cell_tag(tags, end), part["value"]
        require(values.null_count() == (len(part) if tag.closed else 0))
        if not tag.closed:
            found.append(
                part.select(
                    "at",
                    "row",
                    "column",
                    tag=pl.lit(int(tag.tag), dtype=pl.UInt8),
                    style=pl.lit(tag.style, dtype=pl.Int32),
                    text=contents(tag, values)[0],
                )
            )
    if not found:
        return RawCells(**{name: pl.Series([], dtype=dtype) for name, dtype in _COLUMNS.items()})
    frame = found[0] if len(found) == 1 else pl.concat(found).sort("at")
    return RawCells(**{name: frame[name] for name in _COLUMNS})


def take_formulas(values: pl.Series, tags: TagReader) -> tuple[pl.Series, int]:
    """Give the values without the formulas they come from, and how many formulas there were."""
    at = values.str.starts_with("f").fill_null(False).arg_true()
    if not len(at):
        return values, 0
    found = values.gather(at)
    require((found.str.count_matches(f"[{FORMULA_END}{FORMULA_CLOSED}]") == 1).all())
    closed = found.str.contains(FORMULA_CLOSED, literal=True)
    parts = found.str.replace(FORMULA_CLOSED, FORMULA_END, literal=True).str.splitn(FORMULA_END, 2).struct.unnest()
    heads, results = parts.to_series(0), parts.to_series(1)
    require((results.str.strip_chars() != "").all())
    opened = heads.filter(~closed)
    split = opened.str.extract_groups("(?s)^f([^>]*>)(.*)$").struct.unnest()
    ends, texts = split.to_series(0), split.to_series(1)
    require(not ends.null_count() and (not len(texts) or plain_text(texts) is not None))
    ends = pl.concat([ends, heads.filter(closed).str.slice(1) + "/>"]).unique()
    require(len(ends) <= MOST_TAGS and all(tags.formula(end) for end in ends.to_list() if end != ">"))
    return values.scatter(at, "v>" + results), len(at)
