"""Every connection is set up so that it cannot hold a row for ever, and its errors are one clear sentence."""

from __future__ import annotations

import pytest

from importer.db import Database, connect
from importer.errors import DatabaseError, DatabaseUnavailableError, NotMigratedError
from importer.settings import Settings


def test_session_settings(database: Database) -> None:
    """A connection is in UTC, has our name, and times out at a third of the import lease."""
    names = ["TimeZone", "application_name", "statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout"]

    with database.connection() as conn:
        found = conn.execute(
            "select name, setting from pg_settings where name = any(%s)", [[*names, "client_connection_check_interval"]]
        ).fetchall()

    assert {row["name"]: row["setting"] for row in found} == {
        "TimeZone": "UTC",
        "application_name": "rowlease",
        "statement_timeout": "100000",
        "idle_in_transaction_session_timeout": "100000",
        "lock_timeout": "30000",
        "client_connection_check_interval": "1000",
    }


def test_not_migrated(empty_conninfo: str) -> None:
    """A database without our tables is refused with the command that makes them."""
    with pytest.raises(NotMigratedError, match="run `rowlease migrate`"):
        connect(empty_conninfo, Settings())


def test_unreachable() -> None:
    """A server that is down is one sentence with the address and without the password."""
    with pytest.raises(DatabaseUnavailableError) as caught:
        connect("postgresql://ann:s3cret@127.0.0.1:1/reports", Settings())

    assert "database reports at 127.0.0.1:1 (user ann)" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_error_leaves_the_block_as_ours(database: Database) -> None:
    """Errors of psycopg's stop at the edge of the room."""
    with pytest.raises(DatabaseError, match="division by zero"), database.connection() as conn:
        conn.execute("select 1 / 0")
