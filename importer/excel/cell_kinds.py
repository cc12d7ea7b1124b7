"""Raw cells get their kinds: by what the XML says, by the number format, by the shared strings; vectorised."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from importer.excel.blocks import blocks_of, columns_over
from importer.excel.cells import Column, Kind
from importer.excel.chunking import Block, blank_column
from importer.excel.raw_cells import INDEX_SHAPE, NUMBER_SHAPE, XML_SPACE, RawCells, RawColumn, RawGrid, Tag
from importer.excel.strings import SharedStrings, decode_column

_ISO = (
    r"^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?"
    r"|T?[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)$"
)
_ISO_KINDS = (Kind.DATE, Kind.DATETIME, Kind.TIME)
_KINDS_BY_TAG = {
    Tag.NUMBER: Kind.NUMBER,
    Tag.SHARED: Kind.TEXT,
    Tag.TEXT: Kind.TEXT,
    Tag.BOOL: Kind.BOOL,
    Tag.ERROR: Kind.ERROR,
    Tag.ISO: Kind.DATETIME,
    Tag.UNCALCULATED: Kind.UNCALCULATED,
    Tag.BROKEN: Kind.BROKEN,
}
_BOOLS = {"1": "true", "0": "false", "true": "true", "false": "false"}


class CellKinds:
    """Gives raw cells of one workbook their kinds."""

    def __init__(self, style_kinds: list[Kind], strings: SharedStrings) -> None:
        # A style beyond the list (or none at all) shows numbers as they are. The first entry stands for "out of range".
        self._kinds = pl.Series([Kind.NUMBER, *style_kinds], dtype=pl.UInt8)
        self._strings = strings

    def blocks(self, raw: RawCells | RawGrid) -> Iterator[Block]:
        """Give kinds and values as blocks of columns; broken cells are kept as `BROKEN` with what stood there."""
        if isinstance(raw, RawCells):
            yield from blocks_of(self._cells(raw))
            return
        columns = self._shared_columns(raw)
        for name, column in raw.columns.items():
            if name not in columns:
                columns[name] = self._column(raw, column)
        if raw.others is not None:
            _lay_over(columns, raw.rows, self._cells(raw.others))
        yield Block(rows=raw.rows, columns=columns, cells=len(raw.rows) * len(columns))

    def _shared_columns(self, grid: RawGrid) -> dict[int, Column]:
        """Look up the columns of sound indexes into the shared strings, all at once."""
        indexes = {str(name): column.text for name, column in grid.columns.items() if column.tag is Tag.SHARED}
        indexes = {name: text for name, text in indexes.items() if grid.columns[int(name)].sound}
        texts = self._strings.lookup(pl.DataFrame(indexes))
        if texts is None:
            return {}
        kind = _repeated(Kind.TEXT, len(grid.rows))
        return {int(name): Column(_blanked(kind, texts[name]), texts[name]) for name in texts.columns}

    def _column(self, grid: RawGrid, column: RawColumn) -> Column:
        """Give a column of one tag its kinds, without looking at each cell where its texts are known to be sound."""
        height = len(grid.rows)
        text = column.text
        if column.tag is Tag.NUMBER and column.sound:
            known = 0 <= column.style < len(self._kinds) - 1
            kinds = self._kinds.new_from_index((column.style + 1) if known else 0, height)
            return Column(_blanked(kinds, text), text)
        if column.tag is Tag.TEXT:
            texts, flags = decode_column(text)
            if flags is None and not (texts == "").any():
                return Column(_blanked(_repeated(Kind.TEXT, height), texts), texts)
        elif column.tag is Tag.BOOL and column.sound:
            texts = pl.Series(["false", "true"]).gather((text == "1").cast(pl.UInt32))
            return Column(_blanked(_repeated(Kind.BOOL, height), texts), texts)
        there = text.is_not_null()
        filled = int(there.sum())
        cells = self._cells(
            RawCells(
                row=grid.rows.filter(there),
                column=_repeated(0, filled, pl.Int32),
                tag=_repeated(column.tag, filled),
                style=_repeated(column.style, filled, pl.Int32),
                text=text.filter(there).cast(pl.String),
            )
        )
        if not len(cells):
            return blank_column(height)
        return columns_over(grid.rows, cells)[0]

    def _cells(self, cells: RawCells) -> pl.DataFrame:
        """Give kinds and values of cells of any tags (row, column, kind, value), blank ones left out."""
        tags = set(cells.tag.unique().to_list())
        kind = pl.Series([_KINDS_BY_TAG[tag] for tag in Tag], dtype=pl.UInt8).gather(cells.tag)
        value = cells.text
        for tag, apply in (
            (Tag.NUMBER, self._numbers),
            (Tag.SHARED, self._shared),
            (Tag.TEXT, self._texts),
            (Tag.BOOL, self._bools),
            (Tag.ERROR, self._errors),
            (Tag.ISO, self._moments),
        ):
            if tag in tags:
                at = (cells.tag == tag).arg_true()
                whole = len(at) == len(value)
                text = value if whole else value.gather(at)
                if tag is not Tag.TEXT:
                    text = _stripped(text)
                kinds, values = apply(text, cells.style if whole else cells.style.gather(at))
                kinds = _set(kinds, text == "", Kind.BLANK)
                kind = kinds if whole else kind.scatter(at, kinds)
                value = values if whole else value.scatter(at, values)
        frame = pl.DataFrame({"row": cells.row, "column": cells.column, "kind": kind, "value": value})
        return frame.filter(pl.col("kind") != Kind.BLANK)

    def _style_kind(self, style: pl.Series) -> pl.Series:
        known = (style >= 0) & (style < len(self._kinds) - 1)
        return self._kinds.gather((style + 1).set(~known, 0))

    def _numbers(self, text: pl.Series, style: pl.Series) -> tuple[pl.Series, pl.Series]:
        return _set(self._style_kind(style), ~text.str.contains(NUMBER_SHAPE), Kind.BROKEN), text

    def _shared(self, text: pl.Series, _: pl.Series) -> tuple[pl.Series, pl.Series]:
        index = text.cast(pl.Int64, strict=False).set(~text.str.contains(INDEX_SHAPE), None)
        texts, flags = self._strings.gather(index)
        kinds = _set(_repeated(Kind.TEXT, len(text)), texts == "", Kind.BLANK)
        if flags is not None:
            kinds = _set(kinds, flags, Kind.UNSTORABLE)
        return _set(kinds, texts.is_null(), Kind.BROKEN), texts.zip_with(texts.is_not_null(), text)

    @staticmethod
    def _texts(text: pl.Series, _: pl.Series) -> tuple[pl.Series, pl.Series]:
        texts, flags = decode_column(text)
        kinds = _repeated(Kind.TEXT, len(text))
        return kinds if flags is None else _set(kinds, flags, Kind.UNSTORABLE), texts

    @staticmethod
    def _bools(text: pl.Series, _: pl.Series) -> tuple[pl.Series, pl.Series]:
        meant = text.str.to_lowercase().replace_strict(_BOOLS, default=None, return_dtype=pl.String)
        kinds = _set(_repeated(Kind.BOOL, len(text)), meant.is_null(), Kind.BROKEN)
        return kinds, meant.zip_with(meant.is_not_null(), text)

    @staticmethod
    def _errors(text: pl.Series, _: pl.Series) -> tuple[pl.Series, pl.Series]:
        return _repeated(Kind.ERROR, len(text)), text

    def _moments(self, text: pl.Series, style: pl.Series) -> tuple[pl.Series, pl.Series]:
        """A moment in words (`t="d"`): its kind by number format, by its own shape when the format shows none."""
        written = text.str.strip_suffix("Z")
        styled = self._style_kind(style)
        dashed = written.str.contains("-", literal=True)
        timed = written.str.contains("T", literal=True)
        shape = _set(_set(_repeated(Kind.TIME, len(text)), dashed, Kind.DATE), dashed & timed, Kind.DATETIME)
        kinds = styled.zip_with(styled.is_in([int(kind) for kind in _ISO_KINDS]), shape)
        kinds = _set(kinds, ~written.str.contains(_ISO), Kind.BROKEN)
        return kinds, written.zip_with(kinds != Kind.BROKEN, text)


def _lay_over(columns: dict[int, Column], rows: pl.Series, cells: pl.DataFrame) -> None:
    """Put cells (row, column, kind, value) that were told apart into their columns, or make columns of them."""
    known = cells["column"].is_in(list(columns))
    for (name,), part in cells.filter(known).partition_by("column", as_dict=True).items():
        at = rows.search_sorted(part["row"], "left")
        column = columns[int(name)]
        columns[int(name)] = Column(column.kind.scatter(at, part["kind"]), column.value.scatter(at, part["value"]))
    columns |= columns_over(rows, cells.filter(~known))


def _repeated(value: int, length: int, dtype: type[pl.DataType] = pl.UInt8) -> pl.Series:
    return pl.repeat(int(value), length, dtype=dtype, eager=True)


def _blanked(kinds: pl.Series, values: pl.Series) -> pl.Series:
    """Let kinds be blank where there is no value."""
    return kinds.set(values.is_null(), int(Kind.BLANK)) if values.null_count() else kinds


def _stripped(text: pl.Series) -> pl.Series:
    """Take XML's white space off the ends, where there is any."""
    return text.str.strip_chars(XML_SPACE) if text.str.contains("[ \t\r\n]").any() else text


def _set(kinds: pl.Series, where: pl.Series, kind: Kind) -> pl.Series:
    where = where.fill_null(False)
    return kinds.set(where, int(kind)) if where.any() else kinds
