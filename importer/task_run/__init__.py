"""Durable tasks: functions that are run until they have ended, by whichever worker is there.

```
enqueue ──► pending ──claim──► running ──► succeeded
   (in the     ▲  ▲               │ ├────► failed      attempts used up, or the task said so
   caller's    │  └ error: delay ─┤ └────► cancelled
 transaction)  └── sleep, wait ───┘
                   due again by the clock, or by `signal`
```

A run is a leased row (`importer.lease`). What it did is kept beside it: results of steps (`task_steps`), facts that
came (`task_facts`), operations done outside (`task_operations`). When a worker dies, the run is due again at the end of
its lease; its function is called once more from the top, and each finished step gives its kept result. A sleeping or
waiting run is a row without a holder and costs no worker.

**Guaranteed.** A run and the rows it was enqueued with commit together. A finished step and a finished operation never
run again. A stale worker stores nothing, its operation's `commit` included. A fact that was written before, while or
after the run went to wait is found. A committed end is final. A worker takes only names and versions it has: the claim
asks for them.

**Not guaranteed.** That a step in flight when its worker died was not done: it is run from its start. That an outside
operation happens once by itself: `once` says `resumed`, and the outside world must be asked. That a tiny run whose end
was not yet written is not run again: at most the last batch (`finishing`). That all runs of a priority begin in order.

Rejected: a row per attempt written at each claim (only attempts that leave the run open are written; the last one is
the run's own row); recording a run as events to be replayed (a step's kept result says the same with one row); a
register of workers (`task_versions` says which tasks somebody looks for, and that is enough to tell why a run waits).

Write `from importer.task_run import ...`: at the front door `importer.task_run` is the function that reads one run.
"""

from __future__ import annotations

from importer.task_run.context import Context, Operation
from importer.task_run.definition import Retry, Task, task
from importer.task_run.door import cancel_task, enqueue, enqueue_many, retry_task, signal, task_run, tasks
from importer.task_run.record import Fact, TaskAttempt, TaskRun, TaskRuns
from importer.task_run.working import next_moment_s, tasks_due

__all__ = [
    "Context",
    "Fact",
    "Operation",
    "Retry",
    "Task",
    "TaskAttempt",
    "TaskRun",
    "TaskRuns",
    "cancel_task",
    "enqueue",
    "enqueue_many",
    "next_moment_s",
    "retry_task",
    "signal",
    "task",
    "task_run",
    "tasks",
    "tasks_due",
]
