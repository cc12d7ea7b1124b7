"""The process that is killed: it starts instances, fires timers, answers, imports and delivers until told otherwise."""

from __future__ import annotations

import faulthandler
import multiprocessing as mp
import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import importer as im
from importer import import_job, outbox_message
from importer.db import Database
from importer.errors import ApprovalError
from importer.outbox_message import At
from importer.worker import imports_due
from importer.workflow import import_route, timers_due
from tests.importing import DEFINITION, calls_on, site_workbook
from tests.workflows import flow, node

#: A server that has imported everything once and forks: a walker is there in a hundredth of a second.
_FORKING = mp.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.crash.victim", "tests.crash.walker"])

#: Forks within forks, a branch that ends by itself, a loop, timers, an approval with a limit, an import.
TANGLE = flow(
    node("outer", "fork"),
    node("hour", "timer", hours=1),
    node("say", "log", message="an hour for {{n}}"),
    node("ask", "approval", question="Load {{n}}?", choices=["yes", "no", "later"], limit={"hours": 3}),
    node("inner", "fork"),
    node("wait", "timer", minutes=30),
    node("note", "log", message="inner {{n}}"),
    node("inner_join", "join", fork="inner"),
    node("later", "timer", minutes=20),
    node("load", "import", file="{{file}}", form=DEFINITION["name"], create_table=True),
    node("good", "log", message="{{result.success_rows}} rows"),
    node("aside", "timer", hours=2),
    node("outer_join", "join", fork="outer"),
    node("over", "end"),
    node("end", "end"),
    ways=[
        ("outer", "hour"),
        ("hour", "say"),
        ("say", "outer_join"),
        ("outer", "ask"),
        ("ask", "inner", "yes"),
        ("ask", "outer_join", "no"),
        ("ask", "later", "later"),
        ("ask", "outer_join", "timed_out"),
        ("later", "ask"),
        ("inner", "wait"),
        ("inner", "note"),
        ("wait", "inner_join"),
        ("note", "inner_join"),
        ("inner_join", "outer_join"),
        ("outer", "load"),
        ("load", "good"),
        ("good", "outer_join"),
        ("outer", "aside"),
        ("aside", "over"),
        ("outer_join", "end"),
    ],
    name="tangle",
)


@dataclass(frozen=True, kw_only=True)
class Walker:
    """What a walker does, sent to it as a value."""

    conninfo: str
    settings: im.Settings
    #: The instances it starts, by key; those that are there stay.
    keys: tuple[int, ...]
    #: The folder of the workbooks they import: every second has its own, the others that of the one before.
    folder: Path
    seed: int = 0
    #: Ends at this point, when it comes for the n-th time.
    point: str = ""
    times: int = 1
    by: signal.Signals = signal.SIGKILL

    def start(self) -> ForkServerProcess:
        """Start the process."""
        process = _FORKING.Process(target=walk, args=(self,), daemon=True)
        process.start()
        return process

    def run(self) -> int:
        """Run the process to its end; return its exit code (negative: the signal)."""
        process = self.start()
        process.join(timeout=60)
        assert process.exitcode is not None, "the walker hangs"
        return process.exitcode


def walk(walker: Walker) -> None:
    """Do what is due until nothing is, in random order."""
    faulthandler.enable()
    dice = random.Random(walker.seed)
    at = calls_on(walker.point, walker.times, lambda: os.kill(os.getpid(), walker.by))
    with Database(walker.conninfo, walker.settings) as db:
        for key in walker.keys:
            path = site_workbook(walker.folder / f"{key // 2}.xlsx", 5, start=key // 2 * 5)
            im.start(TANGLE, {"n": key}, files={"file": path}, key=str(key), db=db)
        steps = [_timers, _messages, _imports, _answers]
        while True:
            dice.shuffle(steps)
            if not sum([step(db, dice, at) for step in steps]):
                return


def _timers(db: Database, _dice: random.Random, at: At) -> int:
    return timers_due(db, "timer:walker", limit=5, at=at)


def _messages(db: Database, _dice: random.Random, at: At) -> int:
    routes = {import_job.TOPIC: import_route(db.settings, at=lambda point: at(f"message {point}"))}
    return outbox_message.relay(db, "outbox:walker", routes, limit=3, at=lambda point: at(f"message {point}"))


def _imports(db: Database, _dice: random.Random, _at: At) -> int:
    return imports_due(db, "import:walker", limit=1)


def _answers(db: Database, dice: random.Random, at: At) -> int:
    waiting = im.approvals(db=db)
    if not waiting or dice.random() < 0.3:
        return 0
    approval = dice.choice(waiting)
    with suppress(ApprovalError):  # its time was over, or another answered
        im.answer(approval, dice.choice(approval.choices), by="Ada", db=db, at=lambda point: at(f"answer {point}"))
    return 1


def patient(settings: im.Settings) -> im.Settings:
    """Give settings whose attempts do not run out by being killed."""
    timers = replace(settings.timers, max_attempts=100_000, lease=timedelta(seconds=60))
    imports = replace(settings.imports, max_attempts=100_000)
    return replace(settings, timers=timers, imports=imports)
