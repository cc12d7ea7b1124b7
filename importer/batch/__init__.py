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

from importer.batch.arrivals import Arrivals, Taken, TurnedAway, take_in
from importer.batch.attempt import Ran, run
from importer.batch.comparison import Comparison
from importer.batch.comparison import compare_with_table as compare
from importer.batch.door import (
    cancel,
    due,
    faults,
    faults_by_rule,
    import_workbook,
    inbox_ledger,
    job,
    jobs,
    locate,
    retry,
    run_jobs,
    run_leases,
    stored_form,
    submit,
)
from importer.batch.dry_run import check
from importer.batch.for_sender import fault_workbook, put_fault_workbook, template
from importer.batch.form_state import FormState, failed_rows_allowed, form_state, fresh_within
from importer.batch.importing import Progress
from importer.batch.known_forms import KnownForms, known_forms
from importer.batch.proposals import form_from, suggest
from importer.batch.undo import UndoPreview, undo

__all__ = [
    "Arrivals",
    "Comparison",
    "FormState",
    "KnownForms",
    "Progress",
    "Ran",
    "Taken",
    "TurnedAway",
    "UndoPreview",
    "cancel",
    "check",
    "compare",
    "due",
    "failed_rows_allowed",
    "fault_workbook",
    "faults",
    "faults_by_rule",
    "form_from",
    "form_state",
    "fresh_within",
    "import_workbook",
    "inbox_ledger",
    "job",
    "jobs",
    "known_forms",
    "locate",
    "put_fault_workbook",
    "retry",
    "run",
    "run_jobs",
    "run_leases",
    "stored_form",
    "submit",
    "suggest",
    "take_in",
    "template",
    "undo",
]
