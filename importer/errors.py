"""The error tree: broken code or a broken world. Wrong data is never here, it is a `Fault`.

```
ImporterError
├── SettingsError              a setting that cannot be used; names the setting
├── FormError                  a form that is no valid form; all problems at once
├── WorkbookError              a workbook that cannot be imported at all; carries a reason
├── StoreError                 the store of workbooks cannot be read or written (try again)
│   └── ContentChangedError        a workbook in the store is not what its hash says
├── DatabaseError              the database (try again, unless a subclass says otherwise)
│   ├── DatabaseUnavailableError   down, unreachable, refused the login
│   ├── DatabaseTooOldError        PostgreSQL older than 14
│   ├── NotMigratedError           the schema is missing, older or newer than this code
│   └── MigrationError             a landed migration was edited, or one failed
├── LeaseLostError             somebody else holds the row now; nothing was written
├── TargetError                the form's table does not fit the form
├── ExpressionError            a condition or template that cannot be worked out; names the variable that is missing
├── WorkflowError
│   ├── WorkflowDefinitionError    a workflow that is no valid workflow; all problems at once
│   ├── WorkflowNotFoundError      no workflow or instance of this name or number
│   ├── WorkflowStateError         the status of the instance does not allow it
│   ├── WorkflowConflictError      the same key with other input
│   ├── NodeError                  a node of an instance could not do its work; names instance and node
│   ├── NodeTypeMissingError       nobody here knows the type of a node; the instance waits
│   └── ApprovalError              an answer that is not taken: twice, late, by another, no such choice
├── TaskError
│   ├── TaskNotFoundError          no run has this id, no task this name
│   ├── TaskInputError             the input is not what the task asks for
│   ├── TaskStateError             the run's status does not allow it
│   ├── TaskConflictError          the same key with other input
│   ├── TaskCancelledError         the run was cancelled while it ran
│   └── TaskRefusedError           raised by a task: trying again changes nothing
├── TriggerError                a trigger that is no valid trigger, or makes a loop
│   └── TriggerNotFoundError       no trigger has this name
├── OutboxError                 a message or route of the outbox that is not there, or not as asked
├── RequestError                an address outside did not give what was asked
│   └── RequestRefusedError        it may not be asked: its scheme, or where it leads
└── JobError
    ├── JobNotFoundError           no job has this id
    ├── JobStateError              the job's status does not allow it
    ├── JobConflictError           the same key, or the same content, with other input
    ├── CursorBeyondRowsError      the sheet has fewer rows than were dealt with before
    └── FormDisabledError          the form takes no imports at present
```

Each message says what, where and what to do next; attributes carry what a program acts on. Nobody matches message text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

Reason = Literal[
    "not_a_spreadsheet",
    "empty_file",
    "encrypted",
    "corrupt",
    "encoding",
    "unsafe_xml",
    "too_large",
    "unsupported_format",
    "no_header",
    "missing_column",
    "duplicate_column",
    "unexpected_column",
    "sheet_not_found",
]


class ImporterError(Exception):
    """Any error this package raises on purpose."""


class SettingsError(ImporterError):
    """A setting cannot be used; `setting` names it."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"setting {setting}: {message}")
        self.setting = setting


class FormError(ImporterError):
    """A form is no valid form; `problems` lists everything that is wrong with it."""

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        listed = "; ".join(problems)
        super().__init__(f"form {name}: {listed}" if name else f"form: {listed}")
        self.name = name
        self.problems = tuple(problems)


class WorkbookError(ImporterError):
    """A workbook cannot be imported at all; `reason` is one of a closed set of words."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason

    def __reduce__(self) -> tuple[type[WorkbookError], tuple[Reason, str]]:
        """Pickle with both arguments (a reader may run in a child process)."""
        return type(self), (self.reason, str(self))


class StoreError(ImporterError):
    """The store of workbooks cannot be read or written: unreachable, full, or a file of it is missing."""


class ContentChangedError(StoreError):
    """A workbook in the store is not what its hash says; trying again changes nothing."""


class DatabaseError(ImporterError):
    """The database did not do what it was asked for a reason outside the data."""


class DatabaseUnavailableError(DatabaseError):
    """No connection: the server is down, unreachable, or refused the login."""


class DatabaseTooOldError(DatabaseError):
    """The server is older than PostgreSQL 14."""


class NotMigratedError(DatabaseError):
    """The schema of the database is missing, older or newer than this code expects."""


class MigrationError(DatabaseError):
    """A migration that landed was edited since, or one failed and was rolled back."""


class LeaseLostError(ImporterError):
    """The row is no longer held under this fence: nothing was written, and nothing may be."""

    def __init__(self, table: str, id: int, fence: int) -> None:  # noqa: A002 - the column's name
        super().__init__(
            f"{table} {id}: the lease with fence {fence} is lost (taken over, cancelled or ended); nothing was written"
        )
        self.table = table
        self.id = id
        self.fence = fence


class TargetError(ImporterError):
    """The form's table is missing or does not fit the form; `problems` lists every difference."""

    def __init__(self, table: str, problems: Sequence[str]) -> None:
        super().__init__(f"table {table}: " + "; ".join(problems))
        self.table = table
        self.problems = tuple(problems)


class JobError(ImporterError):
    """An import job cannot be submitted, found, cancelled or retried as asked."""


class JobNotFoundError(JobError):
    """No import job has this id."""

    def __init__(self, id: int) -> None:  # noqa: A002 - the column's name
        super().__init__(f"there is no import job {id}")
        self.id = id


class JobStateError(JobError):
    """The status of the job does not allow what was asked; `id` and `status` say which and what."""

    def __init__(self, id: int, status: str, message: str) -> None:  # noqa: A002 - the column's name
        super().__init__(f"import job {id} is {status}: {message}")
        self.id = id
        self.status = status


class JobConflictError(JobError):
    """The same key or content came before with other input; `id` is the earlier job, `differences` what differs."""

    def __init__(
        self,
        id: int,  # noqa: A002 - the column's name
        message: str,
        differences: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.id = id
        self.differences = tuple(differences)


class CursorBeyondRowsError(JobError):
    """The sheet has fewer rows than were dealt with before, so it cannot be the same content."""


class FormDisabledError(JobError):
    """The form is disabled: nothing may be submitted into it until it is enabled again."""


class ExpressionError(ImporterError):
    """A condition or template cannot be worked out; `variable` is the one that is missing, if one is."""

    def __init__(self, expression: str, message: str, *, variable: str | None = None) -> None:
        super().__init__(f"{expression!r}: {message}")
        self.expression = expression
        self.variable = variable


class WorkflowError(ImporterError):
    """A workflow cannot be stored, started, moved or found as asked."""


class WorkflowDefinitionError(WorkflowError):
    """A workflow is no valid workflow; `problems` lists everything that is wrong with it."""

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        listed = "; ".join(problems)
        super().__init__(f"workflow {name}: {listed}" if name else f"workflow: {listed}")
        self.name = name
        self.problems = tuple(problems)


class WorkflowNotFoundError(WorkflowError):
    """No workflow has this name, or no instance or approval this number."""


class WorkflowStateError(WorkflowError):
    """The status of the instance does not allow what was asked; `id` and `status` say which and what."""

    def __init__(self, id: int, status: str, message: str) -> None:  # noqa: A002 - the column's name
        super().__init__(f"workflow instance {id} is {status}: {message}")
        self.id = id
        self.status = status


class WorkflowConflictError(WorkflowError):
    """The same key came before with other input; `id` is the earlier instance, `differences` what differs."""

    def __init__(self, id: int, message: str, differences: Sequence[str]) -> None:  # noqa: A002 - the column's name
        super().__init__(message)
        self.id = id
        self.differences = tuple(differences)


class NodeError(WorkflowError):
    """A node could not do its work; nothing of its firing was written."""

    def __init__(self, instance: int, node: str, message: str) -> None:
        super().__init__(f"workflow instance {instance}, node {node}: {message}")
        self.instance = instance
        self.node = node


class NodeTypeMissingError(WorkflowError):
    """The type of a node is not known here, so that the instance waits for a worker that knows it."""

    def __init__(self, node: str, type: str) -> None:  # noqa: A002 - the field's name
        super().__init__(
            f"node {node} is of the type {type!r}, which is not known here; the instance waits for a worker that "
            "registers this type"
        )
        self.node = node
        self.type = type


class ApprovalError(WorkflowError):
    """An answer is not taken; nothing changed. `answered_by` and `answered_at` tell of the one that stands."""

    def __init__(
        self,
        id: int,  # noqa: A002 - the column's name
        message: str,
        *,
        answered_by: str | None = None,
        answered_at: datetime | None = None,
    ) -> None:
        super().__init__(f"approval {id}: {message}")
        self.id = id
        self.answered_by = answered_by
        self.answered_at = answered_at


class TaskError(ImporterError):
    """A task run cannot be enqueued, found, woken, cancelled or retried as asked."""


class TaskNotFoundError(TaskError):
    """No task run has this id, or no task this name here."""


class TaskInputError(TaskError):
    """The input is not what the task's model asks for; nothing was enqueued."""


class TaskStateError(TaskError):
    """The status of the run does not allow what was asked; `id` and `status` say which and what."""

    def __init__(self, id: int, status: str, message: str) -> None:  # noqa: A002 - the column's name
        super().__init__(f"task run {id} is {status}: {message}")
        self.id = id
        self.status = status


class TaskConflictError(TaskError):
    """The same key came before with other input; `id` is the earlier run, `differences` what differs."""

    def __init__(self, id: int, message: str, differences: Sequence[str]) -> None:  # noqa: A002 - the column's name
        super().__init__(message)
        self.id = id
        self.differences = tuple(differences)


class TaskCancelledError(TaskError):
    """The run was cancelled while it ran; nothing more of it is written."""

    def __init__(self, id: int) -> None:  # noqa: A002 - the column's name
        super().__init__(f"task run {id} was cancelled")
        self.id = id


class TaskRefusedError(TaskError):
    """Raised by a task itself: the run fails at once, since trying again changes nothing."""


class TriggerError(ImporterError):
    """A trigger is no valid trigger, or cannot be changed as asked; `name` names it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"trigger {name}: {message}" if name else f"trigger: {message}")
        self.name = name


class TriggerNotFoundError(TriggerError):
    """No trigger has this name."""


class RequestError(ImporterError):
    """An address outside did not answer, or not as it should; the message never holds headers or a query."""


class RequestRefusedError(RequestError):
    """An address may not be asked: it is not http(s), or leads to a private or local machine."""


class OutboxError(ImporterError):
    """A message or route of the outbox is not there, or cannot be changed as asked."""
