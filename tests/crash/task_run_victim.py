"""The process that is killed while it runs tasks, its journey, and the outside world that counts what happens."""

from __future__ import annotations

import datetime as dt
import multiprocessing as mp
import os
import signal
from collections import Counter
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from importer.db import Connection, Database
from importer.lease import holder_name
from importer.settings import Settings
from importer.task_run import Context, Operation, Retry, Task, tasks_due
from tests.importing import calls_on

#: A server that has imported everything once and forks: a victim is there in a hundredth of a second.
_FORKING = mp.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.crash.task_run_victim"])

#: Every point of a run that has a name.
POINTS = (
    "claimed", "running", "step begins", "step ran", "step stored", "operation begun", "operation done",
    "operation committing", "operation committed", "suspending", "suspended", "ran", "finishing", "finished",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """What is outside: a file of lines, each appended whole, that no transaction takes back."""

    path: Path

    def act(self, what: str) -> None:
        """Let something happen."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{what}\n".encode())
        finally:
            os.close(file)

    def happened(self) -> Counter[str]:
        """Count what happened."""
        return Counter(self.path.read_text().splitlines() if self.path.exists() else [])

    def do(self, operation: Operation) -> str:
        """Do an operation; when it is resumed, ask first whether it was done."""
        key = operation.idempotency_key
        if operation.resumed and key in self.happened():
            return "found"
        self.act(key)
        return "done"


def journey(world: World) -> Task:
    """Give a task with steps, a sleep, a fact and two operations, the first of which writes a receipt."""

    def travel(ctx: Context) -> list[str]:
        def receipt(conn: Connection, how: str) -> None:
            conn.execute("insert into receipts (run, how) values (%s, %s)", [ctx.run_id, how])

        def note(name: str) -> str:
            world.act(f"{name} of {ctx.run_id} in {ctx.fence}")
            return name

        first = ctx.step("first", lambda: note("first"))
        ctx.once("submit", world.do, commit=receipt)
        ctx.sleep(dt.timedelta(seconds=30))
        fact = ctx.wait_for("paid", timeout=dt.timedelta(seconds=30))
        ctx.once("ship", world.do)
        return [first, ctx.step("last", lambda: note("last")), "timed out" if fact.timed_out else str(fact.payload)]

    return Task(name="journey", version=1, function=travel, retry=Retry(attempts=1000))


def tiny(world: World) -> Task:
    """Give a task that only happens."""
    return Task(name="tiny", version=1, function=lambda ctx: world.act(str(ctx.run_id)), retry=Retry(attempts=1000))


TASKS = {"journey": journey, "tiny": tiny}


@dataclass(frozen=True, kw_only=True)
class Victim:
    """What a victim does, sent to it as a value."""

    conninfo: str
    settings: Settings
    world: World
    task: str = "journey"
    #: Ends at this point, when it comes for the n-th time.
    point: str = ""
    times: int = 1
    #: What ends it: SIGKILL, or SIGSTOP to stand still.
    by: signal.Signals = signal.SIGKILL

    def start(self) -> ForkServerProcess:
        """Start the process."""
        process = _FORKING.Process(target=live, args=(self,), daemon=True)
        process.start()
        return process

    def run(self) -> int:
        """Run the process to its end; return its exit code (negative: the signal)."""
        process = self.start()
        process.join(timeout=60)
        assert process.exitcode is not None, "the victim hangs"
        return process.exitcode


def live(victim: Victim) -> None:
    """Run what is due, and end where it was told."""
    at = calls_on(victim.point, victim.times, lambda: os.kill(os.getpid(), victim.by))
    with Database(victim.conninfo, victim.settings) as db:
        tasks_due(db, holder_name("task"), tasks=[TASKS[victim.task](victim.world)], at=at)
