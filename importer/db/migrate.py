"""Brings a database to the schema of this code: forward only, one transaction per file, one migrator at a time.

A migration is a file `sql/migrations/NNNN_what.sql`, never edited once it landed. What was applied stands in
`rowlease.migrations` with the checksum of its file. Three things are refused: a file that was edited since, a file
missing before the newest applied, and a database that has more than this code knows (an older program would write
what the newer schema does not expect).

Two migrators at once: each takes the same advisory lock at the start of each transaction and looks again at what is
applied, so the second finds nothing left to do. A migration that fails is rolled back whole, and those before it stay.

*Not guaranteed*: that programs of the older schema go on working while a migration runs. A statement that cannot run
in a transaction (`create index concurrently`) has no place here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import psycopg

from importer.db.connection import Connection, Database
from importer.db.failure import database_error
from importer.db.statements import statements
from importer.errors import MigrationError, NotMigratedError

#: Key of the advisory lock; any number that no one else uses: "rowlease" in ASCII.
LOCK_KEY = int.from_bytes(b"rowlease", "big")

_FILE = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


@dataclass(frozen=True, kw_only=True)
class Migration:
    """One file of migrations."""

    #: Number at the start of the file's name, from 1 without gaps.
    version: int
    #: What it brings, the rest of the file's name.
    name: str
    #: The statements.
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text; line ends do not count, since a checkout may change them."""
        return hashlib.sha256(self.text.replace("\r\n", "\n").encode()).hexdigest()

    @property
    def label(self) -> str:
        """The file's name without its ending."""
        return f"{self.version:04}_{self.name}"


@cache
def known() -> tuple[Migration, ...]:
    """The migrations of this code, oldest first; `MigrationError` when their names do not count up from 0001."""
    found = []
    for entry in files("importer.sql").joinpath("migrations").iterdir():
        if not entry.name.endswith(".sql"):
            continue
        match = _FILE.match(entry.name)
        if match is None:
            raise MigrationError(f"sql/migrations/{entry.name} is not named NNNN_what.sql")
        found.append(Migration(version=int(match[1]), name=match[2], text=entry.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise MigrationError("sql/migrations: the numbers of the files do not count up from 0001 one by one")
    return tuple(found)


def migrate(db: Database, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is pending, each migration in a transaction of its own, and return what was applied here.

    Raises `MigrationError` when a landed file was edited or a migration failed (it is rolled back), `NotMigratedError`
    when the database is newer than this code.
    """
    wanted = known() if migrations is None else tuple(migrations)
    done: list[Migration] = []
    with db.dedicated() as conn:
        while (migration := _apply_next(conn, db, wanted)) is not None:
            done.append(migration)
    return done


def pending(db: Database, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """The migrations the database lacks, oldest first; changes nothing. Raises like `migrate`."""
    wanted = known() if migrations is None else tuple(migrations)
    with db.connection() as conn:
        return _pending(conn, db.label, wanted)


def require_migrated(conn: Connection, label: str) -> None:
    """Return when the database has exactly the schema of this code; else `NotMigratedError` or `MigrationError`."""
    missing = _pending(conn, label, known())
    if missing:
        what = "is not migrated" if missing[0].version == 1 else f"lacks the migration {missing[0].label}"
        raise NotMigratedError(f"{label} {what}; run `rowlease migrate`")


def _apply_next(conn: Connection, db: Database, wanted: Sequence[Migration]) -> Migration | None:
    st = statements("migrate")
    with conn.transaction():
        conn.execute(st["unhurried"])
        conn.execute(st["lock"], {"key": LOCK_KEY})
        missing = _pending(conn, db.label, wanted)
        if not missing:
            return None
        migration = missing[0]
        conn.execute(st["create_schema"])
        conn.execute(st["create_ledger"])
        try:
            conn.execute(migration.text.encode())
        except psycopg.Error as error:
            reason = database_error(error, db.label)
            raise MigrationError(f"migration {migration.label} failed and was rolled back: {reason}") from error
        conn.execute(
            st["record"],
            {"version": migration.version, "name": migration.name, "checksum": migration.checksum},
        )
    return migration


def _pending(conn: Connection, label: str, wanted: Sequence[Migration]) -> list[Migration]:
    st = statements("migrate")
    found = conn.execute(st["ledger_exists"]).fetchone()
    applied = conn.execute(st["applied"]).fetchall() if found and found["found"] else []
    if applied and applied[-1]["version"] > len(wanted):
        raise NotMigratedError(
            f"{label} is newer than this program: it has migration {applied[-1]['version']:04}_{applied[-1]['name']}, "
            f"this program knows {len(wanted)}; update the program"
        )
    by_version = {row["version"]: row for row in applied}
    for migration in wanted[: applied[-1]["version"] if applied else 0]:
        row = by_version.get(migration.version)
        if row is None:
            raise MigrationError(f"{label}: migration {migration.label} was never applied, but a later one was")
        if (row["name"], row["checksum"]) != (migration.name, migration.checksum):
            raise MigrationError(
                f"{label}: migration {migration.label} is not the file that was applied; "
                "restore the file and put the change into a new migration"
            )
    return [migration for migration in wanted if migration.version not in by_version]
