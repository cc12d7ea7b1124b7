"""The hidden stamp of a workbook that we wrote, and the origin of a row: how both are written as text and read back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: Name of the stamp's sheet.
STAMP_SHEET = "_rowlease"
#: Name of the sheet that holds long lists of choices.
LISTS_SHEET = "_rowlease_lists"
#: Title of the hidden column of origins.
ORIGIN_TITLE = "_rowlease_row"
#: What a cell holds at most (Excel's limit is 32,767 characters).
_CELL_CHARACTERS = 30_000

_ORIGIN = re.compile(r"([1-9][0-9]{0,18}) ([0-9a-f]{16})")

StampKind = Literal["template", "faults", "failed_rows"]
_KINDS: tuple[StampKind, ...] = ("template", "faults", "failed_rows")


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a workbook of ours says of itself."""

    kind: StampKind
    #: Name of the form, its digest, and its version where a database has given it one.
    form: str
    digest: str
    version: int | None = None
    #: The form as plain data, so that a later version can say what changed.
    definition: Mapping[str, Any] = field(default_factory=dict)
    #: The job whose faults it shows; none after a check.
    job: int | None = None
    #: SHA-256 of the workbook whose faults it shows.
    content_hash: str | None = None
    #: Sheets that we added, by name.
    sheets: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        """The stamp as names and values, a long value in several rows of the same name."""
        values = {
            "kind": self.kind,
            "form": self.form,
            "digest": self.digest,
            "version": None if self.version is None else str(self.version),
            "job": None if self.job is None else str(self.job),
            "content_hash": self.content_hash,
            "sheets": json.dumps(list(self.sheets), ensure_ascii=True),
            "definition": json.dumps(self.definition, ensure_ascii=True, sort_keys=True),
        }
        return [
            (name, value[at : at + _CELL_CHARACTERS])
            for name, value in values.items()
            if value is not None
            for at in range(0, len(value), _CELL_CHARACTERS)
        ]


def read_stamp(rows: Iterable[tuple[str, str]]) -> Stamp | None:
    """Read a stamp from the names and values of its sheet; none when it is no stamp of ours."""
    values: dict[str, str] = {}
    for name, value in rows:
        values[name] = values.get(name, "") + value
    try:
        kind = next(known for known in _KINDS if known == values["kind"])
        return Stamp(
            kind=kind,
            form=values["form"],
            digest=values["digest"],
            version=int(values["version"]) if "version" in values else None,
            definition=_mapping(json.loads(values.get("definition", "{}"))),
            job=int(values["job"]) if "job" in values else None,
            content_hash=values.get("content_hash"),
            sheets=tuple(str(name) for name in json.loads(values.get("sheets", "[]"))),
        )
    except (KeyError, ValueError, TypeError, StopIteration):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("a form is a mapping")
    return value


def is_own_sheet(name: str) -> bool:
    """Whether a sheet is ours by its name, stamp or no stamp."""
    return name in (STAMP_SHEET, LISTS_SHEET)


@dataclass(frozen=True)
class Origin:
    """Where a failed row stood in the file that was sent, and a digest of what it held there."""

    source_row: int
    digest: str

    def __str__(self) -> str:
        return f"{self.source_row} {self.digest}"


def read_origin(text: str | None) -> Origin | None:
    """Read an origin from a cell of the hidden column; none when it holds none."""
    found = _ORIGIN.fullmatch(text.strip()) if text else None
    return Origin(int(found[1]), found[2]) if found else None
