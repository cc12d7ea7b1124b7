"""Forms in the database: a version is never changed, and a form may be disabled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.db import Connection, Jsonb, statements
from importer.errors import FormDisabledError

_ST = statements("import_job")


def store_form(conn: Connection, definition: Mapping[str, Any], *, name: str, digest: str) -> int:
    """Store a form unless this very form is stored; return its version. Written in the caller's transaction.

    Raises:
        FormDisabledError: the form is disabled.
    """
    params = {"name": name, "digest": digest, "definition": Jsonb(dict(definition))}
    row = conn.execute(_ST["form_by_digest"], params).fetchone()
    if row is None:
        conn.execute(_ST["lock_form"], params)
        row = (
            conn.execute(_ST["form_by_digest"], params).fetchone() or conn.execute(_ST["store_form"], params).fetchone()
        )
    assert row is not None  # an insert that returns
    if not row["enabled"]:
        raise FormDisabledError(
            f"the form {name} is disabled and takes no imports; enable it with: rowlease forms enable {name}"
        )
    return int(row["version"])


def forms(conn: Connection) -> list[dict[str, Any]]:
    """Give the newest version of every stored form: name, version, digest, definition, enabled, created_at."""
    return conn.execute(_ST["forms"]).fetchall()


def enable_form(conn: Connection, name: str, *, enabled: bool) -> bool:
    """Let a form take imports, or not; false when there is no such form. Jobs submitted before go on."""
    return bool(conn.execute(_ST["enable_form"], {"name": name, "enabled": enabled}).fetchall())
