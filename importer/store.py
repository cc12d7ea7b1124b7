"""Workbooks by content: whoever edits or deletes the original changes nothing about an import.

A file is copied into a folder under the name of its own SHA-256 while that is computed:

```
store/
├── ab/cd/abcd…ef        a workbook, read-only, complete from the moment it has this name
├── .incoming/           copies under way; nothing reads them
└── .leaving/            workbooks about to be removed, until it is certain that nobody needs them
```

What is promised: a name in the store has its whole content, on disk (the file and its folder are synced before `put`
returns); the same content is kept once, however many put it there at the same time; a `put` that fails leaves nothing
half-done behind. What is not: `discard` is the only way out, and knows from its caller what is needed; a bad disk is
found only by `verify`.

A copy is renamed into place (rename is atomic within one file system, which is why copies under way live in the same
folder). A hard link to the original was rejected: who edits a linked file in place edits the store.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, cast

from importer.errors import ContentChangedError, SettingsError, StoreError

_CHUNK_BYTES = 1 << 20
_INCOMING = ".incoming"
_LEAVING = ".leaving"
_CONTENT_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One workbook as it stands in the store."""

    #: SHA-256 of the content, in hex.
    content_hash: str
    #: Size of the content.
    size_bytes: int


class Store:
    """A folder of workbooks by content hash, or a bucket (by its URL); the folder is made when the first one is put.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> workbook = folder / "march.xlsx"
        >>> _ = workbook.write_bytes(b"content")
        >>> store = Store(folder / "store")
        >>> stored = store.put(workbook)
        >>> store.path(stored.content_hash).read_bytes()
        b'content'
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        url = folder if isinstance(folder, str) and "://" in folder else None
        #: The bucket that has all workbooks; None: the folder has them.
        self.bucket = None if url is None else bucket(url, setting="ROWLEASE_STORE_FOLDER")
        #: The folder; of a bucket, what this machine has put and read.
        self.folder = Path(folder) if url is None else _kept_here(url)

    def put(self, path: str | os.PathLike[str]) -> Stored:
        """Copy a file into the store and return its hash and size; content already there is left as it is.

        Raises:
            StoreError: the file cannot be read, or the folder cannot be written (full, read-only, forbidden). Nothing
                is left behind, and putting the file again is safe.
        """
        source_path = Path(path)
        with _open_source(source_path) as source:
            try:
                stored = self._copy(source, source_path)
                if self.bucket is not None:
                    self._upload(self.bucket, stored)
            except OSError as error:
                raise StoreError(_sentence(error, self.folder, source_path)) from error
            return stored

    def path(self, content_hash: str) -> Path:
        """Return where a workbook stands.

        Raises:
            StoreError: the store has no such content, or its folder cannot be reached.
        """
        path = self._place(content_hash)
        try:
            if self.bucket is not None and not path.is_file():
                self._fetch(self.bucket, content_hash)
            found = path.is_file()
        except OSError as error:
            raise StoreError(_sentence(error, self.folder, path)) from error
        if not found:
            raise StoreError(
                f"the workbook {content_hash[:12]}… is not in the store {self.folder}: it was removed, or the setting "
                f"of the store names another folder than when it was submitted; submit the workbook again"
            )
        return path

    def verify(self, content_hash: str) -> Stored:
        """Read a workbook back and return it, proven to have the content its name says.

        Raises:
            ContentChangedError: it holds other content than its name says.
            StoreError: it is missing or cannot be read.
        """
        path = self.path(content_hash)
        digest, size_bytes = hashlib.sha256(), 0
        with _open_source(path) as stored:
            try:
                while chunk := stored.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    size_bytes += len(chunk)
            except OSError as error:
                raise StoreError(_sentence(error, self.folder, path)) from error
        if digest.hexdigest() != content_hash:
            raise ContentChangedError(
                f"the workbook {content_hash[:12]}… has changed in the store: {path} now holds other content; "
                f"remove that file and submit the workbook again"
            )
        return Stored(content_hash=content_hash, size_bytes=size_bytes)

    def contents(self) -> Iterator[str]:
        """Yield the content hash of every workbook.

        Raises:
            StoreError: the folder cannot be read.
        """
        try:
            names = {path.name for path in self.folder.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*")}
            if self.bucket is not None and self.bucket.is_dir():
                names |= {path.name for path in self.bucket.iterdir()}
            yield from sorted(name for name in names if _CONTENT_HASH.fullmatch(name))
        except OSError as error:
            raise StoreError(_sentence(error, self.folder, self.folder)) from error

    def discard(self, content_hash: str, *, older_than: timedelta, needed: Callable[[], bool]) -> bool:
        """Remove a workbook, unless it was put less than `older_than` ago or is `needed`; return whether it went.

        It is put aside before `needed` is asked, so that a `put` from that moment on makes a copy of its own. Age is
        judged by the clock of the file system. *Not guaranteed* of a bucket: that a workbook which is put at the very
        moment stays; whoever submits it anew puts it again.

        Raises:
            StoreError: the folder cannot be written.
        """
        place, aside = self._place(content_hash), self.folder / _LEAVING / content_hash
        try:
            aside.parent.mkdir(parents=True, exist_ok=True)
            oldest = self._now() - older_than.total_seconds()
            if self.bucket is not None:
                return self._discard_object(self.bucket / content_hash, place, oldest, needed)
            if place.stat().st_mtime > oldest:
                return False
            place.replace(aside)
            if needed() or aside.stat().st_mtime > oldest:
                self._restore(aside)
                return False
            aside.unlink()
        except FileNotFoundError:
            return False  # another was faster
        except OSError as error:
            raise StoreError(_sentence(error, self.folder, place)) from error
        return True

    def restore(self) -> None:
        """Put back what a `discard` that was broken off had put aside.

        Raises:
            StoreError: the folder cannot be written.
        """
        try:
            for aside in sorted((self.folder / _LEAVING).glob("*")):
                self._restore(aside)
        except OSError as error:
            raise StoreError(_sentence(error, self.folder, self.folder / _LEAVING)) from error

    def _upload(self, bucket: Path, stored: Stored) -> None:
        """Put a workbook into the bucket; an object is there as a whole or not at all. Known content is made young."""
        bucket.mkdir(parents=True, exist_ok=True)
        with self._place(stored.content_hash).open("rb") as source, (bucket / stored.content_hash).open("wb") as target:
            shutil.copyfileobj(source, target, _CHUNK_BYTES)

    def _fetch(self, bucket: Path, content_hash: str) -> None:
        """Get a workbook from the bucket, if it is there and has the content its name says."""
        with suppress(FileNotFoundError), (bucket / content_hash).open("rb") as source:
            found = self._copy(source, bucket / content_hash)
            if found.content_hash != content_hash:
                raise ContentChangedError(
                    f"the workbook {content_hash[:12]}… has changed in the store: {bucket / content_hash} now holds "
                    "other content; remove it and submit the workbook again"
                )

    def _discard_object(self, kept: Path, place: Path, oldest: float, needed: Callable[[], bool]) -> bool:
        young = kept.is_file() and _modified(kept) > oldest
        if young or needed():
            return False
        kept.unlink(missing_ok=True)
        place.unlink(missing_ok=True)
        return True

    def _restore(self, aside: Path) -> None:
        place = self._place(aside.name)
        if place.exists():
            aside.unlink(missing_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            aside.replace(place)

    def _now(self) -> float:
        """The present moment by the clock of the file system, which other machines may write too."""
        with tempfile.NamedTemporaryFile(dir=self.folder / _LEAVING, prefix=".now-") as mark:
            return os.fstat(mark.fileno()).st_mtime

    def _place(self, content_hash: str) -> Path:
        if not _CONTENT_HASH.fullmatch(content_hash):
            raise StoreError(f"{content_hash!r} is no content hash: it has 64 digits of 0-9 and a-f")
        return self.folder / content_hash[:2] / content_hash[2:4] / content_hash

    def _copy(self, source: BinaryIO, source_path: Path) -> Stored:
        incoming = self.folder / _INCOMING
        incoming.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=incoming)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as target:
                stored = _copy_hashing(source, target, source_path)
                target.flush()
                os.fchmod(target.fileno(), 0o444)
                os.fsync(target.fileno())
            self._take_in(partial, stored)
        finally:
            partial.unlink(missing_ok=True)
        return stored

    def _take_in(self, partial: Path, stored: Stored) -> None:
        """Give a finished copy its name; one that has it already keeps it, if it is whole."""
        place = self._place(stored.content_hash)
        with suppress(FileNotFoundError):
            if place.stat().st_size == stored.size_bytes and _touched(place):
                return
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.replace(place)
        for folder in (place.parent, place.parent.parent, self.folder):
            _sync_folder(folder)


def bucket(url: str, *, setting: str) -> Path:
    """A bucket as a path.

    Raises:
        SettingsError: universal-pathlib is not installed, or not the bucket's file system.
    """
    try:
        return cast(Path, importlib.import_module("upath").UPath(url))
    except (ImportError, ValueError) as error:
        raise SettingsError(
            setting, f"{url}: a bucket needs universal-pathlib and its file system ({error})"
        ) from error


def _kept_here(url: str) -> Path:
    """Where this machine keeps what it has put into a bucket and read from it; nobody else may write there.

    Raises:
        StoreError: somebody else has made it.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"rowlease-store-{user}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != user:
        raise StoreError(f"the folder {folder} belongs to somebody else; remove it, or set TMPDIR to another folder")
    return folder


def _modified(kept: Path) -> float:
    """When an object was written; just now, where its file system does not say."""
    found = kept.stat()
    return float(found.st_mtime or getattr(found, "st_birthtime", 0) or math.inf)


def _touched(place: Path) -> bool:
    """Say that the workbook was put just now; false where another user's file does not let us."""
    try:
        os.utime(place)
    except PermissionError:
        return False
    return True


@contextmanager
def _open_source(path: Path) -> Iterator[BinaryIO]:
    try:
        source = path.open("rb")
    except FileNotFoundError as error:
        raise StoreError(f"there is no file {path}: it was moved or deleted, or the name is misspelt") from error
    except IsADirectoryError as error:
        raise StoreError(f"{path} is a folder, and a workbook is wanted") from error
    except OSError as error:
        raise StoreError(f"the file {path} cannot be read: {_reason(error)}") from error
    with source:
        yield source


def _copy_hashing(source: BinaryIO, target: BinaryIO, source_path: Path) -> Stored:
    digest, size_bytes = hashlib.sha256(), 0
    while chunk := _read(source, source_path):
        digest.update(chunk)
        target.write(chunk)
        size_bytes += len(chunk)
    return Stored(content_hash=digest.hexdigest(), size_bytes=size_bytes)


def _read(source: BinaryIO, source_path: Path) -> bytes:
    """Read a piece; a failure is the original's, and its sentence does not blame the store."""
    try:
        return source.read(_CHUNK_BYTES)
    except OSError as error:
        raise StoreError(f"the file {source_path} cannot be read to its end: {_reason(error)}") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in this folder outlive a power cut. Windows cannot open folders, and needs no such thing."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sentence(error: OSError, folder: Path, path: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return (
            f"no room for {path.name} in the store {folder} ({_reason(error)}): free some space, or set the store to "
            f"another folder, then submit again"
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return f"the store {folder} may not be written ({_reason(error)}): give this user the right, or set another"
    return f"the store {folder} cannot be used: {_reason(error)}"


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
