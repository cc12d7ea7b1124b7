"""`make dev`: a PostgreSQL, the schema, Dagster's pages and its daemon; one parent, and Ctrl-C ends all of it.

```
this process ── holds the embedded server (or uses DATABASE_URL), migrates, creates Dagster's own database
  ├── code server ── the definitions, a process per run
  ├── dagster-webserver
  └── dagster-daemon
```

The children learn by their environment where the database is, so that only this process has to keep the server alive.
Each child leads a process group of its own: what a terminal sends on Ctrl-C reaches this process alone, which ends them
in order and leaves none behind, whatever the children started. A child that ends by itself is started again, unless it
does so again and again.

One code server for both of the others: where each starts its own, the daemon's is started anew every minute.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Self

import yaml

import importer as im

ROOT = Path(__file__).resolve().parents[1]

#: Seconds that a child has to end by itself, and a run to give its job back.
GRACE_S = 15.0
CODE_SERVER, WEBSERVER, DAEMON = "code server", "webserver", "daemon"

#: A child that was started so often within a minute is given up.
MOST_STARTS = 4

#: Dagster's own storage on the same server.
STORAGE = "rowlease_dagster"


def main(arguments: Sequence[str] | None = None) -> int:
    """Start everything, say where to look, and wait for Ctrl-C."""
    options = _parser().parse_args(arguments)
    stop = threading.Event()

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask_to_stop)
    try:
        with im.connect(migrated=False) as db:
            im.migrate(db)
            _say(f"PostgreSQL     {db.label}")
            port, code_port = free_port(options.port), free_port(options.port + 1000)
            environment = _environment(db, options.home)
            with Children(_commands(options.home, port, code_port), environment) as children:
                children.start(CODE_SERVER)
                while not _listens(code_port) and not stop.wait(0.1) and children.revive() is None:
                    pass  # the others complain about a code server that is not there
                children.start(WEBSERVER)
                children.start(DAEMON)
                return _watch(children, port, stop, db.settings)
    except im.ImporterError as error:
        print(f"make dev: {error}", file=sys.stderr)  # noqa: T201 - this is a command
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines.dev", description="Dagster's pages, on 127.0.0.1 only.")
    parser.add_argument("--port", type=int, default=3000, help="where the pages are (3000, or the next free one)")
    parser.add_argument("--home", type=Path, default=ROOT / ".dagster", help="DAGSTER_HOME (.dagster)")
    return parser


def _environment(db: im.Database, home: Path) -> dict[str, str]:
    """What the children are told: the databases, the home, and settings that suit a first look."""
    home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "dagster.yaml", home / "dagster.yaml")
    settings = db.settings
    if isinstance(settings.inbox, Path):
        for form in im.known_forms(settings.forms_folder).enabled:
            if form.inbox is None:  # its files are those in the folder of its name
                (settings.inbox / form.name).mkdir(parents=True, exist_ok=True)
    storage = im.create_database(db, STORAGE).replace("postgresql://", "postgresql+psycopg2://", 1)
    return {
        "ROWLEASE_CREATE_TABLES": "yes",
        **os.environ,
        "DATABASE_URL": db.conninfo,
        "ROWLEASE_DATABASE_URL": db.conninfo,
        "ROWLEASE_DATA_FOLDER": str(settings.data_folder),
        "DAGSTER_HOME": str(home.resolve()),
        "DAGSTER_STORAGE_URL": storage,
        "PYTHONUNBUFFERED": "1",
    }


def _commands(home: Path, port: int, code_port: int) -> dict[str, list[str]]:
    workspace = home / "workspace.yaml"
    server = {"host": "127.0.0.1", "port": code_port, "location_name": "rowlease"}
    workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}), encoding="utf-8")
    dagster, here = [sys.executable, "-m", "dagster"], ["-h", "127.0.0.1"]
    quiet = ["--log-level", "warning"]
    read = ["-w", str(workspace)]
    code = ["-m", "pipelines.definitions", "--location-name", "rowlease"]
    return {
        CODE_SERVER: [*dagster, "code-server", "start", *here, "-p", str(code_port), *code, *quiet],
        WEBSERVER: [
            sys.executable,
            "-m",
            "dagster_webserver",
            *here,
            "-p",
            str(port),
            *read,
            *quiet,
            "--dagster-log-level",
            "warning",
        ],
        DAEMON: [sys.executable, "-m", "dagster._daemon", "run", *read, *quiet],
    }


class Children:
    """Processes, each in a group of its own; leaving the block ends them and all that they started."""

    def __init__(self, commands: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> None:
        self._commands = commands
        self._environment = dict(environment)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._starts: dict[str, list[float]] = {name: [] for name in commands}
        #: Every group there was: what a child started may outlive it.
        self._groups: list[int] = []

    def __enter__(self) -> Self:
        """Nothing runs yet."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End them all."""
        self._end()

    def start(self, name: str) -> None:
        """Start one of them."""
        child = subprocess.Popen(  # noqa: S603 - our own command
            list(self._commands[name]), env=self._environment, cwd=ROOT, start_new_session=True
        )
        self._running[name] = child
        self._groups.append(child.pid)
        self._starts[name].append(time.monotonic())

    def revive(self) -> str | None:
        """Start those again that ended by themselves; the name of one that does so again and again."""
        for name, child in self._running.items():
            if child.poll() is None:
                continue
            recent = [at for at in self._starts[name] if time.monotonic() - at < 60]
            if len(recent) >= MOST_STARTS:
                return name
            _say(f"The {name} ended by itself ({child.returncode}) and is started again.")
            self.start(name)
            break
        return None

    def _end(self) -> None:
        """Ask every group to end, the newest first; what does not within the grace is killed."""
        living = [group for group in reversed(self._groups) if _signal(group, signal.SIGTERM)]
        deadline = time.monotonic() + GRACE_S
        while living and time.monotonic() < deadline:
            time.sleep(0.1)
            self._reap()
            living = [group for group in living if _signal(group, 0)]
        for group in living:
            _signal(group, signal.SIGKILL)
        for child in self._running.values():
            child.wait()

    def _reap(self) -> None:
        for child in self._running.values():
            child.poll()


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group (0: none); false when nobody is left in it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _watch(children: Children, port: int, stop: threading.Event, settings: im.Settings) -> int:
    """Say where to look once the pages are there; return when asked to stop, or when a child cannot be kept alive."""
    said = False
    while not stop.wait(0.2):
        hopeless = children.revive()
        if hopeless is not None:
            print(f"make dev: the {hopeless} ends again and again; see above", file=sys.stderr)  # noqa: T201
            return 1
        if not said and _answers(port):
            said = True
            _say(f"Pages          http://127.0.0.1:{port}")
            _say(f"Inbox          {settings.inbox}   (a folder per form, or the form's own pattern)")
            _say(f"Forms          {settings.forms_folder}")
            _say("Ctrl-C ends all of it.")
    _say("Ending ...")
    return 0


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(wanted: int) -> int:
    """The port that is wanted, else the next free one."""
    for port in range(wanted, wanted + 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return wanted


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a command


if __name__ == "__main__":
    sys.exit(main())
