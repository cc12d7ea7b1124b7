"""Submitting a workbook that stands at an address."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from importer import import_address, import_job
from importer.batch.request import request_of
from importer.db import Connection, Database, dict_rows, translated
from importer.forms import Form
from importer.import_job import Job


def submit_address(
    db: Database, url: str, form: Form, options: Mapping[str, Any], *, conn: Connection | None = None
) -> Job:
    """Bring a workbook and queue it; the job that its address stands for comes back with `submitted_before`.

    Raises:
        RequestRefusedError: the address may not be asked.
        RequestError: the server did not give the file.
        Everything that `submit` raises.
    """
    private = db.settings.private_addresses
    said = import_address.ask(url, private=private)
    if not options["force"]:
        with _connection(db, conn) as own:
            before = import_address.job_before(own, url, form.name, said)
            if before is not None:
                found = import_job.job(own, before)
                return dataclasses.replace(found, submitted_before=found)
    with tempfile.TemporaryDirectory(prefix="rowlease-") as folder:
        path = Path(folder) / "workbook"
        brought = import_address.bring(url, path, private=private)
        request = request_of(db, path, form, options, file_name=import_address.file_name(url))
    with _connection(db, conn) as own, own.transaction():
        job = import_job.submit(own, request)
        import_address.remember(own, url, form.name, brought, job.id)
        return job


@contextmanager
def _connection(db: Database, conn: Connection | None) -> Iterator[Connection]:
    if conn is None:
        with db.connection() as own:
            yield own
    else:
        with translated(db.label), dict_rows(conn) as own:
            yield own
