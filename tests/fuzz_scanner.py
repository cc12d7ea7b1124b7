"""The compiled scanner under the address sanitizer: damaged runs and shared strings, compared with the exact scanner.

    python -m tests.fuzz_scanner [COUNT] [SEED]

Builds `_scanner.c` with the address and undefined-behaviour sanitizers into a folder of its own and runs itself again
with that build in place of the installed one. A read or write out of bounds, a leak of memory that was freed, an
overflow of a signed number or a cell that differs ends it with an error.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

_NAME = "importer.excel._scanner"
_SOURCE = Path(__file__).parent.parent / "importer" / "excel" / "_scanner.c"
_INSIDE = "ROWLEASE_SANITIZED_SCANNER"


def compiler() -> str | None:
    """Find a C compiler that has the sanitizers; none when there is none."""
    found = shutil.which("gcc")
    if found is None or not Path(_runtime(found, "libasan.so")).is_absolute():
        return None
    return found


def _runtime(found: str, library: str) -> str:
    return subprocess.run(
        [found, f"-print-file-name={library}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def sanitized(count: int, seed: int) -> str:
    """Build the scanner with sanitizers, damage so many runs, and return what was found.

    Raise when it was anything bad.
    """
    found = compiler()
    assert found is not None, "no gcc with libasan"
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "_scanner.so"
        flags = [
            "-std=c11",
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-shared",
            "-fPIC",
        ]
        include = f"-I{sysconfig.get_path('include')}"
        subprocess.run([found, *flags, include, str(_SOURCE), "-o", str(built)], check=True)
        environment = {
            **os.environ,
            _INSIDE: str(built),
            "LD_PRELOAD": f"{_runtime(found, 'libasan.so')} {_runtime(found, 'libubsan.so')}",
            "ASAN_OPTIONS": "detect_leaks=0",  # Python and polars keep what they have to the end
        }
        run = subprocess.run(
            [sys.executable, "-m", "tests.fuzz_scanner", str(count), str(seed)],
            env=environment,
            capture_output=True,
            text=True,
            cwd=_SOURCE.parent.parent.parent,
            check=False,
        )
    if run.returncode:
        raise AssertionError(f"{run.stdout}\n{run.stderr[-4000:]}")
    return run.stdout.strip()


def _take(built: str) -> None:
    """Put the sanitized build in the place of the installed one, before anything imports it."""
    loader = importlib.machinery.ExtensionFileLoader(_NAME, built)
    spec = importlib.util.spec_from_file_location(_NAME, built, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_NAME] = module


def _fuzz(count: int, seed: int) -> str:
    from importer.excel.compiled_scan import compiled_strings  # noqa: PLC0415 - after the build was put in place
    from importer.excel.limits import Limits  # noqa: PLC0415 - the same
    from tests.pure.excel.scanning import compiled, exactly, mutations  # noqa: PLC0415 - the same

    taken = 0
    for run in mutations(count, seed):
        found = compiled(run)
        if found is not None:
            taken += 1
            assert found == exactly(run), run
    dice = random.Random(seed)
    item = '<si><t>a &amp; b</t></si><si><t xml:space="preserve">äöü and more than twelve</t></si><si/>'.encode()
    for _ in range(count):
        damaged = bytearray(item * dice.randint(1, 3))
        for _ in range(dice.randint(0, 3)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        compiled_strings(bytes(damaged[: dice.randint(0, len(damaged))]), Limits())
    return f"{count} damaged runs, {taken} of them read, none differs"


def main() -> None:
    """Fuzz, in a process whose scanner is sanitized."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    built = os.environ.get(_INSIDE)
    if built is None:
        print(f"seed {seed}: {sanitized(count, seed)}")  # noqa: T201 - its result
        return
    _take(built)
    print(_fuzz(count, seed))  # noqa: T201 - read by the parent


if __name__ == "__main__":
    main()
