"""Another database on the same server, for a program that keeps its own state beside ours (an orchestrator)."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote, urlencode

from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from importer.db.connection import Database


def create_database(db: Database, name: str) -> str:
    """Return the URL of the database `name` on the server of `db`, with password; it is created when it is missing.

    Raises:
        DatabaseError: the user may not create databases.
    """
    with db.dedicated() as conn:
        found = conn.execute("select from pg_catalog.pg_database where datname = %s", [name]).fetchone()
        if found is None:
            with suppress(errors.DuplicateDatabase, errors.UniqueViolation):  # another was faster
                conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return url_of(db.conninfo, name)


def url_of(conninfo: str, name: str) -> str:
    """Return the address of the database `name` on the server of `conninfo`, as a URL."""
    parts = {key: str(value) for key, value in conninfo_to_dict(conninfo).items() if value is not None}
    parts.pop("dbname", None)
    user, password = parts.pop("user", ""), parts.pop("password", None)
    host, port = parts.pop("host", ""), parts.pop("port", None)
    login = quote(user, safe="") + ("" if password is None else ":" + quote(password, safe=""))
    if host.startswith("/") or not host:
        place = ""
        parts |= {key: value for key, value in (("host", host), ("port", port)) if value}
    else:
        place = quote(host, safe=":[],") + (f":{port}" if port else "")
    query = f"?{urlencode(parts)}" if parts else ""
    return f"postgresql://{login}{'@' if login else ''}{place}/{quote(name, safe='')}{query}"
