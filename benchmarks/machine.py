"""The machine in general words: enough to judge the figures, nothing that names it."""

import os
import platform
from pathlib import Path


def machine_words() -> str:
    """Return processor, cores, memory, system and Python in one line."""
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{_processor()}, {_cores()} cores, {_memory_gib()} GiB, {system}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
