"""Migrations go forward only, once, one migrator at a time, and never over a file that was edited."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from importer.db import Connection, Database, Migration, connect, migrate, pending, require_migrated, statements
from importer.db.migrate import LOCK_KEY, known
from importer.errors import MigrationError, NotMigratedError
from importer.settings import Settings

EXTRA = Migration(
    version=len(known()) + 1,
    name="extra",
    text="alter table rowlease.leased add column extra integer not null default 7;",
)


def tables(conn: Connection) -> list[str]:
    """Return the names of the tables in our schema."""
    rows = conn.execute("select tablename from pg_tables where schemaname = 'rowlease' order by tablename").fetchall()
    return [row["tablename"] for row in rows]


def test_empty_to_current(empty_database: Database) -> None:
    """An empty database gets every migration once, in order; the second call finds nothing to do."""
    before = pending(empty_database)
    first = migrate(empty_database)
    second = migrate(empty_database)

    assert before == first == list(known())
    assert (second, pending(empty_database)) == ([], [])
    connect(empty_database.conninfo, Settings()).close()


def test_pending_changes_nothing(empty_database: Database) -> None:
    """Looking at what is pending makes no table."""
    pending(empty_database)

    with empty_database.connection() as conn:
        assert tables(conn) == []


@pytest.mark.parametrize("version", range(1, len(known()) + 1))
def test_upgrade_keeps_rows(empty_database: Database, version: int) -> None:
    """Rows that were there before a migration are there after it, from each version to the newest and one further."""
    migrate(empty_database, known()[:version])
    with empty_database.connection() as conn:
        conn.execute("insert into rowlease.leased (status, last_error) values ('kept', 'as it was')")

    migrate(empty_database, [*known(), EXTRA])

    with empty_database.connection() as conn:
        rows = conn.execute("select status, last_error, extra from rowlease.leased").fetchall()
    assert rows == [{"status": "kept", "last_error": "as it was", "extra": 7}]


def test_upgrade_keeps_jobs(empty_database: Database) -> None:
    """An import job with its form and its faults survives what comes after it."""
    migrate(empty_database, known()[:2])
    with empty_database.connection() as conn:
        conn.execute(
            "insert into rowlease.forms (name, version, digest, definition) values ('f', 1, repeat('a', 64), '{}')"
        )
        conn.execute(
            "insert into rowlease.import_jobs (form_name, form_version, file_name, content_hash, size_bytes, due_at)"
            " values ('f', 1, 'march.xlsx', repeat('b', 64), 5, rowlease.clock())"
        )

    migrate(empty_database, [*known(), EXTRA])

    with empty_database.connection() as conn:
        rows = conn.execute("select form_name, file_name, size_bytes, status from rowlease.import_jobs").fetchall()
    assert rows == [{"form_name": "f", "file_name": "march.xlsx", "size_bytes": 5, "status": "pending"}]


def test_two_migrators_at_once(empty_database: Database) -> None:
    """Two programs that start together share the work: every migration runs once, neither fails."""
    barrier = threading.Barrier(2, timeout=30)

    def run(_: int) -> list[Migration]:
        barrier.wait()
        return migrate(empty_database)

    with ThreadPoolExecutor(2) as migrators:
        done = [migration.version for found in migrators.map(run, range(2)) for migration in found]

    assert sorted(done) == [migration.version for migration in known()]


def test_second_migrator_waits(empty_database: Database) -> None:
    """A migrator waits for the lock of another, then looks again at what is left to do."""
    done: list[list[Migration]] = []
    second = threading.Thread(target=lambda: done.append(migrate(empty_database)))

    with empty_database.dedicated() as conn:
        with conn.transaction():
            conn.execute(statements("migrate")["lock"], {"key": LOCK_KEY})
            second.start()
            deadline = time.monotonic() + 30
            asks = "select exists (select from pg_locks where locktype = 'advisory' and not granted) as waits"
            while conn.execute(asks).fetchone() != {"waits": True}:
                assert time.monotonic() < deadline
            while_locked = tables(conn)
        second.join(60)

    assert while_locked == []
    assert done == [list(known())]


@pytest.mark.parametrize("edit", [{"text": "select 1;"}, {"name": "renamed"}])
def test_edited_file(database: Database, edit: dict[str, str]) -> None:
    """A landed migration whose text or name changed is refused, also by those who only look."""
    edited = [*known()[:-1], replace(known()[-1], **edit), EXTRA]  # type: ignore[arg-type]  # text fields only

    for action in (migrate, pending):
        with pytest.raises(MigrationError, match="is not the file that was applied"):
            action(database, edited)

    with database.connection() as conn:
        assert conn.execute("select max(version) as v from rowlease.migrations").fetchone() == {"v": len(known())}


def test_line_ends_are_no_edit(database: Database) -> None:
    """A checkout that turned line ends changes no checksum."""
    turned = [replace(migration, text=migration.text.replace("\n", "\r\n")) for migration in known()]

    assert pending(database, turned) == []


def test_newer_database(database: Database) -> None:
    """A database that has more than this code knows is refused, by connecting too."""
    migrate(database, [*known(), EXTRA])

    for action in (migrate, pending):
        with pytest.raises(NotMigratedError, match=f"newer than this program: it has migration {EXTRA.label}"):
            action(database)
    with pytest.raises(NotMigratedError, match="update the program"):
        connect(database.conninfo, Settings())


def test_older_database(empty_database: Database) -> None:
    """A database that lacks a migration is refused by name, with the command that applies it."""
    migrate(empty_database, known()[:-1])

    with (
        empty_database.connection() as conn,
        pytest.raises(NotMigratedError, match=f"lacks the migration {known()[-1].label}; run `rowlease migrate`"),
    ):
        require_migrated(conn, "it")


def test_gap(empty_database: Database) -> None:
    """A migration that was left out under a later one is not slipped in behind it."""
    migrate(empty_database)
    with empty_database.connection() as conn:
        conn.execute("delete from rowlease.migrations where version = 1")

    with pytest.raises(MigrationError, match="was never applied, but a later one was"):
        migrate(empty_database)


def test_failing_migration(empty_database: Database) -> None:
    """A migration that fails leaves nothing of itself, and those before it stay."""
    broken = replace(EXTRA, text="create table rowlease.half (id int);\nselect 1 / 0;")

    with pytest.raises(MigrationError, match=r"extra failed and was rolled back: .*division by zero"):
        migrate(empty_database, [*known(), broken])

    assert pending(empty_database) == []
    with empty_database.connection() as conn:
        assert "half" not in tables(conn)
