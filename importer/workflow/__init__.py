"""Workflows: what happens after what, as data, moved by rows that survive everything.

```
Workflow ─ start ─► instance: tokens on nodes ─┬─ timer     timer_jobs, leased: a worker fires it
 (a graph,           running                   ├─ approval  a person answers (its limit is a timer)
  checked)           completed failed cancelled├─ import    the job's end comes by the outbox
                                               ├─ task      the same, of a durable task
                                               └─ join      the other tokens of its fork
```

A token stands on a node. When the node ends, the token is consumed and each connection that is taken makes a new one;
nodes that need not wait run at once, until every token waits or none is left. All of that is one *firing*: one
transaction that locks the instance first (`firing`). So tokens of one instance never race, a crash leaves all of a
firing or nothing, and instances need no lease: what is leased is the timer or the message that moves them.

```
elements, node_types, configs, graph, definition    a workflow as data, checked with all problems at once
marking                                             pure: which tokens are consumed and made, when a join goes on
firing                                              one transaction
instances, moving                                   start, fail, retry, cancel; timers, answers, ends of imports
imports, tasks                                      submitting a job or run and waiting for it
seen, diagram, door                                 what people see and call
```

A running instance keeps the version it started with. An instance whose node type is not known where its timer fires
waits: the timer is postponed without losing an attempt, and `why` says so.

**Not guaranteed**: that what a user's node type does outside of the database happens once (it runs again when its
firing rolled back); that a timer fires at its moment.

Rejected: a lease per instance (a person's answer and a timer would have to wait for each other's leases where a row
lock of milliseconds does); moving a token row along (a history of consumed tokens proves that each step happened once).
"""

from importer.workflow.definition import Workflow
from importer.workflow.door import (
    answer,
    approvals,
    cancel_workflow,
    enable_workflow,
    retry_workflow,
    start,
    store_workflow,
    stored_workflows,
    why,
    workflow,
    workflows,
)
from importer.workflow.moving import import_route, task_route, timers_due
from importer.workflow.node_types import NodeContext
from importer.workflow.node_types import register as node_type
from importer.workflow.seen import Approval, Approvals, Instance, Instances, StoredWorkflow, Why

__all__ = [
    "Approval",
    "Approvals",
    "Instance",
    "Instances",
    "NodeContext",
    "StoredWorkflow",
    "Why",
    "Workflow",
    "answer",
    "approvals",
    "cancel_workflow",
    "enable_workflow",
    "import_route",
    "node_type",
    "retry_workflow",
    "start",
    "store_workflow",
    "stored_workflows",
    "task_route",
    "timers_due",
    "why",
    "workflow",
    "workflows",
]
