"""Running one claimed import job to its end: the only place that reads a workbook and writes a table.

```
                  ┌────────────── this thread ──────────────┐   ┌── Writer ──┐
workbook ─ header ─ prepare ─ (refuse_all: whole sheet) ─ chunks ─ batches ─► fenced batches ─► finish
             │         │                                     │                     │
             └ refused ┴ table does not fit: failed          └ broken: refused     └ lease lost: nothing more is written
```

How it ends:

| what happened | the job |
|---|---|
| the sheet was read to its end | success, partial_success or failed, by its counts |
| the workbook is corrupt, unsafe, too large, lacks a column | failed with the reason; rows and faults go, counts 0 |
| `refuse_all` and a fault | failed; its rows go, the faults stay, counts 0 |
| the table does not fit, stored content changed, cursor beyond the rows | failed; rows and cursor stay |
| store, disk or database unreachable, or a bug | waits again after the retry delay; failed at max attempts |
| interrupted (Ctrl-C, SIGTERM, a notebook's stop) | waits again at once, the attempt not counted |
| the lease was lost (cancelled, taken over) | what the other one made of it; nothing is written here |
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from importer import import_job
from importer.batch.correcting import Correcting
from importer.batch.importing import Importing, Progress, StoppedError
from importer.batch.undoing import Undoing
from importer.batch.writer import At
from importer.db import Database, database_error, errors
from importer.errors import (
    ContentChangedError,
    CursorBeyondRowsError,
    DatabaseError,
    DatabaseUnavailableError,
    FormError,
    ImporterError,
    LeaseLostError,
    TargetError,
    WorkbookError,
)
from importer.import_job import Job, Work
from importer.lease import Lease
from importer.store import Store

#: SQLSTATE classes after which trying again changes nothing: the statement or a name in it, a missing right, a
#: read-only session.
_LASTING_CLASSES = ("0A", "3D", "3F", "42")
_LASTING_STATES = ("25006",)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of a job here: as it stands now, and the error that ended the run, if one did."""

    job: Job
    error: Exception | None = None


def run(
    db: Database,
    lease: Lease,
    *,
    store: Store,
    stopping: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _rows, _failed: None,
    at: At = lambda _point: None,
) -> Ran:
    """Run a claimed job until it ended, failed, was stopped or was lost.

    Errors are returned, and the job's row says the same.
    `stopping` is asked between batches. A `KeyboardInterrupt` (any BaseException that is no Exception) gives the job
    back and goes on.

    Raises:
        DatabaseUnavailableError: the database is away, so the row cannot say anything; the job is due again when its
        lease runs out.
    """
    error: Exception | None = None
    try:
        with db.connection() as conn:
            work = import_job.work(conn, lease)
        _runner(work)(db, lease, work, store=store, stopping=stopping, progress=progress, at=at).all()
    except Exception as raised:  # noqa: BLE001 - every error has its way to the row
        error = _settle(db, lease, raised)
    except BaseException:
        with suppress(ImporterError), db.connection() as conn:
            import_job.hand_back(conn, lease)
        raise
    with db.connection() as conn:
        return Ran(job=import_job.job(conn, lease.id), error=error)


def _runner(work: Work) -> type[Importing]:
    """What kind of work a job is."""
    if work.kind == "undo":
        return Undoing
    return Correcting if work.parent_id is not None or work.only_changes else Importing


def _settle(db: Database, lease: Lease, error: Exception) -> Exception | None:
    """Say in the job's row how the run ended; return the error that the caller should know of."""
    if isinstance(error, LeaseLostError | WorkbookError):
        return error  # the row belongs to somebody else, or says it already
    if isinstance(error, errors.Error):
        cause, error = error, database_error(error, db.label)
        error.__cause__ = cause
    delay = db.settings.imports.retry_delay
    with suppress(LeaseLostError), db.connection() as conn:
        if isinstance(error, StoppedError):
            import_job.hand_back(conn, lease)
            return None
        if _lasts(error):
            import_job.fail(conn, lease, error=str(error))
        else:
            import_job.retry_later(conn, lease, delay=delay, error=_sentence(error))
    return error


def _lasts(error: Exception) -> bool:
    """Whether trying again would change nothing, so that the job has failed."""
    if isinstance(error, DatabaseError) and not isinstance(error, DatabaseUnavailableError):
        state = getattr(error.__cause__, "sqlstate", None) or ""
        return state[:2] in _LASTING_CLASSES or state in _LASTING_STATES
    return isinstance(error, TargetError | ContentChangedError | CursorBeyondRowsError | FormError)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, ImporterError) else f"{type(error).__name__}: {error}"
