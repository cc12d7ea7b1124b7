"""Run one side as a whole process and take what it cost."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class SideFailedError(Exception):
    """A side that ended with an error, or loaded something else than it should."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a process and its children took."""

    #: Seconds from start to end.
    wall_s: float
    #: Processor seconds, user and system.
    cpu_s: float
    #: Most memory resident at a time, of the largest one process.
    peak_bytes: int
    #: What it wrote to its standard output.
    output: str


def run_process(command: Sequence[str], *, environment: Mapping[str, str]) -> Cost:
    """Run the command to its end and return its cost.

    Linux hands the peak of the parent on to the child (`exec` keeps the high mark), so the process that measures must
    stay small: it imports neither polars nor anything that does.

    Raises SideFailedError when the command ends with anything but 0; the message holds the last words it said.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(list(command), stdout=out, stderr=err, env={**os.environ, **environment})
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            said = err.read()
            sys.stderr.write(said)
            last = (said.strip() or "without a word").splitlines()[-1]
            raise SideFailedError(f"ended with {process.returncode}: {last}")
        unit = 1 if sys.platform == "darwin" else 1024
        return Cost(
            wall_s=wall_s, cpu_s=used.ru_utime + used.ru_stime, peak_bytes=used.ru_maxrss * unit, output=out.read()
        )
