"""Workbooks of the inbox become import jobs: each whole file once, by the form its folder or its name asks for.

```
inbox ──files──► ledger (`importer.inbox`) ──whole──► form? ──► workbook? ──► store ──► one transaction: job + decision
```

A file belongs to the form whose `inbox` pattern it matches, else to the form that its first folder is named after. What
no form takes, and what is no workbook, is written into the ledger with a sentence and said once.
"""

from __future__ import annotations

import datetime as dt
import errno
import fnmatch
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from importer import import_job, inbox
from importer.batch.request import request_of
from importer.db import Database
from importer.errors import FormDisabledError, JobConflictError, StoreError, WorkbookError
from importer.forms import Form
from importer.import_job import Job
from importer.inbox import File

#: Reasons for which a file may yet become a workbook while it is being written.
_MAY_GROW = frozenset({"empty_file", "corrupt", "not_a_spreadsheet"})


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A file of the inbox that has an import job now."""

    #: Below the inbox.
    path: str
    job: Job


@dataclass(frozen=True, kw_only=True)
class TurnedAway:
    """A file of the inbox that became no import job, and why; said once."""

    path: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """What one look at the inbox brought."""

    taken: tuple[Taken, ...] = ()
    turned_away: tuple[TurnedAway, ...] = ()
    #: Files that may still be written, or were left for the next look.
    waiting: int = 0


@dataclass
class _Look:
    taken: list[Taken] = field(default_factory=list)
    turned_away: list[TurnedAway] = field(default_factory=list)
    waiting: int = 0


def take_in(db: Database, forms: Sequence[Form], *, within: dt.timedelta | None = None, wait: bool = False) -> Arrivals:
    """Look at the inbox once and submit each whole workbook; what is written stands in the ledger.

    Safe to run by several at once, and to break off anywhere: a file is decided about in the transaction that makes
    its job. `within`: leave the rest for the next look after this time. `wait`: stay for the settle time when files
    are new, and look again.

    Raises:
        StoreError: the inbox cannot be read, or the store cannot be written; what was taken before stands.
        DatabaseError: the same of the database.
    """
    began = time.monotonic()
    settle = db.settings.inbox_settle
    look = _look(db, forms, began, within)
    # A moment more than the settle time, so that the first look has surely settled.
    if (
        wait
        and look.waiting
        and (within is None or time.monotonic() - began + settle.total_seconds() < within.total_seconds())
    ):
        time.sleep(settle.total_seconds() + 0.05)
        again = _look(db, forms, began, within)
        look = _Look(look.taken + again.taken, look.turned_away + again.turned_away, again.waiting)
    return Arrivals(taken=tuple(look.taken), turned_away=tuple(look.turned_away), waiting=look.waiting)


def _look(db: Database, forms: Sequence[Form], began: float, within: dt.timedelta | None) -> _Look:
    place = inbox.folder(db.settings)
    known = forms_known(forms)
    found = list(inbox.files(place))
    look = _Look()
    if not found:
        return look
    with db.connection() as conn:
        undecided = inbox.undecided(conn, place, found, settle=db.settings.inbox_settle, forms_known=known)
    for seen in undecided:
        late = within is not None and time.monotonic() - began > within.total_seconds()
        if late or not seen.settled:
            look.waiting += 1
            continue
        outcome = _Arrival(db, place, seen.file, known).settle(forms, patience_over=seen.patience_over)
        match outcome:
            case Taken():
                look.taken.append(outcome)
            case TurnedAway():
                look.turned_away.append(outcome)
            case False:
                look.waiting += 1
    return look


def forms_known(forms: Sequence[Form]) -> str:
    """A word for which forms there are and what they take; it changes when a file might be taken that was not."""
    known = json.dumps(sorted([form.name, form.inbox] for form in forms))
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def forms_of(path: str, forms: Sequence[Form]) -> list[Form]:
    """The forms that a file of the inbox is for: by pattern, else by the name of its first folder."""
    by_pattern = [form for form in forms if form.inbox and fnmatch.fnmatchcase(path, form.inbox)]
    if by_pattern:
        return by_pattern
    first, _, rest = path.partition("/")
    return [form for form in forms if rest and form.name == first and not form.inbox]


@dataclass(frozen=True)
class _Arrival:
    """One settled file and the decision about it: `Taken`, `TurnedAway`, False (later), None (somebody else's)."""

    db: Database
    place: Path
    file: File
    known: str

    def settle(self, forms: Sequence[Form], *, patience_over: bool) -> Taken | TurnedAway | bool | None:
        takers = forms_of(self.file.path, forms)
        if len(takers) != 1:
            return self._turn_away("unmatched", _no_form(self.file.path, takers, forms))
        try:
            with _local(self.file) as (path, name):
                options = {"create_table": self.db.settings.create_tables}
                request = request_of(self.db, path, takers[0], options, file_name=name)
        except WorkbookError as error:
            if error.reason in _MAY_GROW and not patience_over:
                return False
            return self._turn_away("refused", str(error))
        except OSError as error:
            if isinstance(error, FileNotFoundError) or not inbox.unchanged(self.file):
                return False
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise StoreError(f"no room to fetch {self.file.path} from the inbox: {error.strerror}") from error
            return self._turn_away("refused", f"the file cannot be read: {error.strerror or error}")
        if not inbox.unchanged(self.file):
            return False
        return self._submit(request)

    def _submit(self, request: import_job.Request) -> Taken | TurnedAway | None:
        with self.db.connection() as conn, conn.transaction():
            if not inbox.lock_file(conn, self.place, self.file, forms_known=self.known):
                return None
            try:
                job = import_job.submit(conn, request)
            except (JobConflictError, FormDisabledError) as error:
                outcome: inbox.Outcome = "unmatched" if isinstance(error, FormDisabledError) else "refused"
                inbox.decide(conn, self.place, self.file, outcome, message=str(error), forms_known=self.known)
                return TurnedAway(path=self.file.path, message=str(error))
            inbox.decide(
                conn,
                self.place,
                self.file,
                "taken",
                content_hash=request.content_hash,
                form=request.form_name,
                job_id=job.id,
                message=None if job.submitted_before is None else f"the content came before as import job {job.id}",
            )
            return Taken(path=self.file.path, job=job)

    def _turn_away(self, outcome: inbox.Outcome, message: str) -> TurnedAway | None:
        with self.db.connection() as conn, conn.transaction():
            if not inbox.lock_file(conn, self.place, self.file, forms_known=self.known):
                return None
            inbox.decide(conn, self.place, self.file, outcome, message=message, forms_known=self.known)
        return TurnedAway(path=self.file.path, message=message)


def _no_form(path: str, takers: Sequence[Form], forms: Sequence[Form]) -> str:
    if takers:
        return f"{path} is for several forms: {', '.join(form.name for form in takers)}; their inbox patterns overlap"
    ways = ", ".join(form.inbox or f"{form.name}/" for form in forms) or "none is known"
    return f"{path} is for no form; the forms take: {ways}"


@contextmanager
def _local(file: File) -> Iterator[tuple[Path, str]]:
    """Give the file as one of the local file system, and its name; a bucket's is fetched for as long as it is needed.

    Raises:
        OSError: it cannot be read.
    """
    name = file.path.rpartition("/")[2]
    with file.place.open("rb") as source:
        if type(file.place).__module__.startswith("pathlib") or str(file.place) == getattr(file.place, "path", None):
            source.read(1)
            yield Path(file.place), name
            return
        with tempfile.NamedTemporaryFile(suffix=f"-{name}"[-64:]) as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            yield Path(copy.name), name
