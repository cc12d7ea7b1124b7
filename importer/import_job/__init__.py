"""Import jobs: one workbook into one form, submitted, claimed, counted and ended in PostgreSQL.

```
submit ──► pending ──claim──► running ──finish──► success | partial_success | failed
              ▲                  │ ├──refuse──► failed      (no row stays, counts zero)
              │                  │ ├──fail────► failed      (rows and cursor stay)
              ├──hand back, retry┘ └──cancel──► cancelled   (rows and cursor stay)
              └──take up── failed, cancelled                (from the cursor, attempts back to 0)
```

A job names its content (a hash in the store), its form and the version of the form, so that any worker on any machine
runs what a notebook submitted. Its *cursor* is `success_rows + failed_rows + skipped_rows`: how many data rows of the
sheet were dealt with. It moves only in the transaction that wrote those rows (`importer.batch`), which also renews the
lease, so cursor, rows and lease never disagree.

**Identity.** The same content in the same form version and sheet is one job. `submit` finds it under an advisory lock
of form and content, and a unique index stands behind that. `create_table`, `batch_rows`, `priority` and `run_ref` are
no part of identity: they do not change which rows are read.

**What is not guaranteed.** That the file name is the same: the first sender's name is kept. That a cancelled job
leaves no rows: it leaves the batches that were committed, and its counts say how many.

This room knows no frames: a form crosses as the plain dict that `Form.to_dict()` gives and its digest.
"""

from importer.import_job.holding import (
    TOPIC,
    add_faults,
    announce,
    claim,
    copy_faults,
    delete_faults,
    fail,
    fail_exhausted,
    finish,
    hand_back,
    mark_replaced,
    move_cursor,
    refuse,
    retry_later,
    to_replace,
    work,
)
from importer.import_job.listing import (
    LISTEN,
    announcement,
    attempts,
    due,
    faults,
    faults_by_rule,
    job,
    jobs,
    next_moment_s,
    open_among,
    sent_before,
)
from importer.import_job.record import ENDED, How, Job, Jobs, Kind, Request, Status, Work, from_row, jobs_html
from importer.import_job.stored_forms import enable_form, forms, store_form
from importer.import_job.submitting import cancel, submit, take_up

__all__ = [
    "ENDED",
    "LISTEN",
    "TOPIC",
    "How",
    "Job",
    "Jobs",
    "Kind",
    "Request",
    "Status",
    "Work",
    "add_faults",
    "announce",
    "announcement",
    "attempts",
    "cancel",
    "claim",
    "copy_faults",
    "delete_faults",
    "due",
    "enable_form",
    "fail",
    "fail_exhausted",
    "faults",
    "faults_by_rule",
    "finish",
    "forms",
    "from_row",
    "hand_back",
    "job",
    "jobs",
    "jobs_html",
    "mark_replaced",
    "move_cursor",
    "next_moment_s",
    "open_among",
    "refuse",
    "retry_later",
    "sent_before",
    "store_form",
    "submit",
    "take_up",
    "to_replace",
    "work",
]
