"""What somebody should look at: triggers that are off, failing or silent, what failed, takes too long, or piles up.

An alert is a row's state and not an event: it is there as long as it is true, and `key` names it, so that whoever looks
again and again can tell a new one from one that was seen. *Not guaranteed*: that an alert which came and went between
two looks is seen.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from importer.db import Database, connect, statements

_ST = statements("alerts")


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One thing that is wrong now."""

    #: trigger_disabled trigger_failing trigger_silent workflow_failed workflow_too_long task_failed import_too_long
    #: queue_grows message_dead.
    kind: str
    #: Which trigger, workflow and instance, task, form and job, queue, topic.
    subject: str
    since: dt.datetime
    message: str

    @property
    def key(self) -> str:
        """Names it as long as it lasts."""
        return f"{self.kind}: {self.subject}"


def alerts(
    *,
    failed_within: dt.timedelta = dt.timedelta(days=1),
    import_after: dt.timedelta = dt.timedelta(hours=1),
    workflow_after: dt.timedelta = dt.timedelta(days=14),
    queue_after: dt.timedelta = dt.timedelta(minutes=10),
    db: Database | None = None,
) -> list[Alert]:
    """Read what is wrong now, the oldest first.

    Args:
        failed_within: failures of workflows and tasks that are older are left out.
        import_after: an import that runs for longer is too long.
        workflow_after: the same for an instance of a workflow.
        queue_after: a queue in which something is due for longer grows.
        db: the database; else the one of `connect()`.
    """
    if db is None:
        with connect() as own:
            return alerts(
                failed_within=failed_within,
                import_after=import_after,
                workflow_after=workflow_after,
                queue_after=queue_after,
                db=own,
            )
    params = {
        "failed_within": failed_within,
        "import_after": import_after,
        "workflow_after": workflow_after,
        "queue_after": queue_after,
    }
    with db.connection() as conn:
        return [Alert(**row) for row in conn.execute(_ST["alerts"], params).fetchall()]
