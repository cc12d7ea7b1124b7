"""What goes back to the sender of a workbook: the template of a form, the faults of a job in their own workbook."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path

from importer import import_chain, import_job, inbox
from importer.batch.door import database_of, faults, id_of
from importer.batch.opened import opened
from importer.db import Database
from importer.errors import StoreError
from importer.forms import Form
from importer.forms.fault_workbook import Sent, write_fault_workbook
from importer.forms.template import template as template_of
from importer.import_job import Job
from importer.sender import Marked, write_template
from importer.store import Store
from importer.target import Target, names

#: Names of a lookup that a dropdown offers.
_MOST_CHOICES = 5_000


def template(form: Form, path: str | os.PathLike[str], *, db: Database | None = None) -> Path:
    """Write an empty workbook for senders, with the form's version in its hidden stamp when the database has the form.

    Columns that are looked up get a dropdown of what may be chosen now.

    `form.template(path)` does the same without a database.
    """
    with database_of(db) as database, database.connection() as conn:
        version = import_chain.version_of(conn, name=form.name, digest=form.digest)
        target = Target.of(form.to_dict())
        known = {column.name: names(conn, column, limit=_MOST_CHOICES + 1) for column in target.looked_up}
    # A dropdown refuses what it does not offer, so it offers all or there is none.
    choices = {name: offered for name, offered in known.items() if len(offered) <= _MOST_CHOICES}
    write_template(path, template_of(form, version=version, choices=choices))
    return Path(path)


def fault_workbook(
    job: Job | int, path: str | os.PathLike[str], *, db: Database | None = None, only_failed: bool = False
) -> Marked:
    """Write the workbook of a job with its bad cells marked: the sender's own, as it was sent.

    Bad cells are coloured, each with a note; a sheet lists them with links; a hidden stamp names the job, so that the
    corrected workbook is known when it comes back. `only_failed`: a small workbook with the failed rows alone. Returns
    where it is, how many notes it has, and what of the sender's workbook could not be kept.

    Raises:
        JobNotFoundError: there is no such job.
        StoreError: its workbook is not in the store any more.
        WorkbookError: its workbook cannot be read, or is not written in UTF-8.
    """
    with database_of(db) as database:
        with database.connection() as conn:
            found = import_job.job(conn, id_of(job))
            form = Form.from_dict(import_chain.form_of(conn, found.id).definition)
        sent = Sent(
            path=Store(database.settings.store).path(found.content_hash),
            file_name=found.file_name,
            form=dataclasses.replace(form, sheet=found.sheet) if found.sheet is not None else form,
            version=found.form_version,
            job=found.id,
            content_hash=found.content_hash,
            opening=lambda path: opened(path, database.settings, form, name=found.file_name),
        )
        return write_fault_workbook(sent, path, faults(found, db=database), only_failed=only_failed)


def put_fault_workbook(job: Job | int, *, db: Database | None = None) -> str:
    """Write the workbook of a job with its bad cells marked into the folder `faults` of the inbox; return where it is.

    There its sender finds it; nothing is taken in from that folder, so the corrected workbook is put where the first
    one was.

    Raises:
        StoreError: the inbox cannot be written, or the job's workbook is not in the store any more.
        Everything that `fault_workbook` raises.
    """
    with database_of(db) as database:
        with database.connection() as conn:
            found = import_job.job(conn, id_of(job))
        place = inbox.folder(database.settings) / inbox.FAULTS_FOLDER
        target = place / f"{Path(found.file_name).stem}_faults_{found.id}.xlsx"
        with tempfile.TemporaryDirectory() as own:
            marked = fault_workbook(found, Path(own) / "faults.xlsx", db=database)
            try:
                place.mkdir(parents=True, exist_ok=True)
                target.write_bytes(marked.path.read_bytes())
            except OSError as error:
                raise StoreError(f"the inbox cannot be written: {error.strerror or error}") from error
        return str(target)
