"""The store keeps each content once, whole, under its hash, and a failing copy leaves nothing behind."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from importer.errors import StoreError
from importer.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store whose folder does not exist yet."""
    return Store(tmp_path / "store")


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """Return a file of some megabytes, more than one piece of a copy."""
    path = tmp_path / "march.xlsx"
    path.write_bytes(os.urandom(3_000_001))
    return path


def _files(store: Store) -> list[Path]:
    return sorted(path for path in store.folder.rglob("*") if path.is_file())


def test_a_workbook_is_found_by_the_hash_of_its_content(store: Store, workbook: Path) -> None:
    """Hash and size are those of the file, and the copy has its bytes."""
    stored = store.put(workbook)

    assert stored.content_hash == hashlib.sha256(workbook.read_bytes()).hexdigest()
    assert stored.size_bytes == 3_000_001
    assert store.path(stored.content_hash).read_bytes() == workbook.read_bytes()


def test_two_levels_of_folders_come_before_the_name(store: Store, workbook: Path) -> None:
    """No folder holds more than 256 folders, however many workbooks there are."""
    content_hash = store.put(workbook).content_hash

    place = store.path(content_hash).relative_to(store.folder)

    assert place.parts == (content_hash[:2], content_hash[2:4], content_hash)


def test_editing_the_original_changes_nothing_in_the_store(store: Store, workbook: Path) -> None:
    """The store holds a copy, not a link."""
    before = workbook.read_bytes()
    content_hash = store.put(workbook).content_hash

    with workbook.open("r+b") as original:
        original.write(b"edited")

    assert store.path(content_hash).read_bytes() == before


def test_the_same_content_is_kept_once(store: Store, workbook: Path, tmp_path: Path) -> None:
    """A second name with the same bytes makes no second copy, and does not touch the first."""
    first = store.put(workbook)
    kept = store.path(first.content_hash).stat()
    other = tmp_path / "copy of march.xlsx"
    other.write_bytes(workbook.read_bytes())

    second = store.put(other)

    assert second == first
    assert _files(store) == [store.path(first.content_hash)]
    assert store.path(first.content_hash).stat().st_ino == kept.st_ino


def test_two_writers_at_once_leave_one_whole_workbook(store: Store, workbook: Path) -> None:
    """Eight puts of one file, at the same time, agree."""
    with ThreadPoolExecutor(8) as pool:
        stored = set(pool.map(lambda _: store.put(workbook), range(16)))

    assert len(stored) == 1
    assert _files(store) == [store.path(stored.pop().content_hash)]


def test_a_stored_workbook_is_read_only(store: Store, workbook: Path) -> None:
    """Nobody has the right to write it."""
    path = store.path(store.put(workbook).content_hash)

    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_an_empty_file_is_content_too(store: Store, tmp_path: Path) -> None:
    """Whether it is a workbook is not for the store to say."""
    empty = tmp_path / "empty.xlsx"
    empty.touch()

    stored = store.put(empty)

    assert stored.size_bytes == 0
    assert store.verify(stored.content_hash) == stored


def test_a_copy_cut_short_by_a_crash_of_the_machine_is_replaced(store: Store, workbook: Path) -> None:
    """A file of the right name and the wrong size does not stand in for the workbook."""
    stored = store.put(workbook)
    path = store.path(stored.content_hash)
    path.chmod(0o644)
    path.write_bytes(b"half")

    store.put(workbook)

    assert store.verify(stored.content_hash) == stored


def test_verify_finds_content_that_changed(store: Store, workbook: Path) -> None:
    """A flipped byte of the same length is seen, and the sentence says what to do."""
    content_hash = store.put(workbook).content_hash
    path = store.path(content_hash)
    path.chmod(0o644)
    with path.open("r+b") as stored:
        byte = stored.read(1)
        stored.seek(0)
        stored.write(bytes([byte[0] ^ 1]))

    with pytest.raises(StoreError, match="has changed in the store"):
        store.verify(content_hash)


def test_a_missing_workbook_is_named(store: Store) -> None:
    """A hash the store does not have is an error that says where it looked."""
    with pytest.raises(StoreError, match="is not in the store") as caught:
        store.path("0" * 64)

    assert str(store.folder) in str(caught.value)


@pytest.mark.parametrize("content_hash", ["", "../../../etc/passwd", "0" * 63, "G" * 64])
def test_only_a_content_hash_is_looked_up(store: Store, content_hash: str) -> None:
    """No name can lead out of the store."""
    with pytest.raises(StoreError, match="no content hash"):
        store.path(content_hash)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda _path: None, "there is no file"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
)
def test_what_is_no_file_is_refused(
    store: Store, tmp_path: Path, make: Callable[[Path], object], sentence: str
) -> None:
    """A missing file and a folder are told apart, and nothing is made."""
    make(tmp_path / "x.xlsx")

    with pytest.raises(StoreError, match=sentence):
        store.put(tmp_path / "x.xlsx")

    assert not store.folder.exists()


def test_a_full_disk_leaves_nothing_behind(store: Store, workbook: Path) -> None:
    """The kernel refuses to write past a limit in the middle of the copy: a sentence, and no partial file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        with pytest.raises(StoreError, match=r"no room for march\.xlsx") as caught:
            store.put(workbook)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)

    assert isinstance(caught.value.__cause__, OSError)
    assert _files(store) == []


def test_a_store_that_is_no_folder_is_said(tmp_path: Path, workbook: Path) -> None:
    """Where a file stands in the way, the sentence names the store."""
    (tmp_path / "store").write_text("in the way")

    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "store").put(workbook)


def test_a_folder_that_may_not_be_written_is_said(
    store: Store, workbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal of the system (which the tests' own user may be above) becomes a sentence that says what to do."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(store.folder))

    monkeypatch.setattr(Path, "mkdir", refuse)

    with pytest.raises(StoreError, match="may not be written"):
        store.put(workbook)


def test_a_file_that_vanishes_while_it_is_read_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    """A share that goes away in the middle of a copy: the sentence names the original, not the store."""
    original = tmp_path / "march.xlsx"
    original.write_bytes(b"x")
    broken = Path("/proc/self/mem")  # opens, and refuses to be read at its start

    with pytest.raises(StoreError, match="cannot be read to its end"):
        store.put(broken)

    assert _files(store) == []


def test_a_writer_killed_in_the_middle_leaves_no_workbook(store: Store, tmp_path: Path) -> None:
    """What a killed process leaves is never read, and the next put is whole."""
    pipe = tmp_path / "endless.xlsx"
    os.mkfifo(pipe)
    script = "import sys; from importer.store import Store; Store(sys.argv[1]).put(sys.argv[2])"
    writer = subprocess.Popen([sys.executable, "-c", script, str(store.folder), str(pipe)])
    with pipe.open("wb") as feed:
        feed.write(b"x" * 2_500_000)
        feed.flush()
        writer.kill()
        writer.wait(timeout=30)

    with pytest.raises(StoreError, match="is not in the store"):
        store.path(hashlib.sha256(b"x" * 2_500_000).hexdigest())
    assert [path.parent.name for path in _files(store)] in ([], [".incoming"])
