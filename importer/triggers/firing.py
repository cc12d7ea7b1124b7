"""One firing: the slot, the condition, and what is started, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer import expressions, outbox_message
from importer.batch import locate, stored_form, submit
from importer.db import Connection, Database
from importer.task_run import enqueue
from importer.triggers.definition import Target
from importer.triggers.record import ST, Trigger
from importer.workflow import start

#: What firings are announced under.
TOPIC = "trigger_fired"


def fire(db: Database, conn: Connection, trigger: Trigger, slot: str, variables: Mapping[str, Any]) -> bool:
    """Fire a slot, if its condition holds and it has not fired before; tell whether it did.

    Raises:
        ExpressionError: condition or input cannot be worked out.
        Whatever starting the target raises; then nothing has fired.
    """
    given = {**variables, "trigger": {"name": trigger.name, "slot": slot}}
    if trigger.condition is not None and not expressions.judge(trigger.condition, given):
        return False
    firing = conn.execute(ST["put_firing"], {"id": trigger.id, "slot": slot}).fetchone()
    if firing is None:
        return False
    started, started_id = _start(db, conn, trigger, slot, given)
    conn.execute(ST["fired"], {"firing": firing["id"], "started": started, "started_id": started_id})
    payload = {"trigger": trigger.name, "slot": slot, "started": started, "started_id": started_id}
    outbox_message.put(conn, topic=TOPIC, key=f"trigger:{trigger.name}", payload=payload)
    return True


def _start(
    db: Database, conn: Connection, trigger: Trigger, slot: str, given: Mapping[str, Any]
) -> tuple[str | None, int | None]:
    if trigger.target is None:
        return None, None
    target = Target.model_validate(trigger.target)
    value = dict(given) if target.input is None else expressions.render_all(target.input, given)
    key = f"trigger {trigger.id}: {slot}"
    if target.task is not None:
        run = enqueue(target.task, value, key=key, priority=target.priority, conn=conn)
        return "task_run", run
    if target.workflow is not None:
        return "workflow_instance", start(target.workflow, value, key=key, db=db, conn=conn).id
    path = locate(str(expressions.render(str(target.file), given)), db=db)
    job = submit(path, stored_form(str(target.form), db=db), db=db, conn=conn, key=key, priority=target.priority)
    return "import_job", job.id
