"""A form drafted from a workbook: columns, types and a few rules, as its sample suggests; to be reviewed."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from importer.drafts.headings import Heading, Headings, read_headings
from importer.excel import Kind
from importer.forms import ColumnType, Form
from importer.forms.nearness import plain
from importer.forms.numbers import decimal_places, number

_LONGEST_NAME = 40
#: Few different values, often repeated, are choices.
_MOST_CHOICES, _LEAST_ROWS = 12, 30
_RESERVED = {"import_job_id": "sheet_import_job_id", "source_row": "sheet_source_row"}


@dataclass(frozen=True, kw_only=True)
class DraftForm:
    """A form as a first draft, and what in it is a guess."""

    form: Form
    #: One sentence for each thing that should be looked at.
    remarks: tuple[str, ...]

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the draft as YAML, the remarks above it."""
        head = ["# A draft: read it before you use it.", *(f"#   {remark}" for remark in self.remarks)]
        body = yaml.safe_dump(self.form.to_dict(), sort_keys=False, allow_unicode=True)
        Path(path).write_text("\n".join([*head, body]), encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        body = yaml.safe_dump(self.form.to_dict(), sort_keys=False, allow_unicode=True)
        return body + "".join(f"# {remark}\n" for remark in self.remarks)


def draft_form(
    path: str | os.PathLike[str], *, name: str | None = None, table: str | None = None, sheet: str | None = None
) -> DraftForm:
    """Draft a form from the headings and the first rows of a workbook.

    Raises:
        WorkbookError: the workbook cannot be read, or has no row that looks like a header.
    """
    found = read_headings(Path(path), sheet=sheet)
    called = name or identifier(Path(path).stem) or "form"
    remarks: list[str] = []
    names: Counter[str] = Counter()
    columns = [_column(heading, names, remarks) for heading in found.columns]
    definition: dict[str, Any] = {"name": called, "table": table or called, "sheet": found.sheet, "columns": columns}
    remarks += _key_remarks(found)
    return DraftForm(form=Form.from_dict(definition), remarks=tuple(remarks))


def identifier(title: str) -> str:
    """A title as a column's name: small letters, digits, underscores."""
    bare = re.sub(r"[^a-z0-9]+", "_", plain(title).encode("ascii", "ignore").decode()).strip("_")
    bare = f"c_{bare}" if bare[:1].isdigit() else bare
    return bare[:_LONGEST_NAME].rstrip("_")


def _column(heading: Heading, names: Counter[str], remarks: list[str]) -> dict[str, Any]:
    name = identifier(heading.title) or f"column_{heading.column + 1}"
    name = _RESERVED.get(name, name)
    names[name] += 1
    if names[name] > 1:
        remarks.append(f"the heading {heading.title!r} stands in the sheet more than once")
        name = f"{name}_{names[name]}"
    kind = _type(heading, remarks)
    column: dict[str, Any] = {"name": name, "title": heading.title, "type": kind}
    if heading.is_full:
        column["required"] = True
    if kind == "decimal":
        column |= _places(heading)
    if kind == "text" and (choices := _choices(heading)):
        column["choices"] = choices
        remarks.append(f"{name}: the choices are all values of the first {heading.rows} rows")
    return column


def _type(heading: Heading, remarks: list[str]) -> ColumnType:
    kinds = set(heading.kinds) - {Kind.ERROR, Kind.UNCALCULATED, Kind.BROKEN, Kind.UNSTORABLE}
    if not kinds:
        remarks.append(f"{heading.title}: no value in the sample, taken as text")
        return "text"
    simple: dict[frozenset[Kind], ColumnType] = {
        frozenset({Kind.BOOL}): "boolean",
        frozenset({Kind.DATE}): "date",
        frozenset({Kind.TIME}): "time",
        frozenset({Kind.DURATION}): "duration",
        frozenset({Kind.DATETIME}): "datetime",
        frozenset({Kind.DATE, Kind.DATETIME}): "datetime",
    }
    if frozenset(kinds) in simple:
        return simple[frozenset(kinds)]
    if kinds == {Kind.NUMBER}:
        return "integer" if all(_places_of(text) == 0 for text in heading.values) else "decimal"
    most, often = heading.kinds.most_common(1)[0]
    if len(kinds) > 1:
        mixed = ", ".join(f"{count} {kind.name.lower()}" for kind, count in heading.kinds.most_common())
        remarks.append(f"{heading.title}: its cells are mixed ({mixed})")
        if often / sum(heading.kinds.values()) > 0.9 and frozenset({most}) in simple:
            return simple[frozenset({most})]
        if most == Kind.NUMBER and often / sum(heading.kinds.values()) > 0.9:
            return "decimal"
    return "text"


def _places_of(text: str) -> int:
    value = number(text)
    return 0 if value is None else decimal_places(value)


def _places(heading: Heading) -> dict[str, Any]:
    scale = max((_places_of(text) for text in heading.values), default=0)
    return {"precision": 18, "scale": max(scale, 2)} if scale <= 6 else {}


def _choices(heading: Heading) -> list[str]:
    values = Counter(text.strip() for text in heading.values)
    few = len(values) <= _MOST_CHOICES and heading.rows >= _LEAST_ROWS and len(heading.values) >= 3 * len(values)
    return sorted(values) if few and set(heading.kinds) == {Kind.TEXT} else []


def _key_remarks(found: Headings) -> list[str]:
    alone = [h.title for h in found.columns if h.is_full and len(set(h.values)) == h.rows > 1]
    if not alone:
        return ["no single column is different in every row of the sample: think of a key of several columns"]
    return [f"different in every row of the sample, so perhaps the key: {', '.join(alone)}"]
