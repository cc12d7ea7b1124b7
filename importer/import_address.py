"""Workbooks from an address: asked about, told apart from those that came before, and brought here in constant memory.

```
address ──HEAD──► open job, or unchanged? ──► that job
   └──GET──► a file, piece by piece ──► the store (content hash) ──► an import job like any other
```

An address is host and path: a query that is signed anew is the same address. It stands for its job while that is open,
and while ETag, Last-Modified and length are unchanged (one of the first two must be there); after a download the
content hash decides, as for a file. A download that fails is tried again after 1, 4 and 8 seconds.

*Not guaranteed*: that a server which changes content and says that nothing changed is found out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from importer.db import Connection, statements
from importer.errors import RequestError, RequestRefusedError, WorkbookError
from importer.http_request import Answer, request, shown

#: Pauses before a download is tried again, in seconds.
PAUSES_S = (1.0, 4.0, 8.0)
#: The time for a whole download.
LONGEST = timedelta(minutes=30)
#: The longest file that is brought.
MOST_BYTES = 2 << 30

_ST = statements("import_address")


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a server says of a file."""

    etag: str | None = None
    last_modified: str | None = None
    size_bytes: int | None = None


def is_address(path: object) -> bool:
    """Tell whether a text names an address and not a file."""
    return isinstance(path, str) and path.lower().startswith(("http://", "https://"))


def file_name(url: str) -> str:
    """Name the file of an address: the last part of its path."""
    return unquote(urlsplit(url).path).rsplit("/", 1)[-1] or "workbook"


def job_before(conn: Connection, url: str, form_name: str, said: Said | None) -> int | None:
    """Give the job that an address stands for: an open one, or one of a file that is unchanged."""
    row = conn.execute(_ST["known"], {"address": _address(url), "form_name": form_name}).fetchone()
    if row is None:
        return None
    if row["open"]:
        return int(row["job_id"])
    if said is None or (said.etag is None and said.last_modified is None):
        return None
    same = (row["etag"], row["last_modified"], row["size_bytes"]) == (said.etag, said.last_modified, said.size_bytes)
    return int(row["job_id"]) if same else None


def remember(conn: Connection, url: str, form_name: str, said: Said, job_id: int) -> None:
    """Write down which job an address became, in the transaction that makes it."""
    params = {
        "address": _address(url),
        "form_name": form_name,
        "etag": said.etag,
        "last_modified": said.last_modified,
        "size_bytes": said.size_bytes,
        "job_id": job_id,
    }
    conn.execute(_ST["put"], params)


def ask(url: str, *, private: bool) -> Said | None:
    """Ask a server about a file, without bringing it; None when it answers nothing of use.

    Raises:
        RequestRefusedError: the address may not be asked.
        WorkbookError: it is too large, or a page instead of a file.
    """
    try:
        with request(url, method="HEAD", private=private) as answer:
            if answer.status != 200:
                return None
            return _said(answer)
    except RequestRefusedError:
        raise
    except RequestError:
        return None


def bring(url: str, target: Path, *, private: bool, pause: Callable[[float], None] = time.sleep) -> Said:
    """Bring a file to `target`, piece by piece; tried again when it breaks off.

    Raises:
        RequestRefusedError: the address, or where it leads, may not be asked.
        RequestError: the server did not give the file, in all tries.
        WorkbookError: it is too large, or a page instead of a file.
    """
    for pause_s in (*PAUSES_S, None):
        try:
            return _bring(url, target, private=private)
        except RequestRefusedError:
            raise
        except RequestError:
            if pause_s is None:
                raise
            pause(pause_s)
    raise AssertionError("the last try returns or raises")


def _bring(url: str, target: Path, *, private: bool) -> Said:
    with request(url, within=LONGEST, most_bytes=MOST_BYTES, private=private) as answer:
        if answer.status != 200:
            raise RequestError(f"{shown(url)}: answered {answer.status}")
        said = _said(answer)
        with target.open("wb") as file:
            for piece in answer.pieces:
                file.write(piece)
    return said


def _said(answer: Answer) -> Said:
    length = answer.headers.get("content-length", "")
    size = int(length) if length.isdigit() else None
    if size is not None and size > MOST_BYTES:
        raise WorkbookError("too_large", f"{shown(answer.url)} has {size:,} bytes; at most {MOST_BYTES:,} are brought")
    if answer.headers.get("content-type", "").partition(";")[0].strip().lower() in {
        "text/html",
        "application/xhtml+xml",
    }:
        raise WorkbookError(
            "not_a_spreadsheet",
            f"{shown(answer.url)} gives a web page instead of a workbook; perhaps it asks for a login, or has expired",
        )
    return Said(etag=answer.headers.get("etag"), last_modified=answer.headers.get("last-modified"), size_bytes=size)


def _address(url: str) -> str:
    return shown(url).partition("://")[2]
