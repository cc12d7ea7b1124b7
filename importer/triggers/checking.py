"""Looking at triggers that are due by time, and serving each in one fenced transaction."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from importer import lease as leases
from importer.batch import inbox_ledger, known_forms, take_in
from importer.db import Connection, Database, Jsonb
from importer.errors import DatabaseUnavailableError, ImporterError, LeaseLostError, TaskNotFoundError
from importer.lease import Lease, Leased
from importer.outbox_message import sentence
from importer.task_run.redaction import redacted_text
from importer.triggers import polling
from importer.triggers.definition import CONFIGS, ApiPoll, File, Schedule
from importer.triggers.firing import fire
from importer.triggers.record import ST, Trigger, by_id
from importer.triggers.schedule import next_slot, slot_to_fire

log = logging.getLogger(__name__)

#: Named moments of a check, at which a test may end the process.
At = Callable[[str], None]

#: The longest delay after an error.
LONGEST_DELAY = dt.timedelta(hours=1)
#: So many firings of a schedule or poll are remembered; older slots do not come again.
_KEPT = 1000


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """What a check found."""

    due_at: dt.datetime
    state: Mapping[str, Any]
    #: Slots, each with its variables.
    slots: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def triggers_due(
    db: Database,
    holder: str,
    *,
    limit: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    at: At = lambda _point: None,
) -> int:
    """Look at due triggers until none is due or `limit` were looked at; return how many. The rhythm is that of timers.

    Raises:
        DatabaseUnavailableError: the database is away; what was committed stands.
    """
    with db.connection() as conn:
        leases.fail_exhausted(conn, Leased.TRIGGERS)
    done = 0
    for lease in leases.slices(
        db, Leased.TRIGGERS, holder=holder, rhythm=db.settings.timers, limit=limit, stopping=stopping
    ):
        at("claimed")
        with suppress(LeaseLostError):
            _look(db, lease, at)
        done += 1
    return done


def next_moment_s(conn: Connection) -> float | None:
    """Seconds until a trigger is due or a lease runs out (negative: already); null when there is none."""
    row = conn.execute(ST["next_moment"]).fetchone()
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def first_look(conn: Connection, type: str, config: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002 - the column
    """Give `due_at` and `state` of a trigger that begins: a schedule at its next slot, a poll at once."""
    checked = CONFIGS[type].model_validate(config)
    now = _now(conn)
    match checked:
        case Schedule():
            slot = next_slot(checked, now)
            return {"due_at": slot, "state": Jsonb({"next": slot.isoformat()})}
        case ApiPoll() | File():
            return {"due_at": now, "state": Jsonb({})}
        case _:
            return {"due_at": None, "state": Jsonb({})}


def _look(db: Database, lease: Lease, at: At) -> None:
    with db.connection() as conn:
        found = by_id(conn, lease.id)
        now = _now(conn)
    if found is None:
        return
    try:
        checked = _check(db, found, now)
        at("checked")
        with db.connection() as conn, leases.fenced(conn, lease):
            _serve(db, conn, lease, found, checked, at)
        at("committed")
    except (LeaseLostError, DatabaseUnavailableError):
        raise
    except polling.HostParkedError as parked:
        _park(db, lease, parked)
    except TaskNotFoundError as error:  # a worker that knows the task can do it
        with db.connection() as conn:
            leases.postpone(conn, lease, delay=db.settings.timers.retry_delay, error=str(error))
    except Exception as error:  # noqa: BLE001 - whatever a check raises is counted and kept with the trigger
        _failed(db, lease, found, error)


def _serve(db: Database, conn: Connection, lease: Lease, trigger: Trigger, checked: _Checked, at: At) -> None:
    """Fire what is to fire and let the trigger wait for its next look, in the caller's fenced transaction."""
    for slot, variables in checked.slots:
        fire(db, conn, trigger, slot, variables)
    at("fired")
    params = {"id": lease.id, "fence": lease.fence, "due_at": checked.due_at, "state": Jsonb(dict(checked.state))}
    if conn.execute(ST["served"], params).fetchone() is None:
        raise LeaseLostError(Leased.TRIGGERS.table, lease.id, lease.fence)
    if checked.slots and trigger.type in {"schedule", "api_poll"}:
        conn.execute(ST["prune_firings"], {"id": lease.id, "keep": _KEPT})
    at("served")


def _check(db: Database, trigger: Trigger, now: dt.datetime) -> _Checked:
    config = CONFIGS[trigger.type].model_validate(trigger.config)
    match config:
        case Schedule():
            return _check_schedule(config, trigger, now)
        case ApiPoll():
            return _check_poll(db, config, trigger, now)
        case File():
            return _check_inbox(db, config, trigger, now)
        case _:
            raise AssertionError(f"a trigger of type {trigger.type} is never due")


def _check_schedule(schedule: Schedule, trigger: Trigger, now: dt.datetime) -> _Checked:
    # Not `due_at`: a retry after an error has moved that behind the slot.
    slot = slot_to_fire(schedule, due=dt.datetime.fromisoformat(trigger.state["next"]), now=now)
    following = next_slot(schedule, now)
    slots = (
        ()
        if slot is None
        else ((slot.isoformat(), {"slot": slot.isoformat(), "late_s": (now - slot).total_seconds()}),)
    )
    return _Checked(due_at=following, state={"next": following.isoformat()}, slots=slots)


def _check_poll(db: Database, poll: ApiPoll, trigger: Trigger, now: dt.datetime) -> _Checked:
    with db.connection() as conn:
        parked = conn.execute(ST["parked"], {"host": polling.host_of(poll)}).fetchone()
    if parked is not None:
        raise polling.HostParkedError(polling.host_of(poll), parked["parked_until"] - now)
    seen = polling.ask(poll, trigger.state, settings=db.settings)
    slots = () if seen.variables is None else ((polling.slot_of(poll, seen, now), seen.variables),)
    return _Checked(due_at=now + poll.every, state=seen.state, slots=slots)


def _check_inbox(db: Database, file: File, trigger: Trigger, now: dt.datetime) -> _Checked:
    known = known_forms(db.settings.forms_folder, db=db).enabled
    take_in(db, [form for form in known if not file.forms or form.name in file.forms])
    before = int(trigger.state.get("job", 0))
    new = [
        row
        for row in inbox_ledger(db=db)
        if (row["job_id"] or 0) > before and (not file.forms or row["form_name"] in file.forms)
    ]
    slots = tuple(
        (f"job {row['job_id']}", {"path": row["path"], "form": row["form_name"], "job_id": row["job_id"]})
        for row in sorted(new, key=lambda row: int(row["job_id"]))
    )
    newest = max([before, *(int(row["job_id"]) for row in new)])
    return _Checked(due_at=now + file.every, state={"job": newest}, slots=slots)


def _park(db: Database, lease: Lease, parked: polling.HostParkedError) -> None:
    """Leave the host alone, for all triggers; no attempt is counted."""
    with db.connection() as conn, conn.transaction():
        conn.execute(ST["park"], {"host": parked.host, "delay": parked.delay})
        said = f"{parked.host} asked to be left alone for {parked.delay.total_seconds():.0f} s"
        leases.postpone(conn, lease, delay=parked.delay, error=said)


def _failed(db: Database, lease: Lease, trigger: Trigger, error: Exception) -> None:
    log.warning("trigger %s: attempt %s failed (%s)", trigger.name, lease.attempt, type(error).__name__)
    said = redacted_text(str(error) if isinstance(error, ImporterError) else sentence(error, db.label))
    delay = min(db.settings.timers.retry_delay * 2 ** min(lease.attempt - 1, 20), LONGEST_DELAY)
    with db.connection() as conn:
        leases.retry_later(conn, lease, delay=delay, error=said)


def _now(conn: Connection) -> dt.datetime:
    row = conn.execute(ST["now"]).fetchone()
    assert row is not None  # a select of one row
    return row["now"]  # type: ignore[no-any-return]  # a timestamptz
