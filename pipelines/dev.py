"""`make dev`: a PostgreSQL, the schema, Dagster's pages and its daemon; one parent, and Ctrl-C ends all of it.

```
this process ── holds the embedded server (or uses DATABASE_URL), migrates, creates Dagster's own database
  ├── dagster-webserver ── code server
  └── dagster-daemon ───── code server ── a process per run
```

The children learn by their environment where the database is, so that only this process has to keep the server alive.
Each child leads a process group of its own: what a terminal sends on Ctrl-C reaches this process alone, which ends them
in order and leaves none behind, whatever the children started. When one of the two ends by itself, all end.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import importer as im

ROOT = Path(__file__).resolve().parents[1]

#: Seconds that a child has to end by itself, and a run to give its job back.
GRACE_S = 15.0
#: Seconds until the webserver must answer.
START_S = 120.0

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
            environment = _environment(db, options.home)
            _say(f"PostgreSQL     {db.label}")
            port = free_port(options.port)
            with _started(_commands(port), environment) as children:
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
        settings.inbox.mkdir(parents=True, exist_ok=True)
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


def _commands(port: int) -> dict[str, list[str]]:
    workspace = ["-w", str(ROOT / "workspace.yaml")]
    return {
        "webserver": [sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), *workspace],
        "daemon": [sys.executable, "-m", "dagster._daemon", "run", *workspace],
    }


@contextmanager
def _started(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str]
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start the children, each in a process group of its own, and end them and all that they started."""
    children: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands.items():
            children[name] = subprocess.Popen(command, env=dict(environment), cwd=ROOT, start_new_session=True)  # noqa: S603 - our own commands
        yield children
    finally:
        _end(list(children.values())[::-1])


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask each child and all that it started to end; what does not within the grace is killed."""
    for child in children:
        _signal(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while any(_group_lives(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    for child in children:
        if _group_lives(child):
            _signal(child.pid, signal.SIGKILL)
        child.wait()


def _group_lives(child: subprocess.Popen[bytes]) -> bool:
    child.poll()
    try:
        os.killpg(child.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _watch(
    children: Mapping[str, subprocess.Popen[bytes]], port: int, stop: threading.Event, settings: im.Settings
) -> int:
    """Say where to look once the pages are there; return when asked to stop, or when a child ended by itself."""
    said = False
    began = time.monotonic()
    while not stop.wait(0.2):
        for name, child in children.items():
            if child.poll() is not None:
                print(f"make dev: the {name} ended by itself ({child.returncode})", file=sys.stderr)  # noqa: T201
                return 1
        if not said and _answers(port):
            said = True
            _say(f"Pages          http://127.0.0.1:{port}")
            _say(f"Inbox          {settings.inbox}   (a folder per form, or the form's own pattern)")
            _say(f"Forms          {settings.forms_folder}")
            _say("Ctrl-C ends all of it.")
        if not said and time.monotonic() - began > START_S:
            print(f"make dev: the webserver does not answer within {START_S:.0f} s", file=sys.stderr)  # noqa: T201
            return 1
    _say("Ending ...")
    return 0


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


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
