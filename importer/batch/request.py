"""What every submission does before the database is asked: look at the file, copy it, write down what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer.batch.opened import opened
from importer.db import Database
from importer.forms import Form
from importer.import_job import Request
from importer.store import Store


def request_of(
    db: Database, path: Path, form: Form, options: Mapping[str, Any], *, file_name: str | None = None
) -> Request:
    """Open the workbook, copy it into the store, and return what is asked; `options` are fields of `Request`.

    Raises:
        WorkbookError: the file is no workbook that can be read.
        StoreError: the file cannot be copied into the store.
    """
    with opened(path, db.settings):
        pass
    stored = Store(db.settings.store).put(path)
    return Request(
        definition=form.to_dict(),
        form_name=form.name,
        digest=form.digest,
        file_name=file_name or path.name,
        content_hash=stored.content_hash,
        size_bytes=stored.size_bytes,
        max_attempts=db.settings.imports.max_attempts,
        **options,
    )
