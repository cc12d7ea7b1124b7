"""How a form stands: its newest import, how old that is, and whether the table still holds what it put in."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from importer import import_job, import_run
from importer.db import Database
from importer.forms import Form
from importer.import_job import Job
from importer.target import Target, count_rows

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, kw_only=True)
class FormState:
    """The newest imports of a form, as of one look."""

    #: The newest job that came to its end.
    newest: Job | None
    #: The newest job that put rows in, or had none to put in.
    loaded: Job | None
    #: How long ago that one ended, by the database's clock.
    age: dt.timedelta | None
    #: Rows of that job in the form's table; None where the table is gone.
    table_rows: int | None


def form_state(form: Form, *, db: Database) -> FormState:
    """Read how a form stands; counting the rows of its newest import is the only work.

    Raises:
        DatabaseError: the database does not answer, or the table may not be read.
    """
    with db.connection() as conn:
        newest = import_run.newest_ended(conn, form.name)
        loaded = import_run.newest_ended(conn, form.name, loaded=True)
        if newest is None or loaded is None:
            return FormState(
                newest=None if newest is None else import_job.job(conn, newest[0]),
                loaded=None,
                age=None,
                table_rows=None,
            )
        return FormState(
            newest=import_job.job(conn, newest[0]),
            loaded=import_job.job(conn, loaded[0]),
            age=loaded[1],
            table_rows=count_rows(conn, Target.of(form.to_dict()), job_id=loaded[0]),
        )


def failed_rows_allowed(form: Form, total_rows: int) -> int:
    """How many rows with faults an import of a form may have before somebody should look: its `stop_at`, else none."""
    stop_at = form.on_fault.get("stop_at", 0) if isinstance(form.on_fault, Mapping) else 0
    if isinstance(stop_at, str) and stop_at.endswith("%"):
        return math.floor(total_rows * float(stop_at.removesuffix("%")) / 100)
    return int(stop_at)


def fresh_within(form: Form) -> dt.timedelta | None:
    """How old the newest import of a form may be; None: it does not say."""
    if form.fresh_within is None:
        return None
    found = re.fullmatch(r"(\d+)([smhdw])", form.fresh_within)
    assert found is not None  # a form holds nothing else
    return dt.timedelta(**{_UNITS[found[2]]: int(found[1])})
