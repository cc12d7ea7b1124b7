"""The process that is killed: it imports a workbook and, when told, ends or stops itself at a named point."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import importer as im
from importer.db import Database
from tests.importing import calls_on, form

#: A server that has imported everything once and forks: a victim is there in a hundredth of a second.
_FORKING = mp.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.crash.victim"])


@dataclass(frozen=True, kw_only=True)
class Victim:
    """What a victim does, sent to it as a value."""

    conninfo: str
    settings: im.Settings
    path: Path
    batch_rows: int
    #: Instead of the form of `tests.importing`.
    how: im.Form | None = None
    #: The import that the workbook corrects.
    corrects: int | None = None
    #: Undo this import instead.
    undo: int | None = None
    #: Ends at this point, when it comes for the n-th time.
    point: str = ""
    times: int = 1
    #: What ends it: SIGKILL, or SIGSTOP to stand still.
    by: signal.Signals = signal.SIGKILL

    def start(self) -> ForkServerProcess:
        """Start the process."""
        process = _FORKING.Process(target=_live, args=(self,), daemon=True)
        process.start()
        return process

    def run(self) -> int:
        """Run the process to its end; return its exit code (negative: the signal)."""
        process = self.start()
        process.join(timeout=60)
        assert process.exitcode is not None, "the victim hangs"
        return process.exitcode


def _live(victim: Victim) -> None:
    at = calls_on(victim.point, victim.times, lambda: os.kill(os.getpid(), victim.by))
    with Database(victim.conninfo, victim.settings) as db:
        if victim.undo is not None:
            im.undo(victim.undo, db=db, progress=False, at=at)
            return
        how = victim.how or form()
        im.import_workbook(
            victim.path, how, db=db, batch_rows=victim.batch_rows, corrects=victim.corrects, progress=False, at=at
        )


def with_lease(settings: im.Settings, seconds: float, *, max_attempts: int = 5) -> im.Settings:
    """Give settings whose imports have another lease."""
    imports = replace(settings.imports, lease=timedelta(seconds=seconds), max_attempts=max_attempts)
    return replace(settings, imports=imports)
