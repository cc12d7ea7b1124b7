"""What a reading left out, and why: nothing is dropped without being named here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from importer.excel.cells import Chunk, Kind, SheetNotes
from importer.excel.ranges import Area
from importer.forms.header import Header
from importer.forms.labels import column_letter, listed


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """What was in the workbook and was not read as a row of the form, and what was read though hidden."""

    #: Titles of columns the form does not know, with their letters: `D "comment"`; without a title the letter alone.
    unknown_columns: tuple[str, ...] = ()
    #: Optional columns of the form that the sheet does not have.
    absent_columns: tuple[str, ...] = ()
    #: Rows with cells above the header (titles, notes), by sheet row.
    rows_above: tuple[int, ...] = ()
    #: Rows with cells below the Excel table to which the form is confined, its totals included.
    rows_below: int = 0
    #: Columns with cells beside that table, by letter.
    columns_beside: tuple[str, ...] = ()
    #: Rows after the header, up to the last row with a cell, that are blank in all declared columns.
    blank_rows: int = 0
    #: Sheets that were not read.
    other_sheets: tuple[str, ...] = ()
    #: Formula cells, whose calculated values were taken.
    formulas: int = 0
    #: Hidden rows and columns, which are data as any other.
    hidden_rows: int = 0
    hidden_columns: int = 0
    #: Merged ranges: the value of one stands in its first cell, the others are blank unless the form fills them.
    merged: tuple[str, ...] = ()
    merged_filled: bool = False
    #: What changed in the form since the template was written that the sender filled in, in sentences.
    older_template: tuple[str, ...] = ()
    #: What the format of the file cannot tell, and what was seen rather than declared, in sentences.
    remarks: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence for each thing there is to say."""
        above = ", ".join(map(str, self.rows_above[:10])) + (" ..." if len(self.rows_above) > 10 else "")
        filled = "each cell with the value of the first" if self.merged_filled else "the value only in the first cell"
        said = (
            (self.unknown_columns, f"columns the form does not know: {', '.join(self.unknown_columns)}"),
            (self.absent_columns, f"optional columns the sheet does not have: {listed(self.absent_columns)}"),
            (self.rows_above, f"rows with text above the header: {above}"),
            (self.rows_below, f"rows with text below the table: {self.rows_below:,}"),
            (self.columns_beside, f"columns beside the table: {', '.join(self.columns_beside)}"),
            (self.blank_rows, f"rows blank in all declared columns: {self.blank_rows:,}"),
            (self.other_sheets, f"sheets not read: {listed(self.other_sheets)}"),
            (self.formulas, f"formulas, taken by their calculated values: {self.formulas:,}"),
            (self.hidden_rows, f"hidden rows, read as any other: {self.hidden_rows:,}"),
            (self.hidden_columns, f"hidden columns, read as any other: {self.hidden_columns:,}"),
            (self.merged, f"merged ranges, {filled}: {listed(self.merged)}"),
            (self.older_template, f"filled in from an older template of the form: {'; '.join(self.older_template)}"),
            *((remark, remark) for remark in self.remarks),
        )
        return tuple(sentence for there, sentence in said if there)

    def to_dict(self) -> dict[str, object]:
        """The same as plain data (JSON types), what there is nothing of left out."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}

    def __str__(self) -> str:
        return "\n".join(self.lines) or "nothing was left out"


class LeftOutCount:
    """Counts what is left out while the chunks of a sheet go by."""

    def __init__(self, header: Header, table: Area | None, head: Sequence[Chunk]) -> None:
        self._header = header
        self._table = table
        self._above = tuple(row for chunk in head for row in chunk.rows.filter(chunk.rows < header.first_row).to_list())
        self._last_row = header.row
        self._below = 0
        self._seen_columns: set[int] = set()

    def count(self, chunk: Chunk, data: Chunk | None) -> None:
        """Take notice of a chunk, and of the part of it that is read as data."""
        if self._table is not None:
            self._below += int((chunk.rows > self._table.first_row).sum()) - (0 if data is None else len(data.rows))
        if data is not None:
            self._last_row = data.rows.item(-1)
            new = data.columns.keys() - self._seen_columns
            self._seen_columns.update(at for at in new if (data.columns[at].kind != Kind.BLANK).any())

    def left_out(
        self,
        *,
        rows_seen: int,
        other_sheets: tuple[str, ...],
        notes: SheetNotes | None,
        filled: bool,
        older_template: tuple[str, ...] = (),
    ) -> LeftOut:
        """Say what was left out so far; *rows_seen*: data rows."""
        header, table = self._header, self._table
        untitled = self._seen_columns - {*header.columns.values(), *header.unknown, *header.own}
        beside = {at for at in untitled if table and not table.first_column <= at <= table.last_column}
        unknown = {**dict.fromkeys(untitled - beside, ""), **header.unknown}
        merged = notes.merged if notes else ()
        return LeftOut(
            unknown_columns=tuple(named_column(at, title) for at, title in sorted(unknown.items())),
            absent_columns=header.absent,
            rows_above=self._above,
            rows_below=self._below,
            columns_beside=tuple(column_letter(at) for at in sorted(beside)),
            blank_rows=self._last_row - header.row - rows_seen,
            other_sheets=other_sheets,
            formulas=notes.formulas if notes else 0,
            hidden_rows=notes.hidden_rows if notes else 0,
            hidden_columns=max(0, notes.hidden_columns - len(header.own)) if notes else 0,
            merged=merged,
            merged_filled=filled and bool(merged),
            older_template=older_template,
            remarks=notes.remarks if notes else (),
        )


def named_column(at: int, title: str) -> str:
    """A sheet column for a person: its letter, and its title when it has one."""
    return f'{column_letter(at)} "{title}"' if title else column_letter(at)
