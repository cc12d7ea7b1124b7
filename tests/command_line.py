"""Running `rowlease` inside a test: what it printed, what it complained about, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from openpyxl import Workbook

from importer.cli import main

#: A form of two columns; its table is `crews`.
CREWS: dict[str, Any] = {
    "name": "crew",
    "table": "crews",
    "columns": [
        {"name": "site", "title": "Site", "type": "text", "required": True},
        {"name": "crew", "title": "Crew", "type": "integer", "min": 0},
    ],
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of one command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - whatever was printed
        """Return the output as the JSON value it is."""
        return json.loads(self.out)


class CommandLine:
    """Runs commands in the test's own process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        """Run `rowlease` with these arguments."""
        self._capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_of_argparse:
            code = int(exit_of_argparse.code or 0)
        printed = self._capsys.readouterr()
        return Ran(code=code, out=printed.out, err=printed.err)


def write_form(folder: Path, **changes: object) -> Path:
    """Write the form of crews, changed, as YAML."""
    path = folder / "crew.yaml"
    path.write_text(yaml.safe_dump({**CREWS, **changes}), encoding="utf-8")
    return path


def write_crews(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Write a workbook with the titles of the form of crews and these rows."""
    workbook = Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.append(["Site", "Crew"])
    for row in rows:
        sheet.append(list(row))
    workbook.save(path)
    return path
