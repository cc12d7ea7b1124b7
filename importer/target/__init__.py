"""The form's table: what it must be, whether it fits, loading it, clearing it.

```
form (plain dict) ──► Target ──compare──► TargetError, or it fits
                        │
                        ├─load── rows as CSV ──COPY──► table                        (no key)
                        │                    └─COPY──► stage ──insert…on conflict──► table   (key, unique)
                        └─delete_rows
```

Everything runs in the caller's transaction, which holds the job's lease. `load` never raises for a row that PostgreSQL
refuses: it finds the row by savepoints and halving and gives it back with PostgreSQL's own words. Rows that a unique
index has already come back as `Clash`: who had the key first. What that means (a fault, a skip) is decided by
`importer.batch`.

A table may have more columns than the form, and more constraints; whatever a row breaks there is the row's fault, not
the import's. What is refused before any row is a table that cannot hold what the form promises (`compare`).

Measured: COPY of CSV that polars wrote takes 0.87x the time of COPY with rows made in Python; the stage and `on
conflict` cost 2x of a plain COPY, so only forms with a key or a unique column pay for them.
"""

from importer.target.compare import compare
from importer.target.describe import columns_as_form
from importer.target.load import Clash, Loaded, Refused, Rows, load
from importer.target.lookup import create_missing, find, names
from importer.target.match import Differences, differences, match_rows, unmatched
from importer.target.table import Target, TargetColumn, count_rows, create, delete_rows, exists, lock
from importer.target.take_rows import Taken, take_rows
from importer.target.update import Restored, forget_before_images, restore_rows

__all__ = [
    "Clash",
    "Differences",
    "Loaded",
    "Refused",
    "Restored",
    "Rows",
    "Taken",
    "Target",
    "TargetColumn",
    "columns_as_form",
    "compare",
    "count_rows",
    "create",
    "create_missing",
    "delete_rows",
    "differences",
    "exists",
    "find",
    "forget_before_images",
    "load",
    "lock",
    "match_rows",
    "names",
    "restore_rows",
    "take_rows",
    "unmatched",
]
