"""The rules of a form, judged by pandera on a typed, eager frame; what it finds comes back as rows of that frame.

pandera is given eager frames only (of a LazyFrame it checks the schema and no value), already typed (a wrongly typed
column would give faults without rows), with checks named by our rule codes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from importer.forms.column_definition import write_value
from importer.forms.form import Form, FormColumn
from importer.forms.labels import listed

#: index (UInt32, row of the frame), column, rule, message.
BREACH_SCHEMA = {"index": pl.UInt32, "column": pl.String, "rule": pl.String, "message": pl.String}
_RULE_ORDER = ("required", "range", "choice", "length", "pattern")


class Rules:
    """The rules of one form, ready to judge frames."""

    def __init__(self, form: Form) -> None:
        self._schema = pa.DataFrameSchema({c.name: _pandera_column(c) for c in form.columns})
        self._durations = [c.name for c in form.columns if c.type == "duration"]
        self._messages = pl.DataFrame(
            [(c.name, rule, message) for c in form.columns for rule, message in messages(c).items()],
            schema={"column": pl.String, "rule": pl.String, "message": pl.String},
            orient="row",
        )

    def breaches(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Find every breach of a rule: one row per cell, its first rule of `required range choice length pattern`.

        *frame*: the form's columns in their frame types.
        """
        if not frame.height:
            return pl.DataFrame(schema=BREACH_SCHEMA)
        if self._durations:
            frame = frame.with_columns(pl.col(self._durations).cast(pl.Int64))
        try:
            self._schema.validate(frame, lazy=True)
        except pa.errors.SchemaErrors as found:
            return self._tidy(found.failure_cases)
        return pl.DataFrame(schema=BREACH_SCHEMA)

    def _tidy(self, cases: pl.DataFrame) -> pl.DataFrame:
        rule = pl.col("check").replace({"not_nullable": "required"})
        tidy = cases.select(pl.col("index").cast(pl.UInt32), "column", rule=rule)
        unexpected = tidy.filter(pl.col("index").is_null() | ~pl.col("rule").is_in(_RULE_ORDER))
        if unexpected.height:  # a fault of this room: a frame was not typed as the form says
            raise AssertionError(
                f"pandera judged a frame that is not typed as the form says: {cases.head(3).to_dicts()}"
            )
        order = pl.col("rule").replace_strict({r: i for i, r in enumerate(_RULE_ORDER)}, return_dtype=pl.UInt8)
        return (
            tidy.with_columns(order=order)
            .sort("index", "column", "order")
            .unique(["index", "column"], keep="first", maintain_order=True)
            .join(self._messages, on=["column", "rule"], how="left", maintain_order="left")
            .select(*BREACH_SCHEMA)
        )


def messages(column: FormColumn) -> dict[str, str]:
    """What each rule of a column expects, in words, by rule code."""
    words = {"required": "a value is required here, the cell is blank"}
    least, most = (_spelled(v) for v in (column.minimum, column.maximum))
    if least and most:
        words["range"] = f"a value from {least} to {most} is expected"
    elif least or most:
        words["range"] = f"at least {least} is expected" if least else f"at most {most} is expected"
    if column.choices:
        words["choice"] = f"one of {listed(_spelled(c) for c in column.choices)} is expected"
    if column.max_length:
        words["length"] = f"at most {column.max_length} characters are expected"
    if column.pattern:
        words["pattern"] = f"text that matches {column.pattern} is expected"
    return words


def _spelled(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return "" if value is None else str(write_value(value))  # type: ignore[arg-type]  # a rule's value


def _pandera_column(column: FormColumn) -> pa.Column:
    value_type = column.frame_type
    # pandera 0.35 casts what breaks a check to text, which polars cannot do with a duration: it judges microseconds.
    judged_type = pl.Int64() if column.type == "duration" else value_type
    checks: list[pa.Check] = []
    if column.minimum is not None or column.maximum is not None:
        least, most = (
            None if v is None else pl.lit(v, dtype=value_type).cast(judged_type)
            for v in (column.minimum, column.maximum)
        )
        checks.append(_check("range", lambda cell: _between(cell, least, most)))
    if column.choices:
        choices = pl.Series(list(column.choices), dtype=value_type).cast(judged_type)
        checks.append(_check("choice", lambda cell: cell.is_in(choices.implode())))
    if column.max_length is not None:
        checks.append(_check("length", lambda cell: cell.str.len_chars() <= column.max_length))
    if column.pattern is not None:
        checks.append(_check("pattern", lambda cell: cell.str.contains(column.pattern or "")))
    return pa.Column(judged_type, nullable=not column.required, checks=checks)


def _between(cell: pl.Expr, least: pl.Expr | None, most: pl.Expr | None) -> pl.Expr:
    if least is None or most is None:
        return cell >= least if least is not None else cell <= most
    return (cell >= least) & (cell <= most)


def _check(rule: str, holds: Callable[[pl.Expr], pl.Expr]) -> pa.Check:
    def judge(frame: PolarsData) -> pl.LazyFrame:
        return frame.lazyframe.select(holds(pl.col(frame.key or "*")))

    return pa.Check(judge, name=rule)
