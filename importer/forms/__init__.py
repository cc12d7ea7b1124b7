"""Forms: what a valid sheet is, and the check of a sheet against one.

```
a dict, YAML, JSON, a pandera model --definition--> Form (frozen; canonical to_dict, digest)
                                                      |
chunks of raw cells --place, header--> columns --cells--> typed frame, misfits --rules--> accepted rows, faults
                     (sheet, table,   (by title)         (what a cell cannot    (pandera)       |
                      merged cells)                       be, and why)                      SeenKeys
```

What becomes of each kind of cell under each type stands in `cells.md`, tables that the tests read as their parameters.

Guaranteed: every data row is accepted or has a fault, never both; every cell is its exact value, blank, or one fault
with row, column, rule, the value as the sheet shows it and a sentence; all faults are found in one pass; types come
from the form alone, nothing is guessed from a sample, a locale or the machine's time zone; what is not read is named
(`LeftOut`); memory follows the chunk; where chunks are cut changes nothing.

Not guaranteed: that a value is unique in the table (only the database knows; `SeenKeys` knows this sheet); that a
pattern is a Python one (it is a regular expression of Rust, without look-around, so no text can make it run away).

Decided: text is read as a number only in its plain form and as a moment only in ISO 8601, for 03/04 has two readings;
other forms are declared (`locale`, `formats`). A date cell in a text column is a fault, neither its serial nor its ISO
form: it is mostly a part number that Excel has taken for a date, and either reading would hide that. Numbers are typed
from the digits as written, with no binary float between them and a numeric column. A `decimal` without precision has
18 places, which hold the 15 digits of any number from 0.0001 on; a number that needs more is a fault, not rounded.
Casting first and asking about the cells that came out empty was chosen over judging each cell: a clean chunk of 50,000
rows x 12 columns is typed and checked in about 25 ms of one core; to look at each cell in Python takes over a second.
"""

from importer.forms.check_report import CheckReport
from importer.forms.form import COLUMN_TYPES, ColumnType, Form, FormColumn, Locale, Lookup
from importer.forms.header import Header
from importer.forms.left_out import LeftOut
from importer.forms.reading import FAULT_SCHEMA, CheckedChunk, Reading, read_rows
from importer.forms.seen_keys import SeenKeys, repeat_message

__all__ = [
    "COLUMN_TYPES",
    "FAULT_SCHEMA",
    "CheckReport",
    "CheckedChunk",
    "ColumnType",
    "Form",
    "FormColumn",
    "Header",
    "LeftOut",
    "Locale",
    "Lookup",
    "Reading",
    "SeenKeys",
    "read_rows",
    "repeat_message",
]
