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

from importer.batch import cancel, check, faults, import_workbook, job, jobs, retry, stored_form, submit
from importer.db import Database, connect, migrate
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
from importer.forms import CheckReport, Form
from importer.import_job import Job, Jobs
from importer.settings import Settings
from importer.store import Store
from importer.worker import work

__all__ = [
    "CheckReport",
    "ContentChangedError",
    "CursorBeyondRowsError",
    "Database",
    "DatabaseError",
    "DatabaseTooOldError",
    "DatabaseUnavailableError",
    "Form",
    "FormDisabledError",
    "FormError",
    "ImporterError",
    "Job",
    "JobConflictError",
    "JobError",
    "JobNotFoundError",
    "JobStateError",
    "Jobs",
    "LeaseLostError",
    "MigrationError",
    "NotMigratedError",
    "Settings",
    "SettingsError",
    "Store",
    "StoreError",
    "TargetError",
    "WorkbookError",
    "cancel",
    "check",
    "connect",
    "faults",
    "import_workbook",
    "job",
    "jobs",
    "migrate",
    "read_cells",
    "retry",
    "sheets",
    "stored_form",
    "submit",
    "work",
]
