"""What every submission does before the database is asked: look at the file, copy it, write down what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer import import_chain
from importer.batch.opened import opened
from importer.db import Database
from importer.errors import JobError
from importer.forms import Form
from importer.forms.stamped import stamp_of
from importer.import_job import Request
from importer.lease import storable
from importer.sender import Stamp
from importer.store import Store


def request_of(
    db: Database, path: Path, form: Form, options: Mapping[str, Any], *, file_name: str | None = None
) -> Request:
    """Open the workbook, copy it into the store, and return what is asked; `options` are fields of `Request`.

    Raises:
        WorkbookError: the file is no workbook that can be read.
        StoreError: the file cannot be copied into the store.
        JobError: an option that no job can have.
        JobStateError: the import that it corrects is open, or its rows were replaced or taken back.
    """
    _check(options)
    with opened(path, db.settings, form, name=file_name) as workbook:
        stamp = stamp_of(workbook)
    parent = _parent(db, form, options.get("parent_id"), stamp)
    stored = Store(db.settings.store).put(path)
    return Request(
        definition=form.to_dict(),
        form_name=form.name,
        digest=form.digest,
        file_name=storable(file_name or path.name),
        content_hash=stored.content_hash,
        size_bytes=stored.size_bytes,
        max_attempts=db.settings.imports.max_attempts,
        **{**options, "parent_id": parent},
    )


def _parent(db: Database, form: Form, named: int | None, stamp: Stamp | None) -> int | None:
    """The import that a workbook corrects: the one that is named, else the one that its stamp names."""
    stamped = stamp is not None and stamp.kind in ("faults", "failed_rows")
    if named is None and not stamped:
        return None
    with db.connection() as conn, conn.transaction():
        if named is not None:
            import_chain.require_correctable(conn, named, form_name=form.name)
            return named
        if stamp is None or stamp.job is None or stamp.content_hash is None:
            return None
        return import_chain.corrected_by_stamp(conn, stamp.job, form_name=form.name, content_hash=stamp.content_hash)


def _check(options: Mapping[str, Any]) -> None:
    batch_rows, priority, key = options.get("batch_rows"), options.get("priority"), options.get("key")
    if batch_rows is not None and not 0 < batch_rows < 2**31:
        raise JobError(f"batch_rows must be a number of rows from 1, not {batch_rows}")
    if priority is not None and priority not in range(4):
        raise JobError(f"priority must be 0 (first) to 3 (last), not {priority}")
    if key is not None and (not key or storable(key) != key):
        raise JobError("key must be a text of 1 to 2,000 characters that PostgreSQL can store")
