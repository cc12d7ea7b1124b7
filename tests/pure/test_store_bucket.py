"""A bucket as store: what one machine puts, another finds, and what is kept on a machine is checked by its hash."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from importer.errors import ContentChangedError, SettingsError, StoreError
from importer.store import Store

DAY = timedelta(days=1)


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of an empty bucket; this machine keeps what it reads in the test's folder."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return f"memory://{tmp_path.name}" if request.param == "memory" else f"file://{tmp_path}/bucket"


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """Return a file."""
    path = tmp_path / "march.xlsx"
    path.write_bytes(os.urandom(100_000))
    return path


def another_machine(url: str) -> Store:
    """Return the store as a machine sees it that has read nothing of it yet."""
    shutil.rmtree(Store(url).folder)
    return Store(url)


def test_what_one_machine_puts_another_finds(url: str, workbook: Path) -> None:
    """By the hash, with the same bytes, proven."""
    stored = Store(url).put(workbook)
    other = another_machine(url)

    assert list(other.contents()) == [stored.content_hash]
    assert other.path(stored.content_hash).read_bytes() == workbook.read_bytes()
    assert other.verify(stored.content_hash) == stored


def test_what_is_in_no_bucket_is_not_found(url: str) -> None:
    """The sentence is that of a folder."""
    with pytest.raises(StoreError, match="submit the workbook again"):
        Store(url).path("0" * 64)


def test_other_content_under_the_name_is_refused(url: str, workbook: Path) -> None:
    """An object that was overwritten is not taken for the workbook."""
    store = Store(url)
    stored = store.put(workbook)
    assert store.bucket is not None
    (store.bucket / stored.content_hash).write_bytes(b"other")

    with pytest.raises(ContentChangedError):
        another_machine(url).path(stored.content_hash)


def test_a_workbook_goes_from_the_bucket_when_nobody_needs_it(url: str, workbook: Path) -> None:
    """Young or needed it stays; after that it is gone for every machine."""
    store = Store(url)
    content_hash = store.put(workbook).content_hash

    young = store.discard(content_hash, older_than=DAY, needed=lambda: False)
    kept = store.discard(content_hash, older_than=-DAY, needed=lambda: True)
    gone = store.discard(content_hash, older_than=-DAY, needed=lambda: False)

    assert (young, kept, gone) == (False, False, True)
    assert list(another_machine(url).contents()) == []


def test_a_bucket_without_its_file_system_is_said() -> None:
    """The sentence names the setting and what is missing."""
    with pytest.raises(SettingsError, match=r"ROWLEASE_STORE_FOLDER.*universal-pathlib"):
        Store("nosuch://bucket")
