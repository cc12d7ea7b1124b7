"""Forms: what a valid sheet is, and the check of a sheet against one."""

from importer.forms.check_report import CheckReport
from importer.forms.form import COLUMN_TYPES, ColumnType, Form, FormColumn, Locale
from importer.forms.header import Header
from importer.forms.left_out import LeftOut
from importer.forms.reading import FAULT_SCHEMA, CheckedChunk, Reading, read_rows
from importer.forms.seen_keys import SeenKeys

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
    "Reading",
    "SeenKeys",
    "read_rows",
]
