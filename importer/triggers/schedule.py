"""When a schedule fires: its slots, and what becomes of those that nobody looked after."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from cronsim import CronSim

from importer.triggers.definition import Schedule

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def next_slot(schedule: Schedule, after: dt.datetime) -> dt.datetime:
    """The first slot after a moment.

    Slots of `every` are counted from 1970 in UTC, so that they do not depend on when anybody looked. Cron means the
    clock of its zone: a moment that summer time leaps over fires right after the leap, one that comes twice fires once
    (unless it stands for every hour or minute).
    """
    if schedule.every is not None:
        return _EPOCH + ((after - _EPOCH) // schedule.every + 1) * schedule.every
    found = next(CronSim(str(schedule.cron), after.astimezone(ZoneInfo(schedule.zone))))
    return found.astimezone(dt.UTC)


def last_slot(schedule: Schedule, until: dt.datetime) -> dt.datetime:
    """The last slot at or before a moment."""
    if schedule.every is not None:
        return _EPOCH + (until - _EPOCH) // schedule.every * schedule.every
    after = (until + dt.timedelta(seconds=1)).replace(microsecond=0)
    found = next(CronSim(str(schedule.cron), after.astimezone(ZoneInfo(schedule.zone)), reverse=True))
    return found.astimezone(dt.UTC)


def slot_to_fire(schedule: Schedule, *, due: dt.datetime, now: dt.datetime) -> dt.datetime | None:
    """The slot that fires now: the last one, when it is in time or one is to be caught up; never one before `due`."""
    slot = last_slot(schedule, now)
    if slot < due:
        return None
    return slot if schedule.catch_up == "one" or now - slot <= schedule.grace else None
