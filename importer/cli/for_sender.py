"""What is written for the sender of a workbook: `template`, `faults --xlsx`."""

from __future__ import annotations

import argparse

import importer as im
from importer.cli.output import print_either
from importer.cli.workbooks import find_form
from importer.display import count
from importer.errors import FormError


def template(arguments: argparse.Namespace) -> int:
    """Write the template of a form."""
    if arguments.file.exists() and not arguments.overwrite:
        raise FormError(arguments.form, [f"{arguments.file} is there already; --overwrite writes over it"])
    if arguments.no_database:
        path = find_form(arguments.form, None).template(arguments.file)
    else:
        with im.connect() as db:
            path = im.template(find_form(arguments.form, db), arguments.file, db=db)
    print_either({"path": path}, f"{path} is ready to be filled in.", as_json=arguments.json)
    return 0


def write_fault_workbook(arguments: argparse.Namespace, job: im.Job, db: im.Database) -> int:
    """Write the faults of a job into a workbook for its sender."""
    marked = im.fault_workbook(job, arguments.xlsx, db=db, only_failed=arguments.only_failed)
    line = f"{marked.path} shows {count(marked.notes, 'bad cell')} of import job {job.id}."
    values = {"path": marked.path, "notes": marked.notes, "not_kept": marked.not_kept}
    print_either(values, "\n".join([line, *(f"not kept: {lost}" for lost in marked.not_kept)]), as_json=arguments.json)
    return 0
