"""Delimited text (csv, tsv) as a workbook of one sheet: every cell is text, every record a row.

Encoding and delimiter are declared, or they are plain to see; what is not plain is refused, never guessed:

- encoding: a byte-order mark, else UTF-8 when all of the file is UTF-8. Any other encoding must be declared, because no
  byte of windows-1252 says that it is not windows-1250.
- delimiter: a tab in a .tsv; else the one of `,` `;` tab `|` that cuts the first records into the same number of cells,
  if there is one only. A file in which none of them stands has one column.

The sheet is named after the file. A blank line is a blank row, and a record over several lines (a quoted line end) is
one row, so a row has the number that Excel gives it. Quotes are those of RFC 4180; a quote that is never closed, or
that is followed by more text, is a damaged file. Python's `csv` reads (in C): polars skips lines and knows no record
numbers.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import BinaryIO

import polars as pl

from importer.errors import WorkbookError
from importer.excel.book import Workbook
from importer.excel.cells import Chunk, Column, Kind, Sheet, SheetNotes
from importer.excel.chunking import Block, chunks_of
from importer.excel.limits import Limits, too_large

#: the delimiters that are looked for, with their names
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_RECORDS = 50
_PIECE_BYTES = 1024 * 1024
#: cells that are laid out at once
_BLOCK_CELLS = 250_000
_UNSTORABLE = "[\x00]"


def is_delimited(path: Path) -> bool:
    """Whether the name says that a file is delimited text."""
    return path.suffix.lower() in {".csv", ".tsv"}


class DelimitedWorkbook(Workbook):
    """An open csv or tsv."""

    def __init__(
        self, file: BinaryIO, path: Path, limits: Limits, *, encoding: str | None = None, delimiter: str | None = None
    ) -> None:
        if not file.read(1):
            raise WorkbookError("empty_file", f"{path.name} is empty (0 bytes); get the file again")
        super().__init__(
            path,
            format=path.suffix.lower().removeprefix("."),
            sheets=(Sheet(name=path.stem, kind="worksheet", visible=True, position=0),),
        )
        self._file = file
        self._limits = limits
        self._encoding = encoding if encoding is not None else _encoding(file, path, limits)
        self._said = [] if encoding is not None else [f"the encoding was seen to be {self._encoding}"]
        self._delimiter = delimiter or self._seen_delimiter()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _records(self) -> Iterator[list[str]]:
        """Read the records from the beginning; errors are in words."""
        csv.field_size_limit(self._limits.cell_characters)
        self._file.seek(0)
        text = io.TextIOWrapper(self._file, encoding=self._encoding, newline="", errors="strict")
        reader = csv.reader(text, delimiter=self._delimiter, strict=True)
        try:
            yield from reader
        except csv.Error as error:
            if "field larger" in str(error):
                raise too_large("the text of a cell has too many characters", self._limits.cell_characters) from error
            raise WorkbookError(
                "corrupt", f"{self.name} is no sound csv: {error} (line {reader.line_num}); save it again"
            ) from error
        except UnicodeError as error:
            raise WorkbookError(
                "encoding",
                f"{self.name} is not written in {self._encoding} (line {reader.line_num}); declare its encoding "
                "in the form, for example encoding: windows-1252",
            ) from error
        finally:
            text.detach()

    def _seen_delimiter(self) -> str:
        if self.format == "tsv":
            return "\t"
        fitting = [mark for mark in DELIMITERS if self._fits(mark)]
        if len(fitting) > 1:
            there = " and ".join(f"{DELIMITERS[mark]} ({mark!r})" for mark in fitting)
            raise WorkbookError(
                "encoding",
                f'{self.name} can be cut into cells by {there}; declare which in the form, for example delimiter: ";"',
            )
        mark = fitting[0] if fitting else ","
        self._said.append(f"the delimiter was seen to be the {DELIMITERS[mark]}")
        return mark

    def _fits(self, mark: str) -> bool:
        """Whether a delimiter cuts the first records into the same number of cells, more than one."""
        self._delimiter = mark
        try:
            widths = {len(record) for record in islice(self._records(), _SAMPLE_RECORDS) if record}
        except WorkbookError as error:
            if error.reason != "corrupt":
                raise
            return False
        return len(widths) == 1 and widths != {1}

    def _read(self, sheet: Sheet, rows: int) -> Iterator[Chunk]:
        yield from chunks_of(self._blocks(), rows=rows, date_1904=False)
        self._notes[sheet.position] = SheetNotes(
            formulas=0, hidden_rows=0, hidden_columns=0, merged=(), remarks=tuple(self._said)
        )

    def _blocks(self) -> Iterator[Block]:
        waiting: list[list[str]] = []
        cells = seen = 0
        row = 1
        for record in self._records():
            if len(record) > self._limits.columns:
                raise too_large(f"row {row + len(waiting)} has {len(record):,} columns", self._limits.columns)
            waiting.append(record)
            cells += len(record)
            if cells >= _BLOCK_CELLS:
                seen += cells
                if seen > self._limits.cells:
                    raise too_large("the sheet has too many cells", self._limits.cells)
                yield _block(waiting, row)
                row += len(waiting)
                waiting, cells = [], 0
            if row + len(waiting) > self._limits.rows + 1:
                raise too_large("the sheet has too many rows", self._limits.rows)
        yield _block(waiting, row)


def _block(records: Sequence[Sequence[str]], first: int) -> Block:
    columns = {at: _column(texts) for at, texts in enumerate(zip_longest(*records))}
    rows = pl.int_range(first, first + len(records), dtype=pl.Int32, eager=True)
    return Block(rows=rows, columns=columns, cells=sum(map(len, records)))


def _column(texts: Sequence[str | None]) -> Column:
    value = pl.Series(texts, dtype=pl.String)
    value = pl.select(pl.when(value != "").then(value)).to_series()
    kind = pl.select(
        pl.when(value.is_null()).then(int(Kind.BLANK)).otherwise(int(Kind.TEXT)).cast(pl.UInt8)
    ).to_series()
    bad = value.str.contains(_UNSTORABLE).fill_null(False)
    if bad.any():
        kind = kind.set(bad, int(Kind.UNSTORABLE))
        value = value.str.replace_all("\x00", "_x0000_", literal=True)
    return Column(kind, value)


def _encoding(file: BinaryIO, path: Path, limits: Limits) -> str:
    """See which encoding a file has: by its mark, or because all of it is UTF-8."""
    file.seek(0)
    head = file.read(4)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    decoder = codecs.getincrementaldecoder("utf-8")()
    file.seek(0)
    read = 0
    try:
        while piece := file.read(_PIECE_BYTES):
            read += len(piece)
            if read > limits.part_bytes:
                raise too_large("the file has too many bytes", limits.part_bytes)
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise WorkbookError(
            "encoding",
            f"{path.name} is not UTF-8, and which other encoding it has cannot be seen; declare it in the form, for "
            "example encoding: windows-1252",
        ) from error
    return "utf-8"
