"""A form says what a valid sheet is: its columns, their types and rules, and the table they go into.

A `Form` is a value: equal forms have equal `to_dict()` and equal `digest`, wherever and however they were written. What
may stand in one, and how a bad one is refused, is in `definition`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

import polars as pl

if TYPE_CHECKING:
    import pandera.polars as pa

ColumnType = Literal["text", "integer", "decimal", "float", "boolean", "date", "datetime", "time", "duration"]
COLUMN_TYPES: tuple[ColumnType, ...] = get_args(ColumnType)

#: What `min`, `max` and `choices` may hold, once read.
RuleValue = str | bool | int | float | Decimal | date | datetime | time | timedelta

#: Digits of PostgreSQL's numeric that a frame can hold.
MAX_PRECISION = 38
#: Decimal places of a decimal column that declares none: room for the 15 digits of any number from 0.0001 on, and for
#: 20 digits before the point, which are all of a bigint.
DEFAULT_SCALE = 18

_FRAME_TYPES: dict[str, pl.DataType] = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "float": pl.Float64(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "datetime": pl.Datetime("us"),
    "time": pl.Time(),
    "duration": pl.Duration("us"),
}


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """Where a column's value is looked up: the sheet holds a natural key, the table gets what stands beside it."""

    #: `table` or `schema.table`.
    table: str
    #: Column that holds what the sheet says, and column whose value goes into the form's table.
    match: str
    take: str
    #: Make a row for what is not there, in the transaction of the rows that name it.
    create: bool = False


@dataclass(frozen=True, kw_only=True)
class FormColumn:
    """One column of a form: how it is found in the sheet, what its cells become, and which rules they keep."""

    #: Name in frames, faults and the target table.
    name: str
    #: Title in the sheet's header.
    title: str
    type: ColumnType
    #: Other titles the column goes by.
    aliases: tuple[str, ...] = ()
    #: A blank cell is a fault, and so is a sheet without the column.
    required: bool = False
    #: No two rows may hold the same value; blanks do not clash.
    unique: bool = False
    #: Smallest and largest value allowed, of the column's type.
    minimum: RuleValue | None = None
    maximum: RuleValue | None = None
    choices: tuple[RuleValue, ...] = ()
    #: Most characters a text may have.
    max_length: int | None = None
    #: A regular expression that must be found in the text (anchor it with ^ and $ to match the whole).
    pattern: str | None = None
    #: Formats of moments written as text, beside ISO 8601 (strftime directives).
    formats: tuple[str, ...] = ()
    #: Digits in all, and behind the decimal point; none means 38 and up to 18.
    precision: int | None = None
    scale: int | None = None
    #: What a blank cell does to the value that an update finds: `keep` leaves it, `clear` takes it away.
    on_blank: str = "keep"
    #: The value is looked up; `type` is that of the value that is taken, the sheet's cells are text.
    lookup: Lookup | None = None

    @property
    def as_read(self) -> FormColumn:
        """The column as its cells are read: text, where the value is looked up."""
        return self if self.lookup is None else dataclasses.replace(self, type="text", lookup=None)

    @property
    def frame_type(self) -> pl.DataType:
        """The polars type of the column in a checked frame; text where the value is looked up."""
        if self.lookup is not None:
            return _FRAME_TYPES["text"]
        if self.type == "decimal":
            return pl.Decimal(MAX_PRECISION, self.frame_scale)
        return _FRAME_TYPES[self.type]

    @property
    def frame_scale(self) -> int:
        """Decimal places of the column in a checked frame (decimal columns)."""
        return DEFAULT_SCALE if self.scale is None else self.scale

    @property
    def labels(self) -> tuple[str, ...]:
        """Every title the column answers to: title, name, aliases."""
        return (self.title, self.name, *self.aliases)


@dataclass(frozen=True, kw_only=True)
class Locale:
    """How numbers, truth and moments are written in the text cells of a form's sheet."""

    #: Decimal mark in text.
    decimal: str = "."
    #: Thousands mark in text; none means none is read.
    thousands: str | None = None
    #: Words read as true and as false, whatever their case; they take the place of `true` and `false`.
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    #: Formats of moments for all columns, after a column's own.
    formats: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a valid sheet is; make one with `from_dict`, `from_file` or `from_model`.

    ```python
    form = Form.from_dict({
        "name": "site_report", "table": "site_reports",
        "columns": [{"name": "site_code", "title": "Site code", "type": "text", "required": True}],
    })
    ```
    """

    name: str
    #: Target table, `table` or `schema.table`.
    table: str
    columns: tuple[FormColumn, ...]
    description: str = ""
    owners: tuple[str, ...] = ()
    #: Sheet by name or by position (from 0, over all sheets); none means the first visible worksheet.
    sheet: str | int | None = None
    #: Sheet row of the header (the upper one when there are two); none means it is found by matching titles.
    header_row: int | None = None
    #: 2 joins the titles of two rows with " / ", a group heading merged over several columns with each of them.
    header_rows: int = 1
    #: Columns that together are unique over rows and across imports; each of them is required.
    key: tuple[str, ...] = ()
    #: What a row does whose key is there from an earlier import: `fault`, `skip`, or `update` what differs.
    on_clash: str = "fault"
    #: `keep` the good rows, `refuse_all`, or `stop_at`: refuse all once so many rows failed.
    on_fault: str = "keep"
    #: With `stop_at`: a number of failed rows (`50`), or a part of all rows (`5%`), at which the job's rows go.
    stop_at: int | str | None = None
    unknown_columns: str = "ignore"
    locale: Locale = Locale()
    #: `first` leaves merged cells as the file has them, the value in the first one; `fill` gives it to all of them.
    merged: str = "first"
    #: An Excel table by its name: only its cells are read.
    table_range: str | None = None
    #: Encoding of a csv or tsv, as Python names it; none means the file's own mark, or UTF-8.
    encoding: str | None = None
    #: What stands between the cells of a csv; none means what is plain to see.
    delimiter: str | None = None
    #: Glob of the inbox files that are this form's.
    inbox: str | None = None
    #: How old the newest import may be, as written (`26h`).
    fresh_within: str | None = None

    @classmethod
    def from_dict(cls, definition: Mapping[str, object]) -> Form:
        """Read a form from plain data.

        Raises: FormError with every problem at once.
        """
        from importer.forms.definition import read_form  # noqa: PLC0415 - definition builds forms and so imports this module

        return read_form(definition)

    @classmethod
    def from_file(cls, path: str | Path) -> Form:
        """Read a form from a YAML or JSON file.

        Raises: FormError when the file cannot be read, is no YAML or JSON, or is no valid form.
        """
        from importer.forms.form_file import read_form_file  # noqa: PLC0415 - as above

        return read_form_file(Path(path))

    @classmethod
    def from_model(
        cls,
        model: type[pa.DataFrameModel] | pa.DataFrameSchema,
        *,
        table: str,
        name: str | None = None,
        **options: object,
    ) -> Form:
        """Read a form from a pandera (polars) model: types, nullable, unique, and the checks a form has words for.

        `options` are other keys of a form (`sheet`, `key`, ...).
        Raises: FormError, also when the model holds a check that a form cannot say as data.
        """
        from importer.forms.pandera_model import read_model  # noqa: PLC0415 - as above

        return read_model(model, table=table, name=name, options=options)

    def to_dict(self) -> dict[str, object]:
        """The form as plain data (JSON types) in one canonical shape: `Form.from_dict(form.to_dict()) == form`."""
        from importer.forms.definition import write_form  # noqa: PLC0415 - as above

        return write_form(self)

    def template(self, path: str | Path, *, version: int | None = None) -> Path:
        """Write an empty workbook for senders to fill in: titles, notes with the rules, formats, dropdowns, guidance.

        `version` is put into its hidden stamp, when the database gave the form one; `importer.template` looks it up,
        and fills the dropdowns of lookup columns.
        """
        from importer.forms.template import template  # noqa: PLC0415 - as above
        from importer.sender import write_template  # noqa: PLC0415 - as above

        write_template(path, template(self, version=version))
        return Path(path)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: the same for every way of writing the same form."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def column(self, name: str) -> FormColumn:
        """The column of this name; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def frame_schema(self) -> dict[str, pl.DataType]:
        """Columns and types of an accepted frame: `source_row`, then the form's columns in their order."""
        return {"source_row": cast(pl.DataType, pl.Int64()), **{c.name: c.frame_type for c in self.columns}}
