"""What a reading left out, and why: nothing is dropped without being named here."""

from __future__ import annotations

from dataclasses import asdict, dataclass

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
    #: Rows after the header, up to the last row with a cell, that are blank in all declared columns.
    blank_rows: int = 0
    #: Sheets that were not read.
    other_sheets: tuple[str, ...] = ()
    #: Formula cells, whose calculated values were taken.
    formulas: int = 0
    #: Hidden rows and columns, which are data as any other.
    hidden_rows: int = 0
    hidden_columns: int = 0
    #: Merged ranges: the value of one stands in its first cell, the others are blank.
    merged: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence for each thing there is to say."""
        above = ", ".join(map(str, self.rows_above[:10])) + (" ..." if len(self.rows_above) > 10 else "")
        said = (
            (self.unknown_columns, f"columns the form does not know: {', '.join(self.unknown_columns)}"),
            (self.absent_columns, f"optional columns the sheet does not have: {listed(self.absent_columns)}"),
            (self.rows_above, f"rows with text above the header: {above}"),
            (self.blank_rows, f"rows blank in all declared columns: {self.blank_rows:,}"),
            (self.other_sheets, f"sheets not read: {listed(self.other_sheets)}"),
            (self.formulas, f"formulas, taken by their calculated values: {self.formulas:,}"),
            (self.hidden_rows, f"hidden rows, read as any other: {self.hidden_rows:,}"),
            (self.hidden_columns, f"hidden columns, read as any other: {self.hidden_columns:,}"),
            (self.merged, f"merged ranges, of which the first cell holds the value: {listed(self.merged)}"),
        )
        return tuple(sentence for there, sentence in said if there)

    def to_dict(self) -> dict[str, object]:
        """The same as plain data (JSON types), what there is nothing of left out."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}

    def __str__(self) -> str:
        return "\n".join(self.lines) or "nothing was left out"


def named_column(at: int, title: str) -> str:
    """A sheet column for a person: its letter, and its title when it has one."""
    return f'{column_letter(at)} "{title}"' if title else column_letter(at)
