"""The ledger of the inbox: which files stand there, which are whole, and what became of each. Nothing is ever moved.

```
            see                    settled, opens             decide
 new file ─────► settling ────────────────────────────────► taken       an import job has its content
                   ▲  │ stamp changed: settling anew       ├► refused     no workbook; said once
                   └──┘                                    └► unmatched   no form takes it; asked when forms change
```

A file is known by its path *and its stamp* (size and times). What was decided about a state of a file holds for that
state: a file that is written again is a new state and is looked at anew, and whether its content was imported before is
for the import jobs to say, by content hash. So nothing is skipped because of a clock or of the moment somebody looked,
and nothing is taken twice.

A file is *whole* when its stamp has stood for the settle time, by the database's clock, between two looks. A file that
does not open as a workbook gets thirty times as long before it is called broken: a copy over a slow line may stall. If
it goes on after that, its stamp changes and it is looked at again.

Whoever decides locks the file's row first and writes the decision in the transaction of the submission, so two who look
at once decide once. *Not guaranteed*: that a file which changes without changing its stamp is noticed; that files are
taken in the order they came.

The inbox is a folder, or a bucket named by a URL (`s3://…`, `memory://…`; universal-pathlib and the bucket's file
system have to be installed).
"""

from __future__ import annotations

import datetime as dt
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from importer.db import Connection, statements
from importer.errors import StoreError
from importer.settings import Settings
from importer.store import Store, bucket

Outcome = Literal["settling", "taken", "refused", "unmatched"]

_ST = statements("inbox")

#: How many settle times a file that does not open has before it is refused.
PATIENCE = 30

_CONTENT_HASH = re.compile(r"[0-9a-f]{64}")

#: What programs put beside a workbook while it is edited or copied.
_PASSING_PREFIXES = ("~$", ".")
_PASSING_SUFFIXES = (".tmp", ".part", ".partial", ".crdownload", ".filepart", ".download")


@dataclass(frozen=True, kw_only=True)
class File:
    """A file of the inbox as it stands now."""

    #: Below the inbox, with slashes.
    path: str
    #: Size and times; it changes when the file does.
    stamp: str
    #: Where to read it.
    place: Path


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A file that nobody has decided about yet."""

    file: File
    #: It has stood unchanged for the settle time.
    settled: bool
    #: It has stood so long that it is broken, if it does not open.
    patience_over: bool


#: Folder in the inbox where senders find the faults of their workbooks; nothing is taken from there.
FAULTS_FOLDER = "faults"


def folder(settings: Settings) -> Path:
    """The inbox as a path: of the local file system, or of a bucket.

    Raises:
        SettingsError: a bucket is named and universal-pathlib is not installed, or not the bucket's file system.
    """
    return settings.inbox if isinstance(settings.inbox, Path) else bucket(settings.inbox, setting="ROWLEASE_INBOX")


def files(inbox: Path) -> Iterator[File]:
    """Give the files below the inbox, but hidden ones and those that programs leave while they write or that we wrote.

    A link is followed; one that leads nowhere, and a file that vanishes meanwhile, is passed over. One that cannot be
    looked at has the stamp `unreadable`.

    Raises:
        StoreError: the inbox cannot be read.
    """
    try:
        if not inbox.is_dir():
            return
        for place in sorted(inbox.rglob("*")):
            path = place.relative_to(inbox).as_posix()
            if _passing(path) or path.startswith(f"{FAULTS_FOLDER}/"):
                continue
            stamp = _stamp(place)
            if stamp is not None:
                # A name that is no UTF-8 is one that PostgreSQL cannot hold.
                yield File(path=path.encode("utf-8", "backslashreplace").decode(), stamp=stamp, place=place)
    except OSError as error:
        raise StoreError(f"the inbox {inbox} cannot be read: {error.strerror or error}") from error


def undecided(
    conn: Connection, inbox: Path, found: Sequence[File], *, settle: dt.timedelta, forms_known: str
) -> list[Seen]:
    """Enter the files that are new and give those that wait for a decision. One statement when nothing is new."""
    paths = [file.path for file in found]
    known = _known(conn, inbox, paths, settle)
    new = [file for file in found if (file.path, file.stamp) not in known]
    if new:
        params = {"inbox": str(inbox), "paths": [f.path for f in new], "stamps": [f.stamp for f in new]}
        with conn.transaction():
            conn.execute(_ST["forget_unsettled"], params)
            conn.execute(_ST["see"], params)
        known = _known(conn, inbox, paths, settle)
    waiting = []
    for file in found:
        row = known.get((file.path, file.stamp))
        if row is None:
            continue
        anew = row["outcome"] == "unmatched" and row["forms_known"] != forms_known
        if row["outcome"] == "settling" or anew:
            waiting.append(Seen(file=file, settled=row["settled"], patience_over=row["patience_over"]))
    return waiting


def _known(
    conn: Connection, inbox: Path, paths: Sequence[str], settle: dt.timedelta
) -> dict[tuple[str, str], dict[str, Any]]:
    params = {"inbox": str(inbox), "paths": list(paths), "settle": settle, "patience": settle * PATIENCE}
    return {(row["path"], row["stamp"]): row for row in conn.execute(_ST["known"], params).fetchall()}


def lock_file(conn: Connection, inbox: Path, file: File, *, forms_known: str) -> bool:
    """Take the right to decide about a file until the transaction ends; false when somebody else has it or decided."""
    params = {"inbox": str(inbox), "path": file.path, "stamp": file.stamp, "forms_known": forms_known}
    return conn.execute(_ST["lock_file"], params).fetchone() is not None


def decide(
    conn: Connection,
    inbox: Path,
    file: File,
    outcome: Outcome,
    *,
    content_hash: str | None = None,
    form: str | None = None,
    job_id: int | None = None,
    message: str | None = None,
    forms_known: str | None = None,
) -> None:
    """Write what became of a file, in the caller's transaction, which locked it."""
    conn.execute(
        _ST["decide"],
        {
            "inbox": str(inbox),
            "path": file.path,
            "stamp": file.stamp,
            "outcome": outcome,
            "content_hash": content_hash,
            "form_name": form,
            "job_id": job_id,
            "message": None if message is None else message.replace("\0", "")[:2000],
            "forms_known": forms_known,
        },
    )


def ledger(conn: Connection, inbox: Path, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Give what is known of the files of an inbox, newest first."""
    return conn.execute(_ST["ledger"], {"inbox": str(inbox), "limit": limit}).fetchall()


def unchanged(file: File) -> bool:
    """Whether the file still stands as it was seen."""
    return _stamp(file.place) == file.stamp


def _passing(path: str) -> bool:
    return any(part.startswith(_PASSING_PREFIXES) for part in path.split("/")) or path.lower().endswith(
        _PASSING_SUFFIXES
    )


def _stamp(place: Path) -> str | None:
    """Size and times in one text; None: no file. The time of change makes a file with other rights a new state."""
    try:
        found = place.stat()
    except FileNotFoundError:
        return None
    except OSError:
        return "unreadable"
    mode = getattr(found, "st_mode", 0)
    if not (stat.S_ISREG(mode) if mode else place.is_file()):
        return None
    modified = getattr(found, "st_mtime_ns", 0) or round((found.st_mtime or getattr(found, "st_birthtime", 0)) * 1e9)
    return f"{found.st_size}-{modified}-{getattr(found, 'st_ctime_ns', 0)}"


def locate(settings: Settings, name: str) -> Path:
    """The file of this name below the inbox, else the workbook of this content hash in the store.

    Raises:
        StoreError: there is none, or the name leads out of the inbox.
    """
    place = folder(settings)
    below = place / name
    try:
        local = isinstance(settings.inbox, Path)
        inside = below.resolve().is_relative_to(place.resolve()) if local else ".." not in name
        if inside and below.is_file():
            return below
        store = Store(settings.store)
        if inside and _CONTENT_HASH.fullmatch(name):
            return store.path(name)
    except (OSError, ValueError) as error:
        raise StoreError(f"{name!r} cannot be read: {error}") from error
    why = "no such file stands there" if inside else "the name leads out of it"
    raise StoreError(f"{name!r} is not below the inbox {place} ({why}), and is no content hash of the store")
