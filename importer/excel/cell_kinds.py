"""Raw cells get their kinds: by what the XML says, by the number format, by the shared strings; vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from importer.excel.cells import Kind
from importer.excel.raw_cells import RawCells, Tag
from importer.excel.strings import SharedStrings, decode_column

#: a number as XML Schema writes a double, without its words for what is no number
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?$"
_INDEX = r"^[0-9]{1,10}$"
_ISO = (
    r"^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?"
    r"|T?[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)$"
)
_ISO_KINDS = (Kind.DATE, Kind.DATETIME, Kind.TIME)


@dataclass(frozen=True, kw_only=True)
class KindedCells:
    """Cells with kind and value, blank ones left out; all series are of one length, order as scanned."""

    #: Int32, from 1
    row: pl.Series
    #: Int32, from 0
    column: pl.Series
    #: UInt8, the `Kind`
    kind: pl.Series
    #: String, never null
    value: pl.Series

    def __len__(self) -> int:
        return len(self.row)


class CellKinds:
    """Gives raw cells of one workbook their kinds."""

    def __init__(self, style_kinds: list[Kind], strings: SharedStrings) -> None:
        # A style beyond the list (or none at all) shows numbers as they are. The first entry stands for "out of range".
        self._kinds = pl.Series([Kind.NUMBER, *style_kinds], dtype=pl.UInt8)
        self._strings = strings

    def apply(self, cells: RawCells) -> KindedCells:
        """Give kinds and values; broken cells are kept as `BROKEN` with what stood there."""
        tags = set(cells.tag.unique().to_list())
        kind = self._by_tag(cells.tag)
        value = cells.text
        if Tag.NUMBER in tags:
            kind = self._numbers(cells, kind)
        if Tag.SHARED in tags:
            kind, value = self._shared(cells, kind, value)
        if Tag.TEXT in tags:
            kind, value = self._texts(cells, kind, value)
        if Tag.BOOL in tags:
            kind, value = self._bools(cells, kind, value)
        if Tag.ISO in tags:
            kind, value = self._iso(cells, kind, value)
        kinded = pl.DataFrame({"row": cells.row, "column": cells.column, "kind": kind, "value": value})
        if Tag.SHARED in tags or Tag.TEXT in tags:
            kinded = kinded.filter(pl.col("kind") != Kind.BLANK)
        return KindedCells(**{name: kinded[name] for name in ("row", "column", "kind", "value")})

    @staticmethod
    def _by_tag(tag: pl.Series) -> pl.Series:
        return pl.Series(
            [
                Kind.NUMBER,
                Kind.TEXT,
                Kind.TEXT,
                Kind.BOOL,
                Kind.ERROR,
                Kind.DATETIME,
                Kind.UNCALCULATED,
                Kind.BROKEN,
            ],
            dtype=pl.UInt8,
        ).gather(tag)

    def _style_kind(self, style: pl.Series) -> pl.Series:
        known = (style >= 0) & (style < len(self._kinds) - 1)
        return self._kinds.gather((style + 1).set(~known, 0))

    def _numbers(self, cells: RawCells, kind: pl.Series) -> pl.Series:
        number = cells.tag == Tag.NUMBER
        kind = self._style_kind(cells.style).zip_with(number, kind)
        return _set(kind, number & ~cells.text.str.contains(_NUMBER), Kind.BROKEN)

    def _shared(self, cells: RawCells, kind: pl.Series, value: pl.Series) -> tuple[pl.Series, pl.Series]:
        at = (cells.tag == Tag.SHARED).arg_true()
        written = cells.text.gather(at)
        index = written.str.to_integer(strict=False, dtype=pl.Int64)
        index = index.set(~written.str.contains(_INDEX) | (index >= len(self._strings)), None)
        texts, flags = self._strings.gather(index)
        kind = kind.scatter(at.filter(index.is_null()), Kind.BROKEN)
        kind = kind.scatter(at.filter((texts == "").fill_null(False)), Kind.BLANK)
        if flags is not None:
            kind = kind.scatter(at.filter(flags.fill_null(False)), Kind.UNSTORABLE)
        return kind, value.scatter(at, texts.zip_with(index.is_not_null(), written))

    @staticmethod
    def _texts(cells: RawCells, kind: pl.Series, value: pl.Series) -> tuple[pl.Series, pl.Series]:
        at = (cells.tag == Tag.TEXT).arg_true()
        texts, flags = decode_column(cells.text.gather(at))
        if flags is not None:
            kind = kind.scatter(at.filter(flags), Kind.UNSTORABLE)
        return kind, value.scatter(at, texts)

    @staticmethod
    def _bools(cells: RawCells, kind: pl.Series, value: pl.Series) -> tuple[pl.Series, pl.Series]:
        at = (cells.tag == Tag.BOOL).arg_true()
        written = cells.text.gather(at)
        meant = written.str.to_lowercase().replace_strict(
            {"1": "true", "0": "false", "true": "true", "false": "false"}, default=None, return_dtype=pl.String
        )
        kind = kind.scatter(at.filter(meant.is_null()), Kind.BROKEN)
        return kind, value.scatter(at, meant.zip_with(meant.is_not_null(), written))

    def _iso(self, cells: RawCells, kind: pl.Series, value: pl.Series) -> tuple[pl.Series, pl.Series]:
        """A moment in words (`t="d"`): its kind by number format, by its own shape when the format shows none."""
        at = (cells.tag == Tag.ISO).arg_true()
        written = cells.text.gather(at).str.strip_suffix("Z")
        styled = self._style_kind(cells.style.gather(at))
        shape = pl.select(
            pl.when(written.str.contains("-", literal=True) & written.str.contains("T", literal=True))
            .then(int(Kind.DATETIME))
            .when(written.str.contains("-", literal=True))
            .then(int(Kind.DATE))
            .otherwise(int(Kind.TIME))
            .cast(pl.UInt8)
        ).to_series()
        kinds = styled.zip_with(styled.is_in([int(kind) for kind in _ISO_KINDS]), shape)
        kinds = _set(kinds, ~written.str.contains(_ISO), Kind.BROKEN)
        written = written.zip_with(kinds != Kind.BROKEN, cells.text.gather(at))
        return kind.scatter(at, kinds), value.scatter(at, written)


def _set(kinds: pl.Series, where: pl.Series, kind: Kind) -> pl.Series:
    return kinds.set(where, int(kind)) if where.any() else kinds
