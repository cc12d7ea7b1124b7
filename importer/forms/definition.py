"""A form as plain data: everything wrong with it is said at once, in sentences, with the nearest name for a typo.

Keys that a later version brings are known and refused as "not supported yet": a form never means less than it says.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import fields

from importer.errors import FormError
from importer.forms.column_definition import read_column, write_column
from importer.forms.form import Form, FormColumn, Locale
from importer.forms.labels import listed, nearest, normal_title
from importer.forms.moment_text import format_problem
from importer.forms.problems import Problems

FORM_KEYS = (
    "name", "description", "owners", "table", "sheet", "header_row", "header_rows", "columns", "key", "on_clash",
    "on_fault", "unknown_columns", "locale", "merged", "table_range", "encoding", "delimiter",
    "inbox", "fresh_within",
)  # fmt: skip
#: Columns that every target table has of its own.
RESERVED_COLUMNS = (
    *("import_job_id", "source_row"),
    *("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"),  # PostgreSQL manual, 5.6 System Columns
)

_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?%")
_FRESH_WITHIN = re.compile(r"[1-9][0-9]{0,6}[smhdw]")


def read_form(definition: Mapping[str, object]) -> Form:
    """A form from plain data. Raises: FormError with every problem."""
    if not isinstance(definition, Mapping):
        raise FormError("", [f"a form is a mapping of keys, not {type(definition).__name__}"])
    problems = Problems()
    problems.unknown_keys(definition, FORM_KEYS, "")
    name = problems.text(definition, "name", "", needed=True)
    problems.identifier(name, "name: ")
    columns = _columns(definition, problems)
    key = problems.texts(definition, "key", "")
    columns = _with_key(columns, key, definition, problems)
    fresh_within = problems.text(definition, "fresh_within", "")
    if fresh_within is not None and not _FRESH_WITHIN.fullmatch(fresh_within):
        problems.add(f'fresh_within must be a number with s, m, h, d or w, as in "26h", not {fresh_within!r}')
    form_or_none = {
        "table": _table(definition, problems),
        "description": problems.text(definition, "description", "") or "",
        "owners": problems.texts(definition, "owners", ""),
        "sheet": _sheet(definition, problems),
        "header_row": problems.whole(definition, "header_row", "", least=1, most=1_048_576),
        "header_rows": problems.whole(definition, "header_rows", "", least=1, most=2) or 1,
        "on_clash": problems.word(definition, "on_clash", ("fault", "skip", "update")),
        **_on_fault(definition, problems),
        "unknown_columns": problems.word(definition, "unknown_columns", ("ignore", "refuse")),
        "merged": problems.word(definition, "merged", ("first", "fill")),
        "table_range": problems.text(definition, "table_range", ""),
        "encoding": _encoding(definition, problems),
        "delimiter": _delimiter(definition, problems),
        "inbox": problems.text(definition, "inbox", ""),
        "locale": _locale(definition, problems),
    }
    if form_or_none["table_range"] is not None:
        for other in ("header_row", "header_rows"):
            if definition.get(other) is not None:
                problems.add(f"{other} does not go with table_range: an Excel table has its header in its first row")
    if form_or_none["on_clash"] == "update" and not key:
        problems.add("on_clash: update needs a key, which tells which row is updated")
    if problems.found or name is None:
        raise FormError(name or "", problems.found)
    return Form(name=name, columns=columns, key=key, fresh_within=fresh_within, **form_or_none)  # type: ignore[arg-type]  # each was read by its kind above


def write_form(form: Form) -> dict[str, object]:
    """The canonical plain data of a form: what is as by default is left out."""
    plain: dict[str, object] = {"name": form.name, "table": form.table}
    for field in fields(Form):
        value = getattr(form, field.name)
        if field.name in ("name", "table", "columns", "locale", "stop_at") or value == field.default:
            continue
        if field.name == "on_fault" and value == "stop_at":
            value = {"stop_at": form.stop_at}
        plain[field.name] = list(value) if isinstance(value, tuple) else value
    locale = {
        f.name: list(v) if isinstance(v, tuple) else v
        for f in fields(Locale)
        if (v := getattr(form.locale, f.name)) != f.default
    }
    if locale:
        plain["locale"] = locale
    plain["columns"] = [write_column(column) for column in form.columns]
    return plain


def _columns(definition: Mapping[str, object], problems: Problems) -> tuple[FormColumn, ...]:
    raw = definition.get("columns")
    if not isinstance(raw, list | tuple) or not raw:
        problems.add(
            "columns must be a list of at least one column" if "columns" in definition else "columns is missing"
        )
        return ()
    columns = [column for i, item in enumerate(raw, 1) if (column := read_column(item, i, problems)) is not None]
    taken: dict[str, FormColumn] = {}
    names: set[str] = set()
    for column in columns:
        problems.identifier(column.name, "column ")
        if column.name in RESERVED_COLUMNS:
            problems.add(f"column {column.name}: the name is taken, every target table has its own {column.name}")
        if column.name in names:
            problems.add(f"column {column.name} is declared twice")
            continue
        names.add(column.name)
        for label in dict.fromkeys(map(normal_title, column.labels)):
            other = taken.setdefault(label, column)
            if other is not column:
                problems.add(f'columns {other.name} and {column.name} both answer to the title "{label}"')
    return tuple(columns)


def _with_key(
    columns: tuple[FormColumn, ...], key: tuple[str, ...], definition: Mapping[str, object], problems: Problems
) -> tuple[FormColumn, ...]:
    """Key columns are required, whether the form says so or not; one that says it is not is a problem."""
    raw = definition.get("columns")
    named = {c.get("name"): c for c in raw if isinstance(c, Mapping)} if isinstance(raw, list | tuple) else {}
    for name in key:
        if name not in named:
            problems.add(f'key: there is no column "{name}"{nearest(name, [str(n) for n in named])}')
        elif named[name].get("required") is False:
            problems.add(f"key: column {name} says required: false, but a key column is always required")
    if len(set(key)) < len(key):
        problems.add(f"key: a column is named twice in {listed(key)}")
    return tuple(_required(c) if c.name in key else c for c in columns)


def _required(column: FormColumn) -> FormColumn:
    values = {f.name: getattr(column, f.name) for f in fields(FormColumn)}
    return FormColumn(**{**values, "required": True})


def _table(definition: Mapping[str, object], problems: Problems) -> str | None:
    table = problems.text(definition, "table", "", needed=True)
    if table is None:
        return None
    parts = table.split(".")
    if len(parts) > 2 or not all(parts):
        problems.add(f'table must be "table" or "schema.table", not {table!r}')
    for part in parts:
        problems.identifier(part, "table: ")
    if len(parts) == 2 and (parts[0] in ("rowlease", "information_schema") or parts[0].startswith("pg_")):
        problems.add(f"table: the schema {parts[0]} is not for the tables of forms")
    return table


def _sheet(definition: Mapping[str, object], problems: Problems) -> str | int | None:
    sheet = definition.get("sheet")
    if sheet is None or (isinstance(sheet, int) and not isinstance(sheet, bool) and sheet >= 0):
        return sheet
    if isinstance(sheet, str) and sheet.strip():
        return sheet
    problems.add(f"sheet must be a sheet's name or its position from 0, not {sheet!r}")
    return None


def _encoding(definition: Mapping[str, object], problems: Problems) -> str | None:
    encoding = problems.text(definition, "encoding", "")
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            problems.add(
                f"encoding: there is no encoding {encoding!r}; common ones are utf-8, windows-1252, iso-8859-15"
            )
    return encoding


def _delimiter(definition: Mapping[str, object], problems: Problems) -> str | None:
    delimiter = definition.get("delimiter")
    if delimiter is None or (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '\r\n"'):
        return delimiter
    problems.add(f'delimiter must be one character that is no quote and no line end, as in ";", not {delimiter!r}')
    return None


def _on_fault(definition: Mapping[str, object], problems: Problems) -> dict[str, object]:
    """What becomes of the rows of a sheet with faults: `on_fault`, and `stop_at` where there is a line."""
    value = definition.get("on_fault", "keep")
    if not isinstance(value, Mapping):
        return {"on_fault": problems.word(definition, "on_fault", ("keep", "refuse_all"))}
    line = value.get("stop_at")
    if set(value) != {"stop_at"}:
        problems.add(f"on_fault must be keep, refuse_all or {{stop_at: ...}}, not {dict(value)!r}")
    elif _is_line(line):
        return {"on_fault": "stop_at", "stop_at": line}
    else:
        problems.add(f'on_fault: stop_at must be a number of rows above 0, or a part as in "5%", not {line!r}')
    return {"on_fault": "keep"}


def _is_line(line: object) -> bool:
    if isinstance(line, str):
        return _PERCENT.fullmatch(line) is not None and 0 < float(line[:-1]) <= 100
    return isinstance(line, int) and not isinstance(line, bool) and line > 0


def _locale(definition: Mapping[str, object], problems: Problems) -> Locale:
    raw = definition.get("locale")
    if raw is None:
        return Locale()
    if not isinstance(raw, Mapping):
        problems.add(f"locale must be a mapping of keys, not {raw!r}")
        return Locale()
    where = "locale: "
    raw = {_TRUTH_KEYS.get(key, str(key)): value for key, value in raw.items()}
    problems.unknown_keys(raw, [f.name for f in fields(Locale)], where)
    decimal = _mark(raw, "decimal", problems) or "."
    thousands = _mark(raw, "thousands", problems)
    if decimal == thousands:
        problems.add(f"{where}decimal and thousands are the same mark {decimal!r}")
    true, false, formats = (problems.texts(raw, key, where) for key in ("true", "false", "formats"))
    true, false = (tuple(word.strip() for word in words) for words in (true, false))
    if bool(true) != bool(false):
        problems.add(f"{where}declare words for both true and false, or for neither")
    for word in sorted({w.casefold() for w in true} & {w.casefold() for w in false}):
        problems.add(f'{where}"{word}" cannot be true and false at once')
    for written in formats:
        found = [format_problem(written, kind) for kind in ("date", "datetime", "time")]
        if all(found):
            problems.add(f"{where}format {written!r} {found[0]}")
    return Locale(decimal=decimal, thousands=thousands, true=true, false=false, formats=formats)


#: YAML 1.1 reads the bare keys true and false as truth values.
_TRUTH_KEYS: dict[object, str] = {True: "true", False: "false"}


def _mark(raw: Mapping[str, object], key: str, problems: Problems) -> str | None:
    mark = raw.get(key)
    if mark is None:
        return None
    allowed = (".", ",", "\u066b") if key == "decimal" else (".", ",", " ", "'", "\u066c", "_")
    mark = {"\u00a0": " ", "\u202f": " ", "\u2019": "'"}.get(mark, mark) if isinstance(mark, str) else mark
    if mark in allowed:
        return str(mark)
    problems.add(f"locale: {key} must be one of {' '.join(map(repr, allowed))}, not {mark!r}")
    return None
