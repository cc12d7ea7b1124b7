"""The rules of a form, judged by pandera on a typed, eager frame; what it finds comes back as rows of that frame.

pandera is given eager frames only (of a LazyFrame it checks the schema and no value), already typed (a wrongly typed
column would give faults without rows), with checks named by our rule codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from importer.forms.column_definition import write_value
from importer.forms.form import Form, FormColumn
from importer.forms.labels import listed

if TYPE_CHECKING:
    from pandera.api.polars.types import PolarsData

#: Whether each cell of a column keeps a rule.
_Holds = Callable[[pl.Expr], pl.Expr]

#: index (UInt32, row of the frame), column, rule, message.
BREACH_SCHEMA = {"index": pl.UInt32, "column": pl.String, "rule": pl.String, "message": pl.String}
_RULE_ORDER = ("required", "range", "choice", "length", "pattern")


class Rules:
    """The rules of one form, ready to judge frames.

    pandera costs about 1.2 ms for each column of each frame, whatever the rows, and 0.1 s to import (0.2 s where
    hypothesis is installed). So one polars expression asks first which columns break a rule at all, by the very
    conditions that pandera judges by, and pandera names the cells of those, in the rows where there are some. Measured
    on frames without a breach: 100,000 x 12 from 25 to 7 ms, 20,000 x 150 from 190 to 3 ms; with 2 % of bad rows,
    50,000 x 12 from 33 to 15 ms.
    """

    def __init__(self, form: Form) -> None:
        self._columns = {c.name: c for c in form.columns}
        self._durations = [c.name for c in form.columns if c.type == "duration"]
        conditions = [(c.name, holds(pl.col(c.name))) for c in form.columns for _, holds in _conditions(c)]
        conditions += [(c.name, pl.col(c.name).is_not_null()) for c in form.columns if c.required]
        self._conditions = conditions
        self._questions = [holds.all().alias(str(at)) for at, (_, holds) in enumerate(conditions)]
        self._messages = pl.DataFrame(
            [(c.name, rule, message) for c in form.columns for rule, message in messages(c).items()],
            schema={"column": pl.String, "rule": pl.String, "message": pl.String},
            orient="row",
        )

    def breaches(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Find every breach of a rule: one row per cell, its first rule of `required range choice length pattern`.

        *frame*: the form's columns in their frame types.
        """
        if not frame.height or not self._questions:
            return pl.DataFrame(schema=BREACH_SCHEMA)
        if self._durations:
            frame = frame.with_columns(pl.col(self._durations).cast(pl.Int64))
        answers = frame.select(self._questions).row(0)
        broken = [condition for condition, holds in zip(self._conditions, answers, strict=True) if not holds]
        if not broken:
            return pl.DataFrame(schema=BREACH_SCHEMA)
        rows = (
            frame.select(pl.any_horizontal(~holds for _, holds in broken).fill_null(value=False)).to_series().arg_true()
        )
        names = list(dict.fromkeys(name for name, _ in broken))
        cases = _failure_cases(frame.select(pl.col(names).gather(rows)), [self._columns[name] for name in names])
        return self._tidy(cases.with_columns(rows.gather(cases["index"]).alias("index")))

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


def _failure_cases(frame: pl.DataFrame, columns: Sequence[FormColumn]) -> pl.DataFrame:
    """What pandera finds wrong in the columns of a frame, of which each breaks a rule."""
    import pandera.polars as pa  # noqa: PLC0415 - most imports never need it, see Rules

    def pandera_column(column: FormColumn) -> pa.Column:
        checks = [pa.Check(_judge(holds), name=rule) for rule, holds in _conditions(column)]
        return pa.Column(_judged_type(column), nullable=not column.required, checks=checks)

    try:
        pa.DataFrameSchema({c.name: pandera_column(c) for c in columns}).validate(frame, lazy=True)
    except pa.errors.SchemaErrors as found:
        cases: pl.DataFrame = found.failure_cases
        return cases
    raise AssertionError(f"polars finds a rule broken in {list(frame.columns)}, pandera does not")


def _judged_type(column: FormColumn) -> pl.DataType:
    # pandera 0.35 casts what breaks a check to text, which polars cannot do with a duration: it judges microseconds.
    return pl.Int64() if column.type == "duration" else column.frame_type


def _conditions(column: FormColumn) -> list[tuple[str, _Holds]]:
    """Give the rules of a column that judge its values, by rule code; `required` is none of them."""
    value_type, judged_type = column.frame_type, _judged_type(column)
    conditions: list[tuple[str, _Holds]] = []
    if column.minimum is not None or column.maximum is not None:
        least, most = (
            None if v is None else pl.lit(v, dtype=value_type).cast(judged_type)
            for v in (column.minimum, column.maximum)
        )
        conditions.append(("range", lambda cell: _between(cell, least, most)))
    if column.choices:
        choices = pl.Series(list(column.choices), dtype=value_type).cast(judged_type)
        conditions.append(("choice", lambda cell: cell.is_in(choices.implode())))
    if column.max_length is not None:
        conditions.append(("length", lambda cell: cell.str.len_chars() <= column.max_length))
    if column.pattern is not None:
        conditions.append(("pattern", lambda cell: cell.str.contains(column.pattern or "")))
    return conditions


def _between(cell: pl.Expr, least: pl.Expr | None, most: pl.Expr | None) -> pl.Expr:
    if least is None or most is None:
        return cell >= least if least is not None else cell <= most
    return (cell >= least) & (cell <= most)


def _judge(holds: _Holds) -> Callable[[PolarsData], pl.LazyFrame]:
    return lambda frame: frame.lazyframe.select(holds(pl.col(frame.key or "*")))
