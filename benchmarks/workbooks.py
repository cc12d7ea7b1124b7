"""The workbooks of the benchmarks on disk: made once, found again by the digest of what made them."""

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.recipes import Recipe


@dataclass(frozen=True, kw_only=True)
class Made:
    """A workbook that was made, and what a right import of it must find."""

    #: The workbook.
    path: Path
    #: The form as JSON.
    form_path: Path
    #: Rows under the header.
    rows: int
    #: Rows without a bad cell.
    accepted_rows: int
    #: Bad cells.
    faults: int


def workbook_for(recipe: Recipe, folder: Path, *, divisor: int = 1) -> Made:
    """Return the workbook of `recipe` from `folder`, made now when these makers have not made it yet.

    Whatever stands there under its name is complete: it gets that name last. What other makers made is removed.
    """
    scaled = recipe.scaled(divisor)
    stem = f"{recipe.name}-{scaled.rows}-rows"
    path = folder / f"{stem}-{_digest(scaled)}.xlsx"
    facts_path = path.with_suffix(".facts.json")
    form_path = path.with_suffix(".form.json")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{stem}-*"):
            old.unlink()
        unfinished = path.with_suffix(".part")
        command = [sys.executable, "-m", "benchmarks.writer", recipe.name, str(divisor), str(unfinished)]
        facts_path.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        form_path.write_text(json.dumps(scaled.form(), indent=1))
        unfinished.replace(path)
    facts = json.loads(facts_path.read_text())
    return Made(path=path, form_path=form_path, rows=scaled.rows, **facts)


def _digest(recipe: Recipe) -> str:
    makers = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("recipes.py", "writer.py"))
    return hashlib.sha256(makers + repr(recipe).encode()).hexdigest()[:10]
