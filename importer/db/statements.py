"""Reads named SQL statements from `sql/statements/<room>.sql`, once per process.

A file is a sequence of blocks: a line `-- name: claim`, then one comment line or more that say what the statement
promises, then the statement. Comments are not sent to the server (a per cent sign or a brace in prose would be read
as a placeholder). Parameters are `%(name)s`; where an identifier must be filled in it is `{name}`, and the caller
composes it from a closed enum: `statements("lease")["claim"].format(table=...)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from psycopg import sql

_NAME = re.compile(r"^--\s*name:\s*(\S+)\s*$")


class Statements(Mapping[str, sql.SQL]):
    """The statements of one room by name; an unknown name is a `KeyError` that lists those there are."""

    def __init__(self, room: str, blocks: Mapping[str, sql.SQL]) -> None:
        self.room = room
        self._blocks = dict(blocks)

    def __getitem__(self, name: str) -> sql.SQL:
        """Return the statement of that name."""
        try:
            return self._blocks[name]
        except KeyError:
            known = ", ".join(self._blocks)
            raise KeyError(f"sql/statements/{self.room}.sql has no statement {name!r}; it has: {known}") from None

    def __iter__(self) -> Iterator[str]:
        """Names in the order of the file."""
        return iter(self._blocks)

    def __len__(self) -> int:
        """Count the statements."""
        return len(self._blocks)


@cache
def statements(room: str) -> Statements:
    """Return the statements of a room, e.g. `statements("lease")["claim"]`.

    Raises `FileNotFoundError` when the room has no file, `ValueError` when its file breaks the form.
    """
    text = files("importer.sql").joinpath("statements", f"{room}.sql").read_text(encoding="utf-8")
    return Statements(room, parse(room, text))


def rooms() -> list[str]:
    """Names of all rooms that have a file of statements, sorted."""
    folder = files("importer.sql").joinpath("statements")
    return sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))


def parse(room: str, text: str) -> dict[str, sql.SQL]:
    """Take the text of a file apart into its statements; `ValueError` on a doubled name, no promise or no statement."""
    blocks: dict[str, list[str]] = {}
    promised: set[str] = set()
    name = ""
    for line in text.splitlines():
        if match := _NAME.match(line):
            name = match[1]
            if name in blocks:
                raise ValueError(f"sql/statements/{room}.sql has two statements named {name!r}")
            blocks[name] = []
        elif line.lstrip().startswith("--"):
            promised.add(name)
        elif name:
            blocks[name].append(line.rstrip())
        elif line.strip():
            raise ValueError(f"sql/statements/{room}.sql has text before its first '-- name:' line")
    for name, lines in blocks.items():
        if name not in promised:
            raise ValueError(f"sql/statements/{room}.sql: {name!r} says nowhere what it promises")
        if not "".join(lines).strip():
            raise ValueError(f"sql/statements/{room}.sql: {name!r} is empty")
    return {name: sql.SQL("\n".join(lines).strip().removesuffix(";")) for name, lines in blocks.items()}
