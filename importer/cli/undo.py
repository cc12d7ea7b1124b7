"""Taking an import back: `undo`."""

from __future__ import annotations

import argparse

import importer as im
from importer.cli.output import fault_values, job_values, print_either, print_faults
from importer.display import count


def run(arguments: argparse.Namespace) -> int:
    """Take an import back; 0 when all of it is, 1 when rows were kept that somebody changed since."""
    with im.connect() as db:
        if arguments.dry_run:
            return _preview(im.undo(arguments.job, db=db, dry_run=True), arguments)
        job = im.undo(arguments.job, db=db, queue=arguments.queue, progress=not (arguments.quiet or arguments.json))
        kept = im.faults(job, db=db) if job.failed_rows else None
    if arguments.queue:
        print_either(job_values(job), f"Job {job.id} waits for a worker to undo it.", as_json=arguments.json)
        return 0
    told = f"{count(job.success_rows, 'row')} of import job {job.parent_id} taken back"
    given = f" ({job.updated_rows:,} of them given back what they held)" if job.updated_rows else ""
    print_either(job_values(job), f"Job {job.id}: {told}{given}, {job.failed_rows:,} kept.", as_json=arguments.json)
    if kept is not None and not arguments.json:
        print_faults(kept, limit=arguments.limit, total=kept.height, more=f"rowlease faults {job.id}")
    return 1 if job.failed_rows else 0


def _preview(preview: im.UndoPreview, arguments: argparse.Namespace) -> int:
    values = {
        "job": preview.job.id,
        "removed": preview.removed,
        "restored": preview.restored,
        "kept": fault_values(preview.kept),
    }
    print_either(values, str(preview), as_json=arguments.json)
    if not arguments.json:
        print_faults(preview.kept, limit=arguments.limit, total=preview.kept.height, more="--json")
    return 1 if preview.kept.height else 0
