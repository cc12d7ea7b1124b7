"""Every connection is set up so that it cannot hold a row for ever, and its errors are one clear sentence."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import importer.db.connection
from importer.db import Connection, Database, connect, errors, repeat_on_conflict
from importer.errors import DatabaseError, DatabaseTooOldError, DatabaseUnavailableError, NotMigratedError
from importer.settings import Rhythm, Settings


class InterruptedFromOutsideError(BaseException):
    """Stands for what an orchestrator raises in the middle of anything."""


def setting(conn: Connection, name: str) -> str:
    """Return a setting of the session."""
    row = conn.execute("select current_setting(%s) as value", [name]).fetchone()
    assert row is not None
    return str(row["value"])


def pid_of(conn: Connection) -> int:
    """Return the number of the server's process."""
    return conn.info.backend_pid


def wait_until(holds: Callable[[], bool]) -> None:
    """Return when the condition holds; fail after half a minute."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline


@pytest.mark.parametrize("kind", ["connection", "dedicated"])
def test_session_settings(database: Database, kind: str) -> None:
    """A connection is in UTC, has our name, and times out at a third of the import lease."""
    expected = {
        "TimeZone": "UTC",
        "application_name": "rowlease",
        "statement_timeout": "100000",
        "idle_in_transaction_session_timeout": "100000",
        "lock_timeout": "30000",
        "client_connection_check_interval": "1000",
    }

    with getattr(database, kind)() as conn:
        found = conn.execute("select name, setting from pg_settings where name = any(%s)", [list(expected)]).fetchall()

    assert {row["name"]: row["setting"] for row in found} == expected


def test_timeouts_follow_the_lease(conninfo: str) -> None:
    """A shorter lease makes shorter timeouts, never 0, which would mean none."""
    for lease, expected in ((timedelta(seconds=3), "1s"), (timedelta(milliseconds=1), "1ms")):
        with (
            Database(conninfo, Settings(imports=Rhythm(lease=lease))) as db,
            db.connection() as conn,
        ):
            assert setting(conn, "idle_in_transaction_session_timeout") == expected


@pytest.mark.parametrize("place", ["address", "PGOPTIONS"])
def test_options_of_the_user(conninfo: str, place: str) -> None:
    """The user's own options stand beside ours and win, except for the time zone."""
    theirs = "-c work_mem=7MB -c lock_timeout=5s -c timezone=Asia/Tokyo"
    address = make_conninfo(conninfo, options=theirs) if place == "address" else conninfo
    settings = Settings.from_environment({"PGOPTIONS": theirs} if place == "PGOPTIONS" else {})

    with Database(address, settings) as db, db.connection() as conn:
        found = [setting(conn, name) for name in ("work_mem", "lock_timeout", "TimeZone", "statement_timeout")]

    assert found == ["7MB", "5s", "UTC", "100s"]


def test_kept_connection(database: Database) -> None:
    """A connection that was given back is lent again; two at a time are two."""
    with database.connection() as conn:
        first = pid_of(conn)
        with database.connection() as other:
            assert pid_of(other) != first
    with database.connection() as conn, database.connection() as other:
        assert first in (pid_of(conn), pid_of(other))


def test_open_transaction_is_rolled_back(database: Database) -> None:
    """What was left open when the connection came back does not reach the next who asks."""
    with database.connection() as conn:
        conn.execute("begin")
        conn.execute("create table left_open (id int)")

    with database.connection() as conn:
        assert conn.execute("select to_regclass('left_open') as found").fetchone() == {"found": None}


def test_interrupt_in_a_copy(database: Database) -> None:
    """A connection that was interrupted in the middle of a COPY is not lent again."""
    with database.connection() as conn:
        conn.execute("create table copied (id int)")
        interrupted = pid_of(conn)

    def copy_and_stop() -> None:
        with database.connection() as conn:
            copying = conn.cursor().copy("copy copied from stdin")
            copying.__enter__().write_row([1])
            raise InterruptedFromOutsideError

    with pytest.raises(InterruptedFromOutsideError):
        copy_and_stop()

    with database.connection() as conn:
        assert pid_of(conn) != interrupted
        assert conn.execute("select count(*) as n from copied").fetchone() == {"n": 0}


def test_dead_connection_is_replaced(database: Database) -> None:
    """After the server ended an idle connection the next one lent is alive."""
    with database.connection() as conn:
        pid = pid_of(conn)
    with database.dedicated() as killer:
        killer.execute("select pg_terminate_backend(%s, 10000)", [pid])

    with database.connection() as conn:
        assert conn.execute("select 1 as one").fetchone() == {"one": 1}


def test_connection_that_dies_in_use(database: Database) -> None:
    """A connection that is ended while it is used is an unavailable database, and the next one lent is alive."""

    def use_and_die() -> None:
        with database.dedicated() as killer, database.connection() as conn:
            killer.execute("select pg_terminate_backend(%s, 10000)", [pid_of(conn)])
            conn.execute("select 1")

    with pytest.raises(DatabaseUnavailableError, match="terminating connection"):
        use_and_die()
    with database.connection() as conn:
        assert conn.execute("select 1 as one").fetchone() == {"one": 1}


def test_closed(database: Database) -> None:
    """Closing ends the idle connections at the server, and may be done twice."""
    with database.connection() as conn:
        pass

    database.close()
    database.close()

    assert conn.closed


def test_dropped(conninfo: str) -> None:
    """A database that nobody closed closes its idle connections when it is dropped: a warning would fail this test."""
    db = Database(conninfo, Settings())
    with db.connection() as conn:
        pass

    del db
    gc.collect()

    assert conn.closed


def test_client_that_vanished(database: Database) -> None:
    """The server stops a long statement soon after the process that asked for it was killed."""
    code = (
        "import sys\nfrom importer.db import Database\nfrom importer.settings import Settings\n"
        "with Database(sys.argv[1], Settings()).dedicated() as conn:\n"
        "    print(conn.info.backend_pid, flush=True)\n    conn.execute('select pg_sleep(90)')"
    )
    running = "select exists (select from pg_stat_activity where pid = %s and query like '%%pg_sleep%%') as found"
    command = [sys.executable, "-c", code, database.conninfo]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client, database.dedicated() as conn:
        try:
            assert client.stdout is not None
            pid = int(client.stdout.readline())
            wait_until(lambda: conn.execute(running, [pid]).fetchone() == {"found": True})
        finally:
            client.kill()
        wait_until(lambda: conn.execute(running, [pid]).fetchone() == {"found": False})


def test_no_threads(database: Database) -> None:
    """Connections bring no threads."""
    before = threading.active_count()

    with database.connection(), database.connection():
        assert threading.active_count() == before


def test_not_migrated(empty_conninfo: str) -> None:
    """A database without our tables is refused with the command that makes them."""
    with pytest.raises(NotMigratedError, match="is not migrated; run `rowlease migrate`"):
        connect(empty_conninfo, Settings())


def test_not_asked_whether_migrated(empty_conninfo: str) -> None:
    """The program that migrates connects to what is not migrated."""
    with connect(empty_conninfo, Settings(), migrated=False) as db, db.connection() as conn:
        assert setting(conn, "TimeZone") == "UTC"


def test_too_old(conninfo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server older than the oldest supported is refused by its version."""
    monkeypatch.setattr(importer.db.connection, "OLDEST", 990000)

    with pytest.raises(DatabaseTooOldError, match=r"is PostgreSQL \d+; version 14 or newer is needed"):
        connect(conninfo, Settings())


def test_encoding(server: str) -> None:
    """A database that cannot hold every character is refused by name, before a row of it fails."""
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute("create database narrow template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'")
        try:
            with pytest.raises(DatabaseError, match=r"LATIN1.*UTF8 is needed"):
                connect(make_conninfo(server, dbname="narrow"), Settings())
        finally:
            conn.execute("drop database narrow with (force)")


def test_isolation(conninfo: str) -> None:
    """Whatever the user's default: who waited for a lock sees what the other one wrote."""
    address = make_conninfo(conninfo, options="-c default_transaction_isolation=serializable")

    with Database(address, Settings()) as db, db.connection() as conn:
        assert setting(conn, "transaction_isolation") == "read committed"


def test_unreachable() -> None:
    """A server that is down is one sentence with the address and without the password."""
    with pytest.raises(DatabaseUnavailableError) as caught:
        connect("postgresql://ann:s3cret@127.0.0.1:1/reports", Settings())

    assert "database reports at 127.0.0.1:1 (user ann)" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_database(server: str) -> None:
    """A database that does not exist is one sentence."""
    with pytest.raises(DatabaseUnavailableError, match='database "nowhere" does not exist'):
        connect(make_conninfo(server, dbname="nowhere"), Settings())


@pytest.mark.parametrize("address", ["postgresql+psycopg2://ann:s3cret@h/d", "ann s3cret", "postgresql://h/d?s3cret=1"])
def test_unreadable_address(address: str) -> None:
    """An address that is none is refused with an example, and not repeated: it may hold a password."""
    with pytest.raises(DatabaseUnavailableError, match="postgresql://user@host") as caught:
        connect(address, Settings())

    assert "s3cret" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_address_in_order(conninfo: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The argument comes before the setting, the setting before the PG* variables."""
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "unused"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("PGHOST", "from-pg-variables.invalid")

    with pytest.raises(DatabaseUnavailableError, match="from-pg-variables"):
        connect()
    monkeypatch.setenv("DATABASE_URL", "postgresql://from-setting.invalid/d")
    with pytest.raises(DatabaseUnavailableError, match="from-setting"):
        connect()
    connect(conninfo).close()

    assert not (tmp_path / "unused").exists()


def test_password_is_not_shown(conninfo: str) -> None:
    """The password stands in no text of a database."""
    db = Database(make_conninfo(conninfo, password="s3cret"), Settings())

    assert "s3cret" not in f"{db!r} {db.label} {db.settings!r}"


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("select 1 / 0", "division by zero"),
        ("set transaction read only; create table t (id int)", "read-only"),
        ("set local statement_timeout = '1ms'; select pg_sleep(10)", "statement_timeout"),
    ],
)
def test_error_leaves_the_block_as_ours(database: Database, statement: str, sentence: str) -> None:
    """Errors of psycopg's stop at the edge of the room, with the reason and the place in one line."""
    with pytest.raises(DatabaseError, match=sentence) as caught, database.connection() as conn:
        conn.execute(statement)

    assert database.label in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def reader(conninfo: str) -> Iterator[str]:
    """Address of the test's database for a user who may read and nothing else."""
    role = f"rowlease_reader_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(f"create role {role}")
        conn.execute(f"grant usage on schema rowlease to {role}")
        conn.execute(f"grant select on all tables in schema rowlease to {role}")
        yield make_conninfo(conninfo, options=f"-c role={role}")
        conn.execute(f"drop owned by {role}")
        conn.execute(f"drop role {role}")


def test_user_who_may_only_read(reader: str) -> None:
    """A user who may only read connects, and is told at the first write what is missing."""
    with (
        connect(reader, Settings()) as db,
        pytest.raises(DatabaseError, match=r"permission denied .*; the database user lacks the right"),
    ):
        write(db)


def test_user_who_may_not_even_read(conninfo: str, reader: str) -> None:
    """A user without any right to our schema is told so while connecting."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        role = str(conninfo_to_dict(reader)["options"]).removeprefix("-c role=")
        conn.execute(f"revoke usage on schema rowlease from {role}")

    with pytest.raises(DatabaseError, match="permission denied for schema rowlease; the database user lacks the right"):
        connect(reader, Settings())


def write(db: Database) -> None:
    """Write a row."""
    with db.connection() as conn:
        conn.execute("insert into rowlease.leased (status) values ('mine')")


def test_conflict_is_repeated() -> None:
    """A transaction that met a deadlock or a serialization failure runs again."""
    met: list[Exception] = [errors.DeadlockDetected("first"), errors.SerializationFailure("second")]

    def work() -> str:
        if met:
            raise met.pop(0)
        return "done"

    assert repeat_on_conflict(work) == "done"


def test_conflict_is_repeated_through_the_edge(database: Database) -> None:
    """Also when it left a connection's block as an error of ours; one that never ends is raised."""
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        with database.connection() as conn:
            conn.execute("do $$ begin raise exception 'again' using errcode = '40001'; end $$")

    with pytest.raises(DatabaseError, match="again"):
        repeat_on_conflict(work, times=3)
    assert len(runs) == 3


def test_other_errors_are_not_repeated(database: Database) -> None:
    """A transaction that failed for another reason runs once."""
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        with database.connection() as conn:
            conn.execute("select 1 / 0")

    with pytest.raises(DatabaseError, match="division by zero"):
        repeat_on_conflict(work)
    assert len(runs) == 1
