"""A form from a pandera (polars) model: what the model says and a form has words for, and a refusal of the rest.

A form crosses to workers as plain data, so a check that is code (a function of one's own) cannot be part of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandera.polars as pa
import polars as pl
from pandera.api.base.checks import BaseCheck

from importer.errors import FormError
from importer.forms.column_definition import write_value
from importer.forms.definition import read_form
from importer.forms.form import Form, RuleValue

_TYPES: dict[type[pl.DataType], str] = {
    pl.String: "text",
    pl.Boolean: "boolean",
    pl.Date: "date",
    pl.Datetime: "datetime",
    pl.Time: "time",
    pl.Duration: "duration",
    pl.Decimal: "decimal",
    pl.Float32: "float",
    pl.Float64: "float",
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32), "integer"),
}
#: Smallest and largest value of the integer types that are narrower than a form's integer.
_BOUNDS: dict[type[pl.DataType], tuple[int, int]] = {
    pl.Int8: (-(2**7), 2**7 - 1),
    pl.Int16: (-(2**15), 2**15 - 1),
    pl.Int32: (-(2**31), 2**31 - 1),
    pl.UInt8: (0, 2**8 - 1),
    pl.UInt16: (0, 2**16 - 1),
    pl.UInt32: (0, 2**32 - 1),
}


def read_model(
    model: type[pa.DataFrameModel] | pa.DataFrameSchema, *, table: str, name: str | None, options: Mapping[str, object]
) -> Form:
    """A form with the columns, types and rules of a pandera model.

    `nullable=False` is `required`; the title of a field is kept; `unique` of the model is the `key` unless `options`
    names one. Raises: FormError.
    """
    schema = model if isinstance(model, pa.DataFrameSchema) else model.to_schema()
    problems: list[str] = []
    columns = [_column(str(title), column, problems) for title, column in schema.columns.items()]
    problems.extend(f"the check {_named(check)} of the whole frame cannot be said in a form" for check in schema.checks)
    definition: dict[str, object] = {
        "name": name or schema.name or table.rsplit(".", 1)[-1],
        "table": table,
        "columns": columns,
    }
    if schema.unique:
        definition["key"] = list(schema.unique)
    if schema.strict is True:
        definition["unknown_columns"] = "refuse"
    if schema.description:
        definition["description"] = schema.description
    definition |= options
    try:
        form = read_form(definition)
    except FormError as error:
        raise FormError(error.name, [*problems, *error.problems]) from error
    if problems:
        raise FormError(form.name, problems)
    return form


def _column(name: str, column: pa.Column, problems: list[str]) -> dict[str, object]:
    plain: dict[str, object] = {"name": name, "title": column.title or name, "required": not column.nullable}
    value_type = getattr(column.dtype, "type", None)
    base = value_type if isinstance(value_type, type) else type(value_type)
    if base not in _TYPES:
        problems.append(f"column {name}: {value_type or 'a column without a type'} is no type that a form has")
    plain["type"] = _TYPES.get(base, "text")
    if isinstance(value_type, pl.Decimal):
        plain |= {"precision": value_type.precision or 38, "scale": value_type.scale}
    if isinstance(value_type, pl.Datetime) and value_type.time_zone:
        problems.append(
            f"column {name}: a workbook knows no time zones, so the column cannot have {value_type.time_zone}"
        )
    if base in _BOUNDS:
        plain["min"], plain["max"] = _BOUNDS[base]
    if column.unique:
        plain["unique"] = True
    for check in column.checks:
        _rule(name, check, plain, problems)
    return plain


def _rule(name: str, check: BaseCheck, plain: dict[str, object], problems: list[str]) -> None:
    """Add one check of pandera's own to a column, or a problem when a form has no word for it."""
    said: Mapping[str, object] = check.statistics or {}
    whole = plain["type"] == "integer"
    match check.name, dict(said):
        case "greater_than_or_equal_to", {"min_value": least}:
            _narrow(plain, "min", least)
        case "less_than_or_equal_to", {"max_value": most}:
            _narrow(plain, "max", most)
        case "greater_than", {"min_value": int(least)} if whole:
            _narrow(plain, "min", least + 1)
        case "less_than", {"max_value": int(most)} if whole:
            _narrow(plain, "max", most - 1)
        case "in_range", {"min_value": least, "max_value": most, **more} if _inclusive(more):
            _narrow(plain, "min", least)
            _narrow(plain, "max", most)
        case "isin", {"allowed_values": choices} if isinstance(choices, list | tuple | set | frozenset):
            plain["choices"] = sorted(choices) if isinstance(choices, set | frozenset) else list(choices)
        case "str_matches", {"pattern": pattern}:
            plain["pattern"] = _from_start(pattern)
        case "str_contains", {"pattern": pattern}:
            plain["pattern"] = getattr(pattern, "pattern", pattern)
        case "str_length", {"max_value": int(most)} if not said.get("min_value") and not said.get("exact_value"):
            plain["max_length"] = most
        case _:
            problems.append(f"column {name}: the check {_named(check)} cannot be said in a form")


def _inclusive(more: Mapping[str, object]) -> bool:
    return more.get("include_min", True) is True and more.get("include_max", True) is True


def _narrow(plain: dict[str, object], key: str, value: object) -> None:
    """The tighter of two bounds (that of a narrow integer type and that of a check)."""
    before = plain.get(key)
    if before is not None and isinstance(value, int) and isinstance(before, int):
        value = max(before, value) if key == "min" else min(before, value)
    plain[key] = write_value(value) if isinstance(value, RuleValue) else value


def _from_start(pattern: object) -> str:
    """Pandera's `str_matches` looks at the start of the text, a form's `pattern` anywhere in it."""
    text = str(getattr(pattern, "pattern", pattern))
    return text if text.startswith("^") else f"^(?:{text})"


def _named(check: BaseCheck) -> str:
    return str(check.name or check.error or "without a name")
