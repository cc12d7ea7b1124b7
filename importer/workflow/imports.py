"""How a workflow waits for an import: it submits or finds a job, and the outbox says when the job has ended.

The node locks the job before it looks at it. A job that is open then cannot end before the wait is written, so the
message about its end finds the waiting token; a job that has ended lets the token go on at once. A wait knows the fence
the job had: a message about an earlier end of the same job (before it was taken up again) is not for it.

Forms and files cross as plain rows: a form is the stored one of its name, a file goes into the store by its content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from importer import expressions, import_job
from importer.db import Connection, statements
from importer.errors import WorkflowError
from importer.import_job import ENDED, Request
from importer.settings import Settings
from importer.store import Store
from importer.workflow.configs import IMPORT_OUTCOMES, Import

_ST = statements("workflow")


@dataclass(frozen=True, kw_only=True)
class Held:
    """An import job that cannot end before this transaction does."""

    job_id: int
    fence: int
    ended: bool
    #: This call made the job.
    own: bool


@dataclass(frozen=True, kw_only=True)
class Result:
    """How an import ended, for its node."""

    outcome: str
    values: dict[str, Any]


def submit(
    conn: Connection, config: pydantic.BaseModel | None, variables: Mapping[str, Any], *, settings: Settings
) -> Held:
    """Submit the job of an import node, or find the one it names, and hold it in the caller's transaction.

    Raises:
        ExpressionError, StoreError, JobError: the file, the form or the job is not there, or may not be used so.
    """
    assert isinstance(config, Import)
    own = False
    if config.job is not None:
        job_id = _number(expressions.render(config.job, variables) if isinstance(config.job, str) else config.job)
    else:
        job = import_job.submit(conn, _request(conn, config, variables, settings))
        job_id, own = job.id, job.submitted_before is None
    row = conn.execute(_ST["hold_job"], {"id": job_id}).fetchone()
    if row is None:
        raise WorkflowError(f"there is no import job {job_id}")
    return Held(job_id=row["id"], fence=row["fence"], ended=row["status"] in ENDED, own=own)


def result(conn: Connection, job_id: int, config: pydantic.BaseModel | None) -> Result:
    """Say how a job that has ended came out."""
    return told(import_job.announcement(conn, job_id), config)


def told(announced: Mapping[str, Any], config: pydantic.BaseModel | None) -> Result:
    """Say what the announcement of an end means for a node: its outcome, and the variable of its counts."""
    assert isinstance(config, Import)
    outcome = str(announced["status"])
    assert outcome in IMPORT_OUTCOMES
    names = (
        "status", "total_rows", "success_rows", "failed_rows", "skipped_rows", "reason", "error", "file_name", "form",
    )  # fmt: skip
    values = {"job": announced["job_id"], **{name: announced[name] for name in names}}
    return Result(outcome=outcome, values={config.into: values})


def put_files(files: Mapping[str, Any], *, settings: Settings) -> dict[str, dict[str, Any]]:
    """Copy files into the store; each becomes a variable that an import node takes as its file.

    Raises: StoreError.
    """
    store = Store(settings.store)
    variables = {}
    for name, path in files.items():
        stored = store.put(path)
        variables[name] = {
            "file_name": Path(path).name,
            "content_hash": stored.content_hash,
            "size_bytes": stored.size_bytes,
        }
    return variables


def _request(conn: Connection, config: Import, variables: Mapping[str, Any], settings: Settings) -> Request:
    assert config.file is not None
    assert config.form is not None
    form = expressions.as_text(expressions.render(config.form, variables))
    stored_form = conn.execute(_ST["newest_form"], {"name": form}).fetchone()
    if stored_form is None:
        raise WorkflowError(f"no form {form!r} is stored in the database; store it with: rowlease forms store FILE")
    file = _file(expressions.render(config.file, variables), config.file, settings)
    sheet = None if config.sheet is None else expressions.as_text(expressions.render(config.sheet, variables))
    return Request(
        definition=stored_form["definition"],
        form_name=stored_form["name"],
        digest=stored_form["digest"],
        sheet=sheet,
        force=config.force,
        replace=config.replace,
        create_table=config.create_table,
        priority=config.priority,
        max_attempts=settings.imports.max_attempts,
        **file,
    )


def _file(said: object, template: str, settings: Settings) -> dict[str, Any]:
    match said:
        case str():
            return put_files({"file": said}, settings=settings)["file"]
        case {"file_name": str(name), "content_hash": str(content_hash), "size_bytes": int(size)}:
            Store(settings.store).path(content_hash)
            return {"file_name": name, "content_hash": content_hash, "size_bytes": size}
        case _:
            raise WorkflowError(f"{template} is neither a path nor a file given at the start")


def _number(said: object) -> int:
    if isinstance(said, Mapping):
        said = said.get("job")
    if isinstance(said, bool) or not isinstance(said, int):
        raise WorkflowError(f"{said!r} is not the number of an import job")
    return said
