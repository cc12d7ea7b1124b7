"""A file becomes chunks of cells; nothing is judged here.

```
path -> sniff -> archive (zip, bounded) -> package (which part is what)
                     |
        sheet part --+--> scan  -> raw cells --cell_kinds--> kinds and values --chunking--> chunks
                          (bytes)              (styles, shared strings)
```

Each cell comes as it is written in the file with its `Kind`, each row with its number in the sheet. What a cell means
is for a form to say; a number under a date format is a `DATE` whose value is still the serial; `serial` converts it.

Values by kind: `TEXT` decoded and untrimmed; `NUMBER` as written; `BOOL` true or false; `DATE`, `DATETIME`, `TIME`,
`DURATION` the serial as written, or ISO 8601 where the file itself says so; `ERROR` its name; `UNCALCULATED` the
formula; `BROKEN` what stood there; `UNSTORABLE` text PostgreSQL cannot hold, with the offenders shown as `_x0000_`.

Guaranteed: a cell that is empty, one that holds an error and a formula that was never calculated are three kinds; no
cell is dropped, rounded, shifted or guessed from its neighbours; memory follows the chunk (and the shared strings),
never a declared range; a hostile file is refused (`Limits`) before what it asks for is built; the file is only read.

Not guaranteed: that a file with broken parts is read as Excel would repair it (it is refused); that formulas are
calculated (the stored result is read); that a sheet is sound to its end before its last chunk was taken.

Decided: a reader of our own. Every ready reader takes an error for an empty cell, or 19 digits for a float, or the
declared range for the size of an array.
"""

from importer.excel.book import Workbook
from importer.excel.cells import Chunk, Column, Kind, Sheet, SheetNotes
from importer.excel.frames import choose_sheet, read_cells, sheets
from importer.excel.limits import Limits
from importer.excel.opening import open_workbook

__all__ = [
    "Chunk",
    "Column",
    "Kind",
    "Limits",
    "Sheet",
    "SheetNotes",
    "Workbook",
    "choose_sheet",
    "open_workbook",
    "read_cells",
    "sheets",
]
