"""The project as files: where it stands, what is in it, and its modules as syntax trees."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files() -> tuple[Path, ...]:
    """Return every file of the project: those in version control and those about to be, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    names = (Path(name) for name in listed.split("\0") if name)
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


def modules(*folders: str) -> Iterator[Path]:
    """Yield the Python modules below some top folders, relative to the root."""
    for path in files():
        if path.suffix == ".py" and path.parts[0] in folders:
            yield path


@cache
def tree(path: Path) -> ast.Module:
    """Return a module as a syntax tree."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def text(path: Path) -> str | None:
    """Return the text of a file, or None for a file that is no text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
