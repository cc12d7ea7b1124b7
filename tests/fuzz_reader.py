"""Workbooks damaged at random: the reader answers with cells or with a `WorkbookError`, and each scanner with the same.

`python -m tests.fuzz_reader --rounds 20000` runs it for long (`--seed` repeats a run); the suite runs a few rounds. A
round takes a small sound workbook, damages its bytes, its parts or its cells, and reads it with the exact scanner and
with the plain ones. It fails on any other exception, on a difference, and on more memory than `MOST_BYTES` in the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from importer.errors import WorkbookError
from importer.excel import Kind, Limits, open_workbook
from importer.excel.compiled_scan import COMPILED
from importer.excel.workbook import PackageWorkbook
from tests.pure.excel.sheets_at_random import SheetMaker
from tests.workbooks import parts, zip_parts

MOST_BYTES = 600 * 1024 * 1024
LIMITS = dataclasses.replace(Limits(), part_bytes=8_000_000, total_bytes=32_000_000, cells=2_000_000)
STRINGS = ["one", "two & three", "", "_x0041_", "a_x0000_b", "<r><t>run</t></r><rPh><t>x</t></rPh>"]
FORMATS = ["yyyy-mm-dd", "[h]:mm"]
WAYS = ((False, False), (True, False), *([(True, True)] if COMPILED else []))
Made = dict[str, str | bytes]
Outcome = list[tuple[int, int, int, str]] | str


def fuzz(rounds: int, seed: int, folder: Path) -> list[str]:
    """Run some rounds and give what went wrong, each with the seed that repeats it."""
    wrong: list[str] = []
    for number in range(seed, seed + rounds):
        path = damaged(number, folder / "fuzzed.xlsx")
        outcomes = [_outcome(path, plain=plain, compiled=compiled) for plain, compiled in WAYS]
        crashed = any(isinstance(outcome, str) and ":" in outcome for outcome in outcomes)
        if crashed or any(outcome != outcomes[0] for outcome in outcomes):
            told = " | ".join(outcome if isinstance(outcome, str) else "read" for outcome in outcomes)
            wrong.append(f"seed {number}: {told}")
    used = peak_bytes()
    if used > MOST_BYTES:
        wrong.append(f"{used:,} bytes of memory were used")
    return wrong


def peak_bytes() -> int:
    """Give the most memory this program held since it began (0 where the system does not tell)."""
    status = Path("/proc/self/status")  # getrusage would tell the peak of the process that started this one as well
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def damaged(seed: int, path: Path) -> Path:
    """Write the damaged workbook of a seed."""
    dice = random.Random(seed)
    made = parts({"S": SheetMaker(seed, odd=dice.choice([0.0, 0.05])).part()}, formats=FORMATS, strings=STRINGS)
    dice.choice([_damage_part, _damage_part, _drop_part, _repeat_inside, _damage_archive, _cut_archive])(
        made, dice, path
    )
    return path


def _damage_part(made: Made, dice: random.Random, path: Path) -> None:
    name = dice.choice(sorted(made))
    content = bytearray(_bytes(made[name]))
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(content) + 1)
        content[at : at + dice.choice([0, 0, 1, 8])] = dice.choice(
            [
                b"<",
                b">",
                b"&",
                b'"',
                b"\0",
                b"\xff",
                b"<!DOCTYPE x>",
                b"<!--",
                b"]]>",
                b"&a;",
                b"9" * 30,
                b"/../",
                b"\r\n",
            ]
        )
    made[name] = bytes(content)
    zip_parts(path, made)


def _drop_part(made: Made, dice: random.Random, path: Path) -> None:
    name = dice.choice(sorted(made))
    content = made.pop(name)
    if dice.random() < 0.5:
        made[name.upper()] = content
    zip_parts(path, made, method=dice.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))


def _repeat_inside(made: Made, dice: random.Random, path: Path) -> None:
    """Repeat a stretch of a part many times, as a bomb does."""
    name = dice.choice(sorted(made))
    content = _bytes(made[name])
    at = dice.randrange(len(content))
    stretch = content[at : at + dice.choice([3, 20, 200])]
    made[name] = content[:at] + stretch * dice.choice([10, 1_000, 50_000]) + content[at:]
    zip_parts(path, made)


def _damage_archive(made: Made, dice: random.Random, path: Path) -> None:
    content = bytearray(zip_parts(path, made).read_bytes())
    for _ in range(dice.randint(1, 4)):
        at = dice.choice([dice.randrange(len(content)), len(content) - 1 - dice.randrange(min(400, len(content)))])
        content[at] = dice.choice([0, 1, 0xFF, dice.randrange(256)])
    path.write_bytes(content)


def _cut_archive(made: Made, dice: random.Random, path: Path) -> None:
    content = zip_parts(path, made).read_bytes()
    path.write_bytes(content[: dice.randrange(len(content))] + content[dice.randrange(len(content)) :])


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def _outcome(path: Path, *, plain: bool, compiled: bool) -> Outcome:
    """Give all cells, the reason of a refusal, or what exception it was."""
    try:
        with open_workbook(path, limits=LIMITS) as workbook:
            if isinstance(workbook, PackageWorkbook):
                workbook._plain, workbook._compiled = plain, compiled
            return [
                (row, column, kind, value)
                for sheet in workbook.sheets
                for chunk in workbook.chunks(sheet, rows=50)
                for column, cells in sorted(chunk.columns.items())
                for row, kind, value in zip(chunk.rows, cells.kind, cells.value, strict=True)
                if kind != Kind.BLANK
            ]
    except WorkbookError as error:
        return error.reason
    except Exception as error:  # noqa: BLE001 - that there is none is what is tested
        return f"{type(error).__name__}: {error}"


def main(arguments: list[str] | None = None, say: Callable[[str], object] = print) -> int:
    """Run from the command line; 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        wrong = fuzz(asked.rounds, asked.seed, Path(folder))
    for line in wrong:
        say(line)
    say(f"{asked.rounds:,} damaged workbooks, {len(wrong)} wrong, {peak_bytes() // 2**20} MiB at most")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
