"""Excel forms into PostgreSQL: exact, resumable, without duplicates.

```python
import importer as im

form = im.Form.from_file("forms/site_report.yaml")
report = im.check("march.xlsx", form)       # dry run: report.accepted, report.faults
job = im.import_workbook("march.xlsx", form)  # into PostgreSQL; killed and called again, it goes on where it was
im.faults(job)                              # which cells were wrong, and why
```

This is the front door: everything public is named here, and nothing else is public.
"""

from importer.batch import (
    Arrivals,
    FormState,
    KnownForms,
    Ran,
    Taken,
    TurnedAway,
    cancel,
    check,
    due,
    failed_rows_allowed,
    fault_workbook,
    faults,
    faults_by_rule,
    form_from,
    form_state,
    fresh_within,
    import_workbook,
    inbox_ledger,
    job,
    jobs,
    known_forms,
    locate,
    retry,
    run_jobs,
    run_leases,
    stored_form,
    submit,
    suggest,
    take_in,
    template,
)
from importer.db import Database, connect, create_database, migrate
from importer.errors import (
    ContentChangedError,
    CursorBeyondRowsError,
    DatabaseError,
    DatabaseTooOldError,
    DatabaseUnavailableError,
    FormDisabledError,
    FormError,
    ImporterError,
    JobConflictError,
    JobError,
    JobNotFoundError,
    JobStateError,
    LeaseLostError,
    MigrationError,
    NotMigratedError,
    SettingsError,
    StoreError,
    TargetError,
    WorkbookError,
)
from importer.excel import read_cells, sheets
from importer.forms import CheckReport, Form, FormColumn
from importer.import_job import Job, Jobs
from importer.import_run import RunLease, RunLeases
from importer.retention import Pruned, prune
from importer.settings import Settings
from importer.store import Store
from importer.worker import follow, run_due, work

__all__ = [
    "Arrivals",
    "CheckReport",
    "ContentChangedError",
    "CursorBeyondRowsError",
    "Database",
    "DatabaseError",
    "DatabaseTooOldError",
    "DatabaseUnavailableError",
    "Form",
    "FormColumn",
    "FormDisabledError",
    "FormError",
    "FormState",
    "ImporterError",
    "Job",
    "JobConflictError",
    "JobError",
    "JobNotFoundError",
    "JobStateError",
    "Jobs",
    "KnownForms",
    "LeaseLostError",
    "MigrationError",
    "NotMigratedError",
    "Pruned",
    "Ran",
    "RunLease",
    "RunLeases",
    "Settings",
    "SettingsError",
    "Store",
    "StoreError",
    "Taken",
    "TargetError",
    "TurnedAway",
    "WorkbookError",
    "cancel",
    "check",
    "connect",
    "create_database",
    "due",
    "failed_rows_allowed",
    "fault_workbook",
    "faults",
    "faults_by_rule",
    "follow",
    "form_from",
    "form_state",
    "fresh_within",
    "import_workbook",
    "inbox_ledger",
    "job",
    "jobs",
    "known_forms",
    "locate",
    "migrate",
    "prune",
    "read_cells",
    "retry",
    "run_due",
    "run_jobs",
    "run_leases",
    "sheets",
    "stored_form",
    "submit",
    "suggest",
    "take_in",
    "template",
    "work",
]
