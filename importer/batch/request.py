"""What every submission does before the database is asked: look at the file, copy it, write down what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer.batch.opened import opened
from importer.db import Database
from importer.errors import JobError
from importer.forms import Form
from importer.import_job import Request
from importer.lease import storable
from importer.store import Store


def request_of(
    db: Database, path: Path, form: Form, options: Mapping[str, Any], *, file_name: str | None = None
) -> Request:
    """Open the workbook, copy it into the store, and return what is asked; `options` are fields of `Request`.

    Raises:
        WorkbookError: the file is no workbook that can be read.
        StoreError: the file cannot be copied into the store.
        JobError: an option that no job can have.
    """
    _check(options)
    with opened(path, db.settings, form, name=file_name):
        pass
    stored = Store(db.settings.store).put(path)
    return Request(
        definition=form.to_dict(),
        form_name=form.name,
        digest=form.digest,
        file_name=storable(file_name or path.name),
        content_hash=stored.content_hash,
        size_bytes=stored.size_bytes,
        max_attempts=db.settings.imports.max_attempts,
        **options,
    )


def _check(options: Mapping[str, Any]) -> None:
    batch_rows, priority, key = options.get("batch_rows"), options.get("priority"), options.get("key")
    if batch_rows is not None and not 0 < batch_rows < 2**31:
        raise JobError(f"batch_rows must be a number of rows from 1, not {batch_rows}")
    if priority is not None and priority not in range(4):
        raise JobError(f"priority must be 0 (first) to 3 (last), not {priority}")
    if key is not None and (not key or storable(key) != key):
        raise JobError("key must be a text of 1 to 2,000 characters that PostgreSQL can store")
