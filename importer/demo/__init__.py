"""`rowlease demo`: a workbook is imported, the importer killed in the middle with SIGKILL, and every row is there once.

```
workbook.py   writes the site reports and the mistakes in them; knows what must come out
story.py      the four acts, in the real database, with real processes
screen.py     what is printed while they go on
```

Nothing is staged: both importers are `rowlease import` in processes of their own; the kill waits until the database
itself says that the import is in the middle; what is printed after it comes from the database.
"""

from importer.demo.story import run
from importer.demo.workbook import BAD_CELLS, FORM, TABLE, Written, write_workbook

__all__ = ["BAD_CELLS", "FORM", "TABLE", "Written", "run", "write_workbook"]
