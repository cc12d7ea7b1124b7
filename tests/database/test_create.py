"""A database beside ours, for an orchestrator's own storage."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

import importer as im
from importer.db import Database
from importer.db.create import url_of


def test_a_database_is_created_once(db: Database, server: str) -> None:
    """The URL opens it, and asking again gives the same."""
    name = f"{psycopg.conninfo.conninfo_to_dict(db.conninfo)['dbname']}_beside"
    try:
        url = im.create_database(db, name)
        with psycopg.connect(url) as conn:
            assert conn.info.dbname == name
        assert im.create_database(db, name) == url
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))


@pytest.mark.parametrize(
    ("conninfo", "url"),
    [
        ("host=db.example.com port=5433 user=me password='p@ss/w' dbname=x", "postgresql://me:p%40ss%2Fw@db.example.com:5433/y"),
        ("postgresql://me@db.example.com/x?sslmode=require", "postgresql://me@db.example.com/y?sslmode=require"),
        ("host=/var/run/postgresql user=me", "postgresql://me@/y?host=%2Fvar%2Frun%2Fpostgresql"),
        ("", "postgresql:///y"),
    ],
)  # fmt: skip
def test_an_address_becomes_a_url(conninfo: str, url: str) -> None:
    """Whatever form it has, everything in it is kept but the name."""
    assert url_of(conninfo, "y") == url
