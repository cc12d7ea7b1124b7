"""Triggers: an event starts something, and each event starts it once.

```
schedule ── clock ──┐                                   ┌─► workflow
api_poll ── request ┤   slot ──► condition ──► firing ──┼─► task
file ────── inbox ──┤  (unique)                one      └─► form import
event ───── fire ───┤                      transaction
completed ─ outbox ─┘
```

A trigger is a leased row. What is to be looked at by time (schedule, api_poll, file) is claimed when due, checked
without a transaction, and then served in one fenced transaction: firings, what they start, what was seen, the next due
moment. Events and ends come through the outbox. A firing has a *slot*: the moment of a schedule, the hash of an answer
and when it was seen, the key of an event, the end of a run; a slot of a trigger fires once, whoever looks how often.

**Guaranteed.** A slot fires once, together with what it starts. A stale holder fires nothing. Errors back off and,
after `max_attempts` in a row, switch the trigger off; a host that says 429 or 503 is left alone by all triggers and
costs none of them an attempt. Secrets of headers are read from the environment when the request is made, and stored
nowhere.

**Not guaranteed.** That a schedule fires at its moment: it fires when a worker looks. That each change of an address is
seen: only what stands there when it is asked. That an outage is made up for in full: none or one slot, as the schedule
says.
"""

from __future__ import annotations

from importer.triggers.checking import next_moment_s, triggers_due
from importer.triggers.definition import Definition
from importer.triggers.door import (
    disable_trigger,
    enable_trigger,
    fire,
    firings,
    put_trigger,
    read_triggers,
    remove_trigger,
    trigger,
    triggers,
)
from importer.triggers.record import Firing, Trigger
from importer.triggers.routes import completed_route, event_route

__all__ = [
    "Definition",
    "Firing",
    "Trigger",
    "completed_route",
    "disable_trigger",
    "enable_trigger",
    "event_route",
    "fire",
    "firings",
    "next_moment_s",
    "put_trigger",
    "read_triggers",
    "remove_trigger",
    "trigger",
    "triggers",
    "triggers_due",
]
