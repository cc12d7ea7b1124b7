"""One column of a form as plain data, read with every problem said and written back in one canonical shape."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation

import polars as pl

from importer.forms.form import COLUMN_TYPES, DEFAULT_SCALE, MAX_PRECISION, ColumnType, FormColumn, Lookup, RuleValue
from importer.forms.labels import nearest
from importer.forms.moment_text import LONGEST, duration_from_text, duration_text, format_problem
from importer.forms.numbers import decimal_places, shortest
from importer.forms.problems import Problems

COLUMN_KEYS = (
    "name", "title", "type", "aliases", "required", "unique", "min", "max", "choices", "max_length", "pattern",
    "formats", "precision", "scale", "on_blank", "lookup",
)  # fmt: skip

#: Words of other tools for our types: a hint, never a synonym.
_OTHER_WORDS: dict[str, ColumnType] = {
    "str": "text", "string": "text", "varchar": "text", "char": "text",
    "int": "integer", "bigint": "integer", "int64": "integer", "whole": "integer",
    "number": "decimal", "numeric": "decimal", "money": "decimal", "currency": "decimal",
    "double": "float", "real": "float", "float64": "float",
    "bool": "boolean", "logical": "boolean", "timestamp": "datetime", "interval": "duration", "timedelta": "duration",
}  # fmt: skip

#: Which keys make sense for which types; all others make sense for all.
_ONLY_FOR: dict[str, tuple[ColumnType, ...]] = {
    "min": ("integer", "decimal", "float", "date", "datetime", "time", "duration"),
    "max": ("integer", "decimal", "float", "date", "datetime", "time", "duration"),
    "choices": ("text", "integer", "decimal", "float", "date", "datetime", "time", "duration"),
    "max_length": ("text",),
    "pattern": ("text",),
    "formats": ("date", "datetime", "time"),
    "precision": ("decimal",),
    "scale": ("decimal",),
}


def read_column(raw: object, position: int, problems: Problems) -> FormColumn | None:
    """One column; none when it has no usable name or type (the problems say why)."""
    if not isinstance(raw, Mapping):
        problems.add(f"column {position} must be a mapping of keys, not {raw!r}")
        return None
    where = f"column {raw.get('name', position)}: "
    problems.unknown_keys(raw, COLUMN_KEYS, where)
    on_blank = problems.word(raw, "on_blank", ("keep", "clear"), where)
    name = problems.text(raw, "name", where, needed=True)
    kind = _type(raw, where, problems)
    aliases = problems.texts(raw, "aliases", where)
    required, unique = (problems.flag(raw, key, where) for key in ("required", "unique"))
    title = problems.text(raw, "title", where) or name
    if name is None or title is None or kind is None:
        return None
    for key, types in _ONLY_FOR.items():
        if key in raw and kind not in types:
            problems.add(f"{where}{key} does not go with type {kind} (only with {', '.join(types)})")
    return FormColumn(
        name=name,
        title=title,
        type=kind,
        aliases=aliases,
        required=required,
        unique=unique,
        on_blank=on_blank,
        lookup=_lookup(raw, where, problems),
        **_limits(raw, kind, where, problems),  # type: ignore[arg-type]  # each was read by its kind there
    )


#: Keys that judge a cell: of a looked-up one the table is the judge.
_NOT_WITH_LOOKUP = ("min", "max", "choices", "max_length", "pattern", "formats")


def _lookup(raw: Mapping[str, object], where: str, problems: Problems) -> Lookup | None:
    lookup = raw.get("lookup")
    if lookup is None:
        return None
    if not isinstance(lookup, Mapping):
        problems.add(f"{where}lookup must be a mapping of table, match and take, not {lookup!r}")
        return None
    inside = f"{where}lookup: "
    problems.unknown_keys(lookup, ("table", "match", "take", "create"), inside)
    table, match, take = (problems.text(lookup, key, inside, needed=True) for key in ("table", "match", "take"))
    create = problems.flag(lookup, "create", inside)
    for key in _NOT_WITH_LOOKUP:
        if key in raw:
            problems.add(f"{where}{key} does not go with lookup: what is in the table may be chosen")
    if table is None or match is None or take is None:
        return None
    if table.count(".") > 1 or not all(table.split(".")):
        problems.add(f'{inside}table must be "table" or "schema.table", not {table!r}')
    for name in (*table.split("."), match, take):
        problems.identifier(name, inside)
    return Lookup(table=table, match=match, take=take, create=create)


def _write_lookup(lookup: Lookup | None) -> dict[str, object] | None:
    if lookup is None:
        return None
    plain: dict[str, object] = {"table": lookup.table, "match": lookup.match, "take": lookup.take}
    return plain | ({"create": True} if lookup.create else {})


def write_column(column: FormColumn) -> dict[str, object]:
    """The canonical plain data of a column: what is as by default is left out."""
    plain: dict[str, object] = {"name": column.name, "type": column.type}
    optional: dict[str, object] = {
        "title": column.title if column.title != column.name else None,
        "aliases": list(column.aliases),
        "required": column.required,
        "unique": column.unique,
        "min": write_value(column.minimum),
        "max": write_value(column.maximum),
        "choices": [write_value(choice) for choice in column.choices],
        "max_length": column.max_length,
        "pattern": column.pattern,
        "formats": list(column.formats),
        "precision": column.precision,
        "scale": column.scale,
        "lookup": _write_lookup(column.lookup),
        "on_blank": column.on_blank if column.on_blank != "keep" else None,
    }
    return plain | {k: v for k, v in optional.items() if v is not None and v is not False and v != []}


def write_value(value: RuleValue | None) -> object:
    """A rule's value as JSON data: decimals, moments and durations as text."""
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f") if decimal_places(value) else int(value)
    return value


def _type(raw: Mapping[str, object], where: str, problems: Problems) -> ColumnType | None:
    value = raw.get("type")
    if value in COLUMN_TYPES:
        return value
    if value is None:
        problems.add(f"{where}type is missing: one of {', '.join(COLUMN_TYPES)}")
        return None
    word = str(value)
    other = _OTHER_WORDS.get(word.casefold())
    hint = f'; did you mean "{other}"?' if other else nearest(word, COLUMN_TYPES)
    problems.add(f'{where}"{word}" is no type: use one of {", ".join(COLUMN_TYPES)}{hint}')
    return None


def _limits(raw: Mapping[str, object], kind: ColumnType, where: str, problems: Problems) -> dict[str, object]:
    least, most = (_rule_value(raw.get(key), kind, f"{where}{key}", problems) for key in ("min", "max"))
    if least is not None and most is not None and least > most:  # type: ignore[operator]  # both were read as one type
        problems.add(f"{where}min {write_value(least)} is above max {write_value(most)}")
    precision = problems.whole(raw, "precision", where, least=1, most=MAX_PRECISION)
    scale = problems.whole(raw, "scale", where, least=0, most=MAX_PRECISION)
    if scale is not None and "precision" not in raw:
        problems.add(f"{where}scale needs precision beside it")
    if precision is not None and scale is not None and scale > precision:
        problems.add(f"{where}scale {scale} is more than precision {precision}")
    if precision is not None and "scale" not in raw:
        scale = 0
    formats = problems.texts(raw, "formats", where)
    for written in formats:
        problem = format_problem(written, kind)
        if problem:
            problems.add(f"{where}format {written!r} {problem}")
    choices = _choices(raw, kind, where, problems)
    places = DEFAULT_SCALE if scale is None else scale
    for key, value in (("min", least), ("max", most), *(("choices", choice) for choice in choices)):
        if isinstance(value, Decimal) and decimal_places(value) > places:
            problems.add(f"{where}{key} {write_value(value)} has more decimal places than the column, {places}")
    return {
        "minimum": least,
        "maximum": most,
        "choices": choices,
        "max_length": problems.whole(raw, "max_length", where, least=1, most=1_000_000_000),
        "pattern": _pattern(raw, where, problems),
        "formats": formats,
        "precision": precision,
        "scale": scale,
    }


def _choices(raw: Mapping[str, object], kind: ColumnType, where: str, problems: Problems) -> tuple[RuleValue, ...]:
    values = raw.get("choices")
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not values:
        problems.add(f"{where}choices must be a list of at least one value, not {values!r}")
        return ()
    if kind == "text":
        return tuple(text.strip() for text in problems.texts(raw, "choices", where))
    read = [_rule_value(value, kind, f"{where}choices", problems) for value in values]
    return tuple(dict.fromkeys(value for value in read if value is not None))


def _pattern(raw: Mapping[str, object], where: str, problems: Problems) -> str | None:
    pattern = problems.text(raw, "pattern", where)
    if pattern is None:
        return None
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        told = next((line for line in reversed(str(error).splitlines()) if line.startswith("error:")), str(error))
        problems.add(f"{where}pattern {pattern!r} cannot be used: {told.removeprefix('error: ')}")
        return None
    return pattern


def _rule_value(raw: object, kind: ColumnType, where: str, problems: Problems) -> RuleValue | None:
    """A value of the column's type from YAML, JSON or Python."""
    if raw is None or kind in ("text", "boolean"):
        return None
    value: RuleValue | None = None
    try:
        value = _READ[kind](raw)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        value = None
    if value is None:
        hint = ' (write it in quotes: "08:30:00")' if kind in ("time", "duration") and isinstance(raw, int) else ""
        problems.add(f"{where} must be {_WANTED[kind]}, not {raw!r}{hint}")
    return value


def _integer(raw: object) -> int | None:
    if (
        isinstance(raw, bool)
        or (isinstance(raw, float) and not raw.is_integer())
        or not isinstance(raw, int | float | str | Decimal)
    ):
        return None
    value = int(raw)
    return value if value == Decimal(str(raw)) and -(2**63) <= value < 2**63 else None


def _decimal(raw: object) -> Decimal | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str | Decimal):
        return None
    value = Decimal(str(raw))
    return shortest(value) if value.is_finite() else None


def _float(raw: object) -> float | None:
    value = _decimal(raw)
    return None if value is None else float(value)


def _date(raw: object) -> date | None:
    if isinstance(raw, datetime):
        return None
    return raw if isinstance(raw, date) else date.fromisoformat(raw) if isinstance(raw, str) else None


def _datetime(raw: object) -> datetime | None:
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return datetime.combine(raw, time())
    moment = raw if isinstance(raw, datetime) else datetime.fromisoformat(raw) if isinstance(raw, str) else None
    return None if moment is None or moment.tzinfo is not None else moment


def _time(raw: object) -> time | None:
    moment = raw if isinstance(raw, time) else time.fromisoformat(raw) if isinstance(raw, str) else None
    return None if moment is None or moment.tzinfo is not None else moment


def _duration(raw: object) -> timedelta | None:
    if isinstance(raw, timedelta):
        return raw if abs(raw) <= LONGEST else None
    return duration_from_text(raw) if isinstance(raw, str) else None


_READ = {
    "integer": _integer,
    "decimal": _decimal,
    "float": _float,
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "duration": _duration,
}
_WANTED = {
    "integer": "a whole number",
    "decimal": "a number",
    "float": "a number",
    "date": "a date (2024-02-29)",
    "datetime": "a date with a time (2024-02-29T13:30:00), without a time zone",
    "time": 'a time of day ("13:30:00"), without a time zone',
    "duration": 'a duration in hours, minutes and seconds ("36:00:00")',
}
