"""What a notebook, a command line and Dagster call: start, look, answer, cancel, retry."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from importer import import_job
from importer.db import Connection, Database, connect, dict_rows
from importer.errors import WorkflowNotFoundError
from importer.workflow import imports, instances, moving, seen
from importer.workflow.definition import Workflow
from importer.workflow.firing import ST, At
from importer.workflow.seen import Approval, Approvals, Instance, Instances, StoredWorkflow, Why


class FormData(Protocol):
    """A form as this room sees it: a name, a digest, and plain data (`importer.Form` is one)."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def digest(self) -> str:
        """The hash of its definition."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


def store_workflow(workflow: Workflow, *, db: Database | None = None) -> StoredWorkflow:
    """Store a workflow, so that it can be started by its name; one that differs becomes the next version."""
    with _connection(db) as conn:
        version = instances.store(conn, workflow)
        return next(each for each in seen.versions(conn, workflow.name) if each.version == version)


def stored_workflows(name: str | None = None, *, db: Database | None = None) -> list[StoredWorkflow]:
    """Read the stored versions, the newest of each workflow first."""
    with _connection(db) as conn:
        return seen.versions(conn, name)


def enable_workflow(
    name: str, *, enabled: bool = True, version: int | None = None, db: Database | None = None
) -> list[StoredWorkflow]:
    """Let a version of a workflow (all when none is said) start instances, or not; those that run go on.

    Raises:
        WorkflowNotFoundError: there is no such workflow or version.
    """
    with _connection(db) as conn:
        params = {"name": name, "version": version, "enabled": enabled}
        if not conn.execute(ST["enable"], params).fetchall():
            raise WorkflowNotFoundError(f"there is no workflow {name!r}" + (f" version {version}" if version else ""))
        return seen.versions(conn, name)


def start(
    workflow: Workflow | str,
    variables: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    files: Mapping[str, str | os.PathLike[str]] | None = None,
    forms: Iterable[FormData] = (),
    db: Database | None = None,
    conn: Connection | None = None,
) -> Instance:
    """Start an instance of a workflow and move it until every token waits.

    Args:
        workflow: a workflow, which is stored if it is not, or the name of a stored one (its newest enabled version).
        variables: values of JSON by name.
        key: a name of the caller's; the same key with the same variables is the same instance.
        files: workbooks by the name of the variable that stands for them; copied into the store, so that any worker
            can import them.
        forms: forms that its imports name; stored if they are not.
        db: the database; else the one of `connect()`.
        conn: start in this connection's transaction instead (psycopg 3); it counts once that commits.

    Raises:
        WorkflowNotFoundError: no workflow of this name is stored and enabled.
        WorkflowConflictError: the key came before with other variables.
        NodeError: a node on the way could not do its work; nothing was started.
        StoreError: a file cannot be copied into the store.
    """
    with _database(db) as database:
        given = {**(variables or {}), **imports.put_files(files or {}, settings=database.settings)}

        def begin(own: Connection) -> Instance:
            with own.transaction():
                for form in forms:
                    import_job.store_form(own, form.to_dict(), name=form.name, digest=form.digest)
                if isinstance(workflow, Workflow):
                    name, version = workflow.name, instances.store(own, workflow)
                else:
                    name, version = workflow, instances.newest(own, workflow)[0]
                id_ = instances.start(
                    own, name=name, version=version, variables=given, key=key, settings=database.settings
                )
                return seen.instance(own, id_)

        if conn is not None:
            with dict_rows(conn) as own:
                return begin(own)
        with database.connection() as pooled:
            return begin(pooled)


def workflows(
    *, workflow: str | None = None, status: str | None = None, limit: int | None = None, db: Database | None = None
) -> Instances:
    """Read workflow instances, newest first, with what they wait for; a table in a notebook."""
    with _connection(db) as conn:
        return seen.instances(conn, workflow=workflow, status=status, limit=limit)


def workflow(id: int | Instance, *, db: Database | None = None) -> Instance:  # noqa: A002 - a name of the front door
    """Read one instance with its history; in a notebook a diagram with the tokens marked.

    Raises:
        WorkflowNotFoundError: there is no such instance.
    """
    with _connection(db) as conn:
        return seen.instance(conn, _id(id))


def why(id: int | Instance, *, db: Database | None = None) -> Why:  # noqa: A002 - a name of the front door
    """Say why an instance waits: for what, since and until when, who may act, and whether a worker could serve it.

    Raises:
        WorkflowNotFoundError: there is no such instance.
    """
    with _connection(db) as conn:
        return seen.why(conn, _id(id))


def approvals(
    who: str | None = None,
    *,
    status: str | None = "open",
    instance: int | Instance | None = None,
    db: Database | None = None,
) -> Approvals:
    """Read approvals, open ones unless said otherwise, the oldest first; `who` leaves those this person may answer."""
    with _connection(db) as conn:
        return seen.approvals(conn, who=who, status=status, instance_id=None if instance is None else _id(instance))


def answer(
    approval: int | Approval,
    choice: str,
    *,
    by: str,
    note: str | None = None,
    db: Database | None = None,
    at: At = lambda _point: None,
) -> Instance:
    """Answer an approval; the instance moves on in the same transaction, and comes back as it then stands.

    `by` says who answers and is believed; who may call this is for the application to guard.

    Raises:
        ApprovalError: it was answered (by whom and when is said), is over, is asked of others, or has no such choice.
        NodeError: a node after it could not do its work; the approval is open as before.
        WorkflowNotFoundError: there is no such approval.
    """
    with _database(db) as database, database.connection() as conn:
        id_ = approval.id if isinstance(approval, Approval) else approval
        moving.answer(conn, id_, choice, by=by, note=note, settings=database.settings, at=at)
        (answered,) = seen.approvals(conn, status=None, id=id_)
        return seen.instance(conn, answered.instance)


def cancel_workflow(id: int | Instance, *, by: str | None = None, db: Database | None = None) -> Instance:  # noqa: A002
    """Cancel a running instance with its tokens, timers, approvals, and import jobs of its own that nobody has begun.

    Work done stays; the history says what was cancelled.

    Raises:
        WorkflowNotFoundError, WorkflowStateError: there is no such instance, or it has ended.
    """
    with _database(db) as database, database.connection() as conn:
        instances.cancel(conn, _id(id), by=by, settings=database.settings)
        return seen.instance(conn, _id(id))


def retry_workflow(id: int | Instance, *, db: Database | None = None) -> Instance:  # noqa: A002 - as above
    """Set a failed instance running from where it failed; its other branches go on too.

    Raises:
        WorkflowNotFoundError, WorkflowStateError: there is no such instance, or it has not failed.
    """
    with _database(db) as database, database.connection() as conn:
        instances.retry(conn, _id(id), settings=database.settings)
        return seen.instance(conn, _id(id))


def _id(of: int | Instance) -> int:
    return of.id if isinstance(of, Instance) else of


@contextmanager
def _database(db: Database | None) -> Iterator[Database]:
    """The caller's database, else one of our own for this call."""
    if db is not None:
        yield db
        return
    with connect() as own:
        yield own


@contextmanager
def _connection(db: Database | None) -> Iterator[Connection]:
    with _database(db) as database, database.connection() as conn:
        yield conn
