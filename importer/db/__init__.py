"""The only room that knows psycopg: connections, statements, migrations, the embedded server.

```
connect() ── conninfo? DATABASE_URL? PG*? else embedded ──> Database ──connection()──> Connection
                                                              │            autocommit, dict rows, UTC, timeouts
statements("lease")["claim"]  <── sql/statements/lease.sql    └──dedicated()
migrate(db), pending(db)      <── sql/migrations/NNNN_what.sql
```

Other rooms import from here and never from psycopg. What they get promises: an error that leaves a `connection()`
block is a `DatabaseError` with one sentence; no connection can block others for longer than a third of a lease; the
schema is exactly that of this code (`connect` refuses a database that is not migrated, or newer).

*Not guaranteed*: that the schema stays so while a program runs; a migration of a newer version may come at any time,
and only adds.
"""

from __future__ import annotations

from psycopg import errors, sql
from psycopg.types.json import Jsonb

from importer.db.connection import Connection, Database, dict_rows
from importer.db.create import create_database
from importer.db.embedded import EmbeddedServer, Status
from importer.db.failure import database_error, repeat_on_conflict, translated
from importer.db.migrate import Migration, migrate, pending, require_migrated
from importer.db.statements import Statements, statements
from importer.settings import Settings

__all__ = [
    "Connection",
    "Database",
    "EmbeddedServer",
    "Jsonb",
    "Migration",
    "Statements",
    "Status",
    "connect",
    "create_database",
    "database_error",
    "dict_rows",
    "errors",
    "migrate",
    "pending",
    "repeat_on_conflict",
    "require_migrated",
    "sql",
    "statements",
    "translated",
]


def connect(conninfo: str | None = None, settings: Settings | None = None, *, migrated: bool = True) -> Database:
    """Return the database, tried by a first connection.

    The address is `conninfo` (a URL or libpq's `key=value` form), else the setting `DATABASE_URL`, else libpq's PG*
    variables when they name a database, else the embedded server, which is started when it is down and migrated here.
    Any other database must be migrated already (`migrated=False` leaves that unasked, for the program that migrates).

    Raises `DatabaseUnavailableError` (down, unreachable, refused), `DatabaseTooOldError` (PostgreSQL < 14),
    `NotMigratedError` (tables missing, or newer than this code), `MigrationError` (a landed migration was edited).
    """
    settings = settings or Settings.from_environment()
    embedded = not (conninfo or settings.database_url or settings.libpq)
    address = EmbeddedServer(settings.data_folder).url() if embedded else conninfo or settings.database_url or ""
    db = Database(address, settings)
    try:
        if embedded and migrated and pending(db):
            migrate(db)
        with db.connection() as conn:
            if migrated:
                require_migrated(conn, db.label)
    except BaseException:
        db.close()
        raise
    return db
