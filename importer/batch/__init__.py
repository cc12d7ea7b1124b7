"""The import itself: a workbook goes into a form's table, batch by batch, each batch with its cursor and its lease.

```
          excel ──chunks──► forms ──checked chunks──► batches ──► Writer ──► target, import_job, lease
check()     │                 │                          │  without a database: faults only; with one: rolled back
run()       └─────────────────┴──────────────────────────┴─ fenced transactions, one thread reads, one writes
submit(), import_workbook()   what people call
```

Only this room knows both wings: frames above, rows and leases below. Everything that is promised about crashes comes
from one rule: a batch is one transaction that begins by renewing the lease by its fence and ends by moving the cursor
(`importer.batch.writer`).
"""

from importer.batch.attempt import Progress, Ran, run
from importer.batch.door import cancel, faults, import_workbook, job, jobs, retry, stored_form, submit
from importer.batch.dry_run import check

__all__ = [
    "Progress",
    "Ran",
    "cancel",
    "check",
    "faults",
    "import_workbook",
    "job",
    "jobs",
    "retry",
    "run",
    "stored_form",
    "submit",
]
