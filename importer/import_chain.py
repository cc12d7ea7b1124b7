"""How import jobs hang together: the form a job was read with, which job corrects which, and what undid it.

```
submit ── job 1 (march.xlsx, 4 failed) ◄── corrects ── job 2 (march_faults.xlsx) ◄── corrects ── job 3
              ▲
              └── undo ── job 4: takes job 1's rows back
```

A job of kind `import` with a parent is a correction: the parent's failed rows, sent again. A job of kind `undo` takes
back what its parent did. The parent of a job never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer.db import Connection, statements
from importer.errors import JobNotFoundError

_ST = statements("import_chain")


@dataclass(frozen=True, kw_only=True)
class StoredForm:
    """A form as the database has it."""

    name: str
    version: int
    digest: str
    #: As `Form.to_dict()` gives it.
    definition: Mapping[str, Any]


def form_of(conn: Connection, job_id: int) -> StoredForm:
    """Read the form that a job was submitted with.

    Raises:
        JobNotFoundError: there is no such job.
    """
    row = conn.execute(_ST["form_of"], {"id": job_id}).fetchone()
    if row is None:
        raise JobNotFoundError(job_id)
    return StoredForm(**row)


def version_of(conn: Connection, *, name: str, digest: str) -> int | None:
    """The version under which the database has this very form; none when it has not."""
    row = conn.execute(_ST["version_of"], {"name": name, "digest": digest}).fetchone()
    return None if row is None else int(row["version"])
