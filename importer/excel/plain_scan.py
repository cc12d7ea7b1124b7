"""The plain scanner: rows of the plainest shape become columns without a parser, many times faster than expat.

"<" and the control characters cannot stand in XML text. So each boundary between cells or rows is replaced by a line
end (0x01) and a mark that says which boundary it was, and `read_csv` with "<" as separator cuts the rest: a line is
what stands after `<c r="` (or, marked, after `<row r="`), its second field what stands after the next "<". Nothing else
may be there. Because every mark and every line end is checked against what stands around it, the original bytes could be
written again from what is found: it is a parse, not a guess. What does not fit in any respect is left to the exact
scanner, as a whole piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from importer.excel.limits import Limits
from importer.excel.raw_cells import (
    INDEX_SHAPE,
    NUMBER_SHAPE,
    RawCells,
    RawColumn,
    RawGrid,
    SheetCounts,
    Tag,
)
from importer.excel.tags import CellTag, TagReader
from importer.excel.xml_text import plain_text

_LINE = "\x01"
_ROW_AFTER_VALUE = "\x02"  # a row after </v></c></row>
_ROW_AFTER_INLINE = "\x03"  # a row after </t></is></c></row>
_ROW_AFTER_TAG = "\x04"  # a row after </row> alone
_ROW_AFTER_ROW = "\x05"  # a row after a row that is closed at once
_CELL_AFTER_INLINE = "\x06"  # a cell after </t></is></c>
_CELL_AFTER_TAG = "\x07"  # a cell after a tag
_CELL_AFTER_VALUE = "\x08"  # stands for no mark: a line that begins with nothing below it is a cell after </v></c>
_CELL_MARKS = _CELL_AFTER_INLINE + _CELL_AFTER_TAG
_MARKS = [bytes([mark]) for mark in range(1, 8)]
_BOUNDARIES = (
    ('</v></c><c r="', ""),
    ('</v></c></row><row r="', _ROW_AFTER_VALUE),
    ('<c r="', _CELL_AFTER_TAG),
    ('</row><row r="', _ROW_AFTER_TAG),
    ('<row r="', _ROW_AFTER_ROW),
)
_INLINE_BOUNDARIES = (
    ('</t></is></c><c r="', _CELL_AFTER_INLINE),
    ('</t></is></c></row><row r="', _ROW_AFTER_INLINE),
)
_ENDS = (
    ("</v></c></row>", _ROW_AFTER_VALUE),
    ("</t></is></c></row>", _ROW_AFTER_INLINE),
    ("</row>", _ROW_AFTER_TAG),
    ("", _ROW_AFTER_ROW),
)
_LETTERS = re.compile(r"[A-Z]{1,3}", re.ASCII)
_FIRST_CELL = re.compile(r"([\x06\x07]?)([A-Z]{1,3})([0-9]{1,7})(\".*)", re.ASCII | re.DOTALL)
_ROW_NUMBER = r"^[1-9][0-9]{0,6}$"
_SCHEMA = {"opening": pl.String, "value": pl.String, "more": pl.String}
_MOST_TAGS = 1_000
_SHAPES = {Tag.NUMBER: NUMBER_SHAPE, Tag.SHARED: INDEX_SHAPE, Tag.BOOL: "^[01]$"}


class PlainScanner:
    """Takes runs of whole rows and gives their cells, or None for a run that is not of the plain shape."""

    def __init__(self, head: bytes, prefix: str, limits: Limits, counts: SheetCounts) -> None:
        self._tags = TagReader(head, prefix)
        self._prefix = prefix.encode()
        self._limits = limits
        self._counts = counts

    def scan(self, piece: bytes) -> RawGrid | RawCells | None:
        """Scan rows, from `<row` to the end of a row. Nothing is counted unless the run is plain."""
        lines = self._lines(piece)
        if lines is None:
            return None
        try:
            return _Piece(lines, self._tags, self._limits, self._counts).read()
        except _NotPlainError:
            return None

    def _lines(self, piece: bytes) -> pl.DataFrame | None:
        """Cut a piece into lines of opening and value; the first line is a row."""
        if any(mark in piece for mark in _MARKS):
            return None
        if self._prefix:
            mine = piece.count(b"<" + self._prefix) + piece.count(b"</" + self._prefix)
            if mine != piece.count(b"<"):
                return None
            piece = piece.replace(b"<" + self._prefix, b"<").replace(b"</" + self._prefix, b"</")
        if not piece.startswith(b'<row r="'):
            return None
        try:
            text = pl.Series([piece], dtype=pl.Binary).cast(pl.String)
        except pl.exceptions.PolarsError:  # no UTF-8
            return None
        boundaries: tuple[tuple[str, str], ...] = _BOUNDARIES
        if b"<is>" in piece:
            boundaries = (*_INLINE_BOUNDARIES, *_BOUNDARIES)
            text = text.str.replace_all("<is><t>", "<i>", literal=True)
            text = text.str.replace_all('<is><t xml:space="preserve">', "<i>", literal=True)
        text = text.str.slice(len('<row r="'))
        count = 1
        for boundary, mark in boundaries:
            size = text.str.len_bytes().item()
            text = text.str.replace_all(boundary, _LINE + mark, literal=True)
            count += (size - text.str.len_bytes().item()) // (len(boundary) - len(mark) - 1)
        end, mark = next((end, mark) for end, mark in _ENDS if piece.endswith(end.encode()))
        text = text.str.strip_suffix(end)
        content = f"a<b<c{_LINE}{_ROW_AFTER_ROW}".encode() + text.cast(pl.Binary).item() + f"{_LINE}{mark}".encode()
        lines = pl.read_csv(
            content,
            separator="<",
            eol_char=_LINE,
            quote_char=None,
            has_header=False,
            schema=_SCHEMA,
            truncate_ragged_lines=True,
        )
        if len(lines) != count + 2 or lines["more"].null_count() != count + 1:
            return None
        return lines[1:]


class _NotPlainError(Exception):
    """The piece must go the exact way."""


def _require(truth: object) -> None:
    if not truth:
        raise _NotPlainError


@dataclass(frozen=True)
class _Place:
    """Where a cell stands in a row, and how it begins: `before`, the row's number, `end`."""

    column: int
    letters: str
    before: str
    end: str
    tag: CellTag


class _Piece:
    """One piece cut into lines."""

    def __init__(self, lines: pl.DataFrame, tags: TagReader, limits: Limits, counts: SheetCounts) -> None:
        self._openings = lines["opening"]
        self._values = lines["value"]
        self._tags = tags
        self._limits = limits
        self._counts = counts

    def read(self) -> RawGrid | RawCells:
        openings, values = self._openings, self._values
        is_row = openings < _CELL_AFTER_INLINE
        numbers, hidden, closed = self._rows(openings.filter(is_row)[:-1])
        self._check_marks(is_row, closed)
        is_row = is_row[:-1]  # the last line only bears the mark of the end
        openings, values = openings[:-1], values[:-1]
        starts = is_row.arg_true()
        widths = pl.concat([starts.cast(pl.Int64), pl.Series([len(is_row)], dtype=pl.Int64)]).diff()[1:] - 1
        count = len(openings) - len(starts)
        _require(self._counts.cells + count <= self._limits.cells)
        _require((openings.str.len_bytes() <= self._limits.tag_bytes).all())
        _require((values.str.len_bytes() <= self._limits.cell_characters).all())
        cells, texts = openings.filter(~is_row), values.filter(~is_row)
        written = numbers.cast(pl.String)
        found: RawGrid | RawCells | None = None
        width = widths[0] if len(widths) else 0
        if width and (widths == width).all():
            found = self._grid(cells, texts, written, numbers, int(width))
        if found is None:
            found = self._scattered(cells, texts, numbers, widths)
        self._counts.cells += count
        self._counts.hidden_rows += hidden
        self._counts.last_row = numbers[-1]
        return found

    def _rows(self, lines: pl.Series) -> tuple[pl.Series, int, pl.Series]:
        """Give row numbers (Int32), how many rows are hidden, and which are closed at once."""
        parts = lines.str.slice(1).str.splitn('"', 2).struct.unnest()
        written, ends = parts.to_series(0), parts.to_series(1)
        _require(not ends.null_count() and written.str.contains(_ROW_NUMBER).all())
        numbers = written.cast(pl.Int32)
        _require(numbers[0] > self._counts.last_row and numbers[-1] <= self._limits.rows)
        _require((numbers.diff()[1:] > 0).all())
        counted = ends.value_counts()
        _require(len(counted) <= _MOST_TAGS)
        hidden, closing = 0, []
        for end, times in counted.iter_rows():
            tag = self._tags.row(end)
            _require(tag is not None)
            if tag is not None and tag.hidden:
                hidden += times
            if tag is not None and tag.closed:
                closing.append(end)
        closed = ends.is_in(closing) if closing else pl.repeat(False, len(ends), dtype=pl.Boolean, eager=True)
        return numbers, hidden, closed

    def _check_marks(self, is_row: pl.Series, closed: pl.Series) -> None:
        """Each mark must fit the line before it: a value, an inline string, a tag, or a row that is closed at once."""
        openings, values = self._openings, self._values
        valued = values.is_not_null()
        _require(not valued.filter(is_row).any())
        inline = (openings >= _ROW_AFTER_INLINE) & (openings < _ROW_AFTER_TAG)
        inline |= (openings >= _CELL_AFTER_INLINE) & (openings < _CELL_AFTER_TAG)
        if inline.any():
            _require((inline[1:] == values.str.starts_with("i>").fill_null(False)[:-1]).all())
        after_value = (openings >= _CELL_AFTER_VALUE) | (openings < _ROW_AFTER_INLINE) | inline
        _require((after_value[1:] == valued[:-1]).all())
        rows_closed = pl.repeat(False, len(openings), dtype=pl.Boolean, eager=True)
        if closed.any():
            rows_closed = rows_closed.scatter(is_row.arg_true()[:-1].filter(closed), True)
        after_row = (openings >= _ROW_AFTER_ROW) & (openings < _CELL_AFTER_INLINE)
        _require((after_row[1:] == rows_closed[:-1]).all())

    def _grid(
        self, cells: pl.Series, texts: pl.Series, written: pl.Series, numbers: pl.Series, width: int
    ) -> RawGrid | None:
        """Read rows of the same columns; None when a cell does not stand where the last row has it.

        Expressions over all columns go into few `select`s: each call of a method of a series costs some 50 microseconds,
        which made a sheet of 150 columns take three times as long.
        """
        places = self._places(cells[-width:], width)
        if places is None:
            return None
        frame = pl.DataFrame({"opening": cells, "text": texts})
        ends = {end: pl.lit(written + end) for end in {place.end for place in places}}
        opening, text = ([pl.col(name).gather_every(width, at) for at in range(width)] for name in ("opening", "text"))
        same = frame.select(
            (opening[at].str.starts_with(place.before) & (opening[at].str.slice(len(place.before)) == ends[place.end]))
            .all()
            .alias(str(at))
            for at, place in enumerate(places)
        ).row(0)
        uniform = [at for at, place in enumerate(places) if same[at] and not place.tag.closed]
        columns = self._uniform_columns(frame.select(text[at].alias(str(at)) for at in uniform), places)
        blank = [
            text[at].null_count().alias(str(at)) for at, place in enumerate(places) if same[at] and place.tag.closed
        ]
        _require(all(count == len(numbers) for count in frame.select(blank).row(0)) if blank else True)
        others: list[RawCells] = []
        for at, place in enumerate(places):
            if not same[at]:
                both = frame.select(opening[at], text[at])
                found = self._many_tags(place, both["opening"], both["text"], written, numbers)
                if found is None:
                    return None
                others.append(found)
        return RawGrid(rows=numbers, columns=columns, others=_by_row(others) if others else None)

    def _places(self, openings: pl.Series, width: int) -> list[_Place] | None:
        """Take one row as the pattern of all."""
        places: list[_Place] = []
        for opening in openings.to_list():
            match = _FIRST_CELL.fullmatch(opening)
            if match is None:
                return None
            mark, letters, _, end = match.groups()
            column = _column(letters)
            _require(column < self._limits.columns)
            if places and column <= places[-1].column:
                return None
            places.append(_Place(column, letters, mark + letters, end, self._cell_tag(end)))
        return places if len(places) == width else None

    def _uniform_columns(self, texts: pl.DataFrame, places: list[_Place]) -> dict[int, RawColumn]:
        """Read columns whose cells all have the same tag."""
        if not texts.width:
            return {}
        first = texts.row(0)
        begins = {
            name: "i>" if places[int(name)].tag.inline and (value or "").startswith("i>") else "v>"
            for name, value in zip(texts.columns, first, strict=True)
        }
        plain = texts.select(pl.col(name).str.starts_with(begin).all() for name, begin in begins.items())
        _require(not any(texts.null_count().row(0)) and all(plain.row(0)))
        texts = texts.select(pl.all().str.slice(2))
        shapes = {name: _SHAPES.get(places[int(name)].tag.tag) for name in texts.columns}
        checked = texts.select(pl.col(name).str.contains(shape).all() for name, shape in shapes.items() if shape)
        sound = dict(zip(checked.columns, checked.row(0), strict=True)) if checked.width else {}
        columns: dict[int, RawColumn] = {}
        for name in texts.columns:
            place, text = places[int(name)], texts[name]
            if not sound.get(name):
                text = _judged(text)
            columns[place.column] = RawColumn(
                tag=place.tag.tag, style=place.tag.style, text=text, sound=bool(sound.get(name))
            )
        return columns

    def _cell_tag(self, end: str) -> CellTag:
        tag = self._tags.cell(end[1:])
        if tag is None:
            raise _NotPlainError
        return tag

    def _many_tags(
        self, place: _Place, opening: pl.Series, text: pl.Series, written: pl.Series, numbers: pl.Series
    ) -> RawCells | None:
        """Read a column whose cells differ in tag; None when a cell of another column is among them."""
        ends = _after(opening.str.strip_chars_start(_CELL_MARKS), place.letters + written + '"')
        if ends is None:
            return None
        return self._by_end(ends, text, numbers, pl.repeat(place.column, len(ends), dtype=pl.Int32, eager=True))

    def _scattered(self, cells: pl.Series, texts: pl.Series, numbers: pl.Series, widths: pl.Series) -> RawCells:
        """Read rows of any columns."""
        row = numbers.repeat_by(widths).explode() if len(cells) else pl.Series([], dtype=pl.Int32)
        row = row.drop_nulls()
        parts = cells.str.strip_chars_start(_CELL_MARKS).str.splitn('"', 2).struct.unnest()
        references, ends = parts.to_series(0), parts.to_series(1)
        _require(len(row) == len(cells) and not ends.null_count())
        letters = pl.DataFrame({"reference": references, "row": row.cast(pl.String)}).select(
            pl.col("reference").str.strip_suffix(pl.col("row"))
        )["reference"]
        names = letters.unique()
        _require(len(names) <= self._limits.columns)
        columns = []
        for name in names.to_list():
            _require(_LETTERS.fullmatch(name))
            columns.append(_column(name))
            _require(columns[-1] < self._limits.columns)
        column = letters.replace_strict(names, pl.Series(columns, dtype=pl.Int32), return_dtype=pl.Int32)
        return self._by_end(ends, texts, row, column)

    def _by_end(self, ends: pl.Series, texts: pl.Series, row: pl.Series, column: pl.Series) -> RawCells:
        """Read cells by the ends of their tags."""
        found: list[pl.DataFrame] = []
        kinds = ends.unique(maintain_order=True)
        _require(len(kinds) <= _MOST_TAGS)
        frame = pl.DataFrame({"end": ends, "text": texts, "row": row, "column": column})
        frame = frame.with_row_index("at")
        parts = frame.partition_by("end", as_dict=True) if len(kinds) > 1 else {(end,): frame for end in kinds}
        for (end,), part in parts.items():
            tag = self._tags.cell(end)
            if tag is None:
                raise _NotPlainError
            if tag.closed:
                _require(part["text"].null_count() == len(part))
                continue
            found.append(
                part.select(
                    "at",
                    "row",
                    "column",
                    pl.lit(int(tag.tag), dtype=pl.UInt8).alias("tag"),
                    pl.lit(tag.style, dtype=pl.Int32).alias("style"),
                    _contents(tag, part["text"]).alias("text"),
                )
            )
        return _sorted(found, "at")


def _contents(tag: CellTag, text: pl.Series) -> pl.Series:
    """Give the decoded texts of cells of one tag."""
    _require(not text.null_count())
    begins = text.str.starts_with("v>")
    if tag.inline:
        begins |= text.str.starts_with("i>")
    _require(begins.all())
    text = text.str.slice(2)
    shape = _SHAPES.get(tag.tag)
    return text if shape and text.str.contains(shape).all() else _judged(text)


def _judged(text: pl.Series) -> pl.Series:
    decoded = plain_text(text)
    if decoded is None:
        raise _NotPlainError
    return decoded


def _after(texts: pl.Series, beginnings: pl.Series) -> pl.Series | None:
    """Give what follows the beginning of each text, None when one begins otherwise."""
    frame = pl.DataFrame({"text": texts, "beginning": beginnings})
    begins, rest = (
        frame.select(
            begins=pl.col("text").str.starts_with(pl.col("beginning")),
            rest=pl.col("text").str.strip_prefix(pl.col("beginning")),
        )
    ).get_columns()
    return rest if begins.all() else None


def _by_row(cells: list[RawCells]) -> RawCells:
    """Put the cells of several columns in the order of their rows."""
    return _sorted(
        [
            pl.DataFrame(
                {"row": part.row, "column": part.column, "tag": part.tag, "style": part.style, "text": part.text}
            )
            for part in cells
        ],
        "row",
    )


def _sorted(found: list[pl.DataFrame], by: str) -> RawCells:
    names = {"row": pl.Int32, "column": pl.Int32, "tag": pl.UInt8, "style": pl.Int32, "text": pl.String}
    if not found:
        return RawCells(**{name: pl.Series([], dtype=dtype) for name, dtype in names.items()})
    frame = found[0] if len(found) == 1 else pl.concat(found).sort(by, maintain_order=True)
    return RawCells(**{name: frame[name] for name in names})


def _column(letters: str) -> int:
    """Give the column from 0 of its letters."""
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return column - 1
