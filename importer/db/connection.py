"""Connections that cannot hold a row for ever: one database, its address, its few idle connections.

Every connection of the house, pooled or dedicated, is in autocommit (a transaction is where `with conn.transaction()`
stands), returns rows as dicts, is in UTC, is called `rowlease`, and has the timeouts that keep a stopped or unplugged
worker from blocking others: `statement_timeout` and `idle_in_transaction_session_timeout` at a third of the import
lease, `lock_timeout` at a tenth, TCP keepalives, and (where the server's platform knows it)
`client_connection_check_interval`, by which the server notices within a second that the client is gone while a long
statement runs. `options` of the user's own, in the address or in PGOPTIONS, come after ours and so win, except for
the time zone and the isolation (read committed, so that what waited for a lock sees what the other one wrote), on
which correctness rests.

Connections are opened by the thread that asks, kept when idle (at most four) and checked before they are handed out
again. Rejected: psycopg_pool opens them in threads of its own, so that a refused login shows as a timeout half a
minute later, without its reason, and a `Database` that is not closed leaves threads behind. *Not guaranteed*: a limit
on the number of connections in use; each thread of the house takes one or two.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from importer.db.failure import database_error, translated
from importer.db.statements import statements
from importer.errors import DatabaseError, DatabaseTooOldError, DatabaseUnavailableError
from importer.settings import Settings

#: A connection as every room gets it: rows are dicts.
Connection: TypeAlias = psycopg.Connection[dict[str, Any]]

#: The oldest server: 14 brought client_connection_check_interval.
OLDEST = 140000

#: Idle connections that are kept.
KEPT = 4

_KEEPALIVES = {"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}


class Database:
    """One database: its address and its idle connections. Close it, or use it in a `with`.

    May be shared by threads. After a fork the child opens connections of its own.
    """

    def __init__(self, conninfo: str, settings: Settings) -> None:
        #: Address with everything needed to connect, the password included: for child processes, never for display.
        self.conninfo = conninfo
        self.settings = settings
        self._idle: list[Connection] = []
        self._guard = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        try:
            self._arguments = _arguments(conninfo, settings)
        except psycopg.ProgrammingError:
            # libpq's complaint quotes the address, password and all.
            raise DatabaseUnavailableError(
                "the address of the database cannot be read; write postgresql://user@host:5432/name, "
                "or host=... dbname=... user=..."
            ) from None
        #: The address without password, for messages.
        self.label = _label(self._arguments)

    def __repr__(self) -> str:
        """Show the address without the password."""
        return f"<Database {self.label}>"

    def __enter__(self) -> Self:
        """Return the database; leaving the block closes it."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the idle connections."""
        self.close()

    def __del__(self) -> None:
        """Close what is idle when the last user of the database drops it, as a notebook does."""
        if hasattr(self, "_arguments"):
            self.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection in autocommit, taken from the idle ones when there is one.

        A transaction left open is rolled back. Raises `DatabaseUnavailableError`, `DatabaseTooOldError`; any error of
        psycopg's that leaves the block arrives as `DatabaseError`.
        """
        with translated(self.label):
            conn = self._take() or self._open()
            try:
                yield conn
            finally:
                self._give_back(conn)

    @contextmanager
    def dedicated(self) -> Iterator[Connection]:
        """Open a connection of its own and close it afterwards; raises like `connection`.

        For LISTEN, locks of the session, or a session set up otherwise.
        """
        with translated(self.label):
            conn = self._open()
            try:
                yield conn
            finally:
                conn.close()

    def close(self) -> None:
        """Close the idle connections; those in use close when they are given back. May be called again."""
        self._closed = True
        with self._guard:
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for conn in idle:
                conn.close()

    def _open(self) -> Connection:
        try:
            conn = psycopg.connect(**self._arguments, autocommit=True, row_factory=dict_row)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailableError(f"no connection to {self.label}: {_reason(error)}") from error
        version = conn.info.server_version
        if version < OLDEST:
            conn.close()
            raise DatabaseTooOldError(f"{self.label} is PostgreSQL {version // 10000}; version 14 or newer is needed")
        encoding = conn.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            conn.close()
            raise DatabaseError(
                f"{self.label} keeps text as {encoding}, which does not hold every character of a workbook; "
                "a database with the encoding UTF8 is needed"
            )
        try:
            conn.execute(statements("connection")["check_client"])
        except errors.InvalidParameterValue:
            pass  # The server's platform cannot look at a socket that way; the TCP keepalives remain.
        except psycopg.Error as error:
            conn.close()
            raise database_error(error, self.label) from error
        return conn

    def _take(self) -> Connection | None:
        """Return an idle connection that still answers."""
        while True:
            with self._guard:
                if self._process != os.getpid():  # forked: the sockets are the parent's
                    self._idle, self._process = [], os.getpid()
                if not self._idle:
                    return None
                conn = self._idle.pop()
            try:
                conn.execute("")
            except psycopg.Error:
                conn.close()
            else:
                return conn

    def _give_back(self, conn: Connection) -> None:
        """Keep the connection for the next who asks, when it is as good as new."""
        status = conn.info.transaction_status
        try:
            if status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
                conn.rollback()
            elif status != pq.TransactionStatus.IDLE:
                conn.close()  # an interrupt left a statement running; the server notices that nobody waits for it
        except psycopg.Error:
            conn.close()
        with self._guard:
            keep = not (self._closed or conn.closed) and len(self._idle) < KEPT and conn.autocommit
            if keep:
                self._idle.append(conn)
        if not keep:
            conn.close()


@contextmanager
def dict_rows(conn: psycopg.Connection[Any]) -> Iterator[Connection]:
    """Use a connection that a caller made (with whatever rows) as one of ours, within the caller's own transaction.

    A connection without autocommit begins its transaction here when it has none, so that what follows is the caller's
    to commit; with autocommit what follows commits by itself.
    """
    if not conn.autocommit and conn.info.transaction_status == pq.TransactionStatus.IDLE:
        conn.execute("select 1")
    rows = conn.row_factory
    conn.row_factory = dict_row
    try:
        yield conn
    finally:
        conn.row_factory = rows


def _arguments(conninfo: str, settings: Settings) -> dict[str, Any]:
    """Join the user's address with the session settings of the house."""
    given: dict[str, Any] = dict(conninfo_to_dict(conninfo))
    third = max(1, round(settings.imports.lease.total_seconds() * 1000 / 3))
    ours = {
        "statement_timeout": third,
        "idle_in_transaction_session_timeout": third,
        "lock_timeout": max(1, round(third * 0.3)),
    }
    theirs = given.pop("options", None) or settings.libpq_options
    options = [f"-c {name}={value}" for name, value in ours.items()]
    arguments = {"application_name": "rowlease", **_KEEPALIVES, **given}
    if not settings.libpq_connect_timeout:
        arguments.setdefault("connect_timeout", "10")
    arguments["client_encoding"] = "UTF8"
    fixed = ["-c timezone=UTC", r"-c default_transaction_isolation=read\ committed"]
    arguments["options"] = " ".join([*options, *([theirs] if theirs else []), *fixed])
    make_conninfo(**arguments)
    return arguments


def _label(arguments: dict[str, Any]) -> str:
    """Name the database for people; what the address leaves out is what libpq would take."""
    defaults = {o.keyword.decode(): o.val.decode() for o in pq.Conninfo.get_defaults() if o.val is not None}
    merged = {**defaults, **{key: str(value) for key, value in arguments.items() if value}}
    if "service" in merged and not arguments.get("host"):
        return f"the database of service {merged['service']}"
    user = merged.get("user", "")
    name = merged.get("dbname") or user
    host = merged.get("host") or merged.get("hostaddr") or "the local socket"
    port = merged.get("port", "5432")
    place = host if host.startswith("/") else f"{host}:{port}"
    return f"database {name} at {place} (user {user})"


def _reason(error: psycopg.Error) -> str:
    """The reason of a failed connection in one line."""
    return " ".join((str(error) or type(error).__name__).split())
