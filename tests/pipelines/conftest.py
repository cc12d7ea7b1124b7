"""A resource on a database of the test's own, with a store, an inbox and forms in the test's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance

import importer as im
from pipelines.resources import Importer, opened
from tests.importing import form


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
