"""A real PostgreSQL for the tests: one server for the session, one database for each test.

The server is an embedded one in a temporary folder, without fsync; where it cannot run, `DATABASE_URL`, then the PG*
variables name another, whose user must be allowed to create databases. A template database is migrated once, and each
test gets a copy, which takes a few hundredths of a second and is dropped afterwards. Nothing starts before a test
asks for it.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from importer.db import Connection, Database, EmbeddedServer, migrate
from importer.errors import DatabaseUnavailableError
from importer.settings import Settings

# How long an example takes says how busy the machine is, not whether the rule holds.
hypothesis.settings.register_profile("house", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever started the tests in the background made them deaf to Ctrl-C; programs that they start must hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: Moves the clock of the test's database: `move_clock(timedelta(hours=1))`, or of given connections only.
MoveClock = Callable[..., None]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Address of the server's maintenance database."""
    # Not under pytest's own temporary folder: the server of root runs as another user, and pytest closes that folder
    # to others.
    folder = Path(tempfile.mkdtemp(prefix="rowlease-"))
    embedded = EmbeddedServer(folder)
    try:
        address = embedded.url()
    except DatabaseUnavailableError as error:
        shutil.rmtree(folder, ignore_errors=True)
        yield _another_server(error)
        return
    with psycopg.connect(address, autocommit=True) as conn:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            conn.execute(sql.SQL("alter system set {} = off").format(sql.Identifier(setting)))
        conn.execute("select pg_reload_conf()")
    yield address
    embedded.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _another_server(error: DatabaseUnavailableError) -> str:
    settings = Settings.from_environment()
    if settings.database_url:
        return settings.database_url
    if settings.libpq:
        return ""
    pytest.fail(f"no PostgreSQL for the tests: {error}; set DATABASE_URL or PGHOST")


@pytest.fixture(scope="session")
def template(server: str) -> Iterator[str]:
    """Name of a migrated database, of which each test gets a copy."""
    name = f"rowlease_template_{uuid.uuid4().hex[:12]}"
    with _created(server, name, "template0"):
        with Database(make_conninfo(server, dbname=name), Settings()) as db:
            migrate(db)
        yield name


@pytest.fixture
def conninfo(server: str, template: str) -> Iterator[str]:
    """Address of a migrated database of the test's own, for child processes and settings of other kinds."""
    name = f"rowlease_test_{uuid.uuid4().hex[:12]}"
    with _created(server, name, template):
        yield make_conninfo(server, dbname=name)


@pytest.fixture
def database(conninfo: str) -> Iterator[Database]:
    """Open a migrated database of the test's own."""
    with Database(conninfo, Settings()) as db:
        yield db


@pytest.fixture
def db(conninfo: str, tmp_path: Path) -> Iterator[Database]:
    """Open a migrated database of the test's own whose store is in the test's folder."""
    with Database(conninfo, Settings(data_folder=tmp_path / "data")) as database:
        yield database


@pytest.fixture
def conn(database: Database) -> Iterator[Connection]:
    """Open a connection to the test's database."""
    with database.connection() as connection:
        yield connection


@pytest.fixture
def empty_conninfo(server: str) -> Iterator[str]:
    """Address of a database of the test's own that was never migrated."""
    name = f"rowlease_empty_{uuid.uuid4().hex[:12]}"
    with _created(server, name, "template0"):
        yield make_conninfo(server, dbname=name)


@pytest.fixture
def empty_database(empty_conninfo: str) -> Iterator[Database]:
    """Open a database of the test's own that was never migrated."""
    with Database(empty_conninfo, Settings()) as db:
        yield db


@pytest.fixture
def move_clock(conninfo: str) -> MoveClock:
    """Put `rowlease.clock()` ahead of the real time (back, when negative).

    `move_clock(ahead)` moves it for all connections opened later, in any process; `move_clock(ahead, conn, ...)` for
    these connections only.
    """

    def move(ahead: timedelta, *connections: Connection) -> None:
        value = f"{ahead.total_seconds()} seconds"
        for connection in connections:
            connection.execute("select set_config('rowlease.clock_offset', %s, false)", [value])
        if not connections:
            with psycopg.connect(conninfo, autocommit=True) as own:
                name = sql.Identifier(own.info.dbname)
                own.execute(sql.SQL("alter database {} set rowlease.clock_offset = {}").format(name, value))

    return move


@contextmanager
def _created(server: str, name: str, template: str) -> Iterator[None]:
    """Create a database and drop it afterwards, whoever is still connected."""
    identifier = sql.Identifier(name)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {} template {}").format(identifier, sql.Identifier(template)))
    try:
        yield
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database {} with (force)").format(identifier))


@pytest.fixture
def queue_jobs(conninfo: str) -> Callable[..., list[int]]:
    """Insert import jobs that have no workbook: `queue_jobs(3, priority=0, due_at=...)` returns their ids in order."""

    def queue(count: int = 1, **columns: object) -> list[int]:
        names = sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(name)) for name in columns)
        values = sql.SQL("").join(sql.SQL(", {}").format(sql.Placeholder(name)) for name in columns)
        due = sql.SQL("") if "due_at" in columns else sql.SQL(", due_at")
        due_value = sql.SQL("") if "due_at" in columns else sql.SQL(", rowlease.clock()")
        insert = sql.SQL(
            "insert into rowlease.import_jobs"
            " (form_name, form_version, file_name, content_hash, size_bytes, forced{due}{names})"
            " select 'queued', 1, 'queued.xlsx', repeat('0', 64), 1, true{due_value}{values}"
            " from generate_series(1, %(count)s) returning id"
        ).format(due=due, names=names, due_value=due_value, values=values)
        with psycopg.connect(conninfo) as own:
            own.execute(
                "insert into rowlease.forms (name, version, digest, definition)"
                " values ('queued', 1, repeat('0', 64), '{}') on conflict do nothing"
            )
            return sorted(row[0] for row in own.execute(insert, {"count": count, **columns}).fetchall())

    return queue
