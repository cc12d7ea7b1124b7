"""A resource on a database of the test's own, with a store, an inbox and forms in the test's folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import yaml
from dagster import DagsterInstance
from psycopg import sql
from psycopg.conninfo import make_conninfo

import importer as im
from pipelines.dev import STORAGE
from pipelines.resources import Importer, opened
from tests.importing import form
from tests.pipelines.stack import Stack, gone

#: Forms of the stack; each has a table of its own, named like it with an s.
FORMS = ("site_report", "slow_report", "stuck_report", "seen_report")


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    """Return Dagster's own books, empty and in memory."""
    with DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def site_form() -> im.Form:
    """Return the form of the tests."""
    return form(description="Sites", owners=["desk@example.com", "Site controlling"], fresh_within="26h")


@pytest.fixture
def importer(conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site_form: im.Form) -> Iterator[Importer]:
    """Return the resource: missing tables are created, files settle at once."""
    monkeypatch.setenv("ROWLEASE_CREATE_TABLES", "yes")
    monkeypatch.setenv("ROWLEASE_INBOX_SETTLE_S", "0.01")
    folders = {name: tmp_path / name for name in ("store", "inbox", "forms")}
    for folder in folders.values():
        folder.mkdir()
    (folders["inbox"] / site_form.name).mkdir()
    (folders["forms"] / "site_report.yaml").write_text(yaml.safe_dump(site_form.to_dict()))
    resource = Importer(
        database_url=conninfo,
        store_folder=str(folders["store"]),
        inbox=str(folders["inbox"]),
        forms_folder=str(folders["forms"]),
    )
    yield resource
    opened.close()


@pytest.fixture
def inbox(site_form: im.Form, importer: Importer) -> Path:
    """Return the folder of the inbox that is the form's."""
    return Path(str(importer.inbox)) / site_form.name


@pytest.fixture(scope="session")
def stack_conninfo(server: str, template: str) -> Iterator[str]:
    """Address of the stack's database; its statements may take longer than a third of its short lease."""
    name = f"rowlease_stack_{uuid.uuid4().hex[:12]}"
    identifier = sql.Identifier(name)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {} template {}").format(identifier, sql.Identifier(template)))
    yield make_conninfo(
        server, dbname=name, options="-c statement_timeout=60s -c idle_in_transaction_session_timeout=60s"
    )
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database {} with (force)").format(identifier))
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(STORAGE)))


@pytest.fixture(scope="session")
def stack(stack_conninfo: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Everything that `make dev` starts, with forms that each have a table."""
    folder = tmp_path_factory.mktemp("stack")
    running = Stack(folder, lease_s=10, DATABASE_URL=stack_conninfo, ROWLEASE_IMPORTS_BATCH_ROWS="100")
    for name in FORMS:
        definition = form(name=name, table=f"{name}s", fresh_within="26h").to_dict()
        (running.forms / f"{name}.yaml").write_text(yaml.safe_dump(definition))
    running.start()
    family = running.family()
    yield running
    family += running.family()
    running.end()
    assert gone(family) == [], "Ctrl-C left processes behind"


@pytest.fixture(scope="session")
def stack_db(stack_conninfo: str, stack: Stack) -> Iterator[im.Database]:
    """Open the stack's database."""
    settings = im.Settings(data_folder=stack.folder / "data", forms_folder=stack.forms, inbox=stack.inbox)
    with im.connect(stack_conninfo, settings) as db:
        yield db
