"""What goes to the sender of a workbook, and how it is known again when it comes back.

```
form ──► Template ──► write_template     an empty workbook that says its rules     (XlsxWriter)
faults ─► Mark ─────► mark_workbook      the sender's own workbook, bad cells marked (edited in place)
                 └──► write_failed_rows  a small workbook with the failed rows alone (XlsxWriter)
workbook ◄──────────── read_stamp, read_origins
```

The room stands below `forms` and takes plain values: no form, no database, no frame crosses its door. So a form can
write its template, a report its fault workbook, and the import can read a stamp, and none of them knows the others.

**The stamp** is a sheet that no menu of Excel shows, with names and values: what kind of workbook it is, of which form,
which job, which content. **The origin** is a hidden column behind the last one, in the failed rows alone: the row's
number in the file that was sent and a digest of its cells. It moves with its row when rows are sorted or moved.

Guaranteed: a text that looks like a formula stays a text. The marked workbook is the sender's package with the parts
changed that must be (the sheet, its notes, styles, list of sheets) and all others byte for byte as they were: charts,
pictures, macros, other sheets. Memory follows the block that is being edited, not the sheet. What cannot be kept is
said (`Marked.not_kept`): a digital signature of the package.

Not guaranteed: that a sender does not delete the stamp or the origins; whoever reads them must do without.

Decided: the package is edited in place. openpyxl, which loads a workbook and writes another, was rejected: it holds
every cell as an object (loading and saving 100,000 rows x 12 took 22 s and 600 MB, measured) and does not keep what it
does not know (shapes, slicers, form controls).
"""

from importer.sender.failed_rows import FailedCell, FailedRows, write_failed_rows
from importer.sender.marked import Mark, Marked, Marking, mark_workbook
from importer.sender.stamp import ORIGIN_TITLE, STAMP_SHEET, Origin, Stamp, is_own_sheet, read_origin, read_stamp
from importer.sender.template import Template, TemplateColumn, write_template

__all__ = [
    "ORIGIN_TITLE",
    "STAMP_SHEET",
    "FailedCell",
    "FailedRows",
    "Mark",
    "Marked",
    "Marking",
    "Origin",
    "Stamp",
    "Template",
    "TemplateColumn",
    "is_own_sheet",
    "mark_workbook",
    "read_origin",
    "read_stamp",
    "write_failed_rows",
    "write_template",
]
