"""Where in a workbook a form is read: its sheet, and the Excel table when it names one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from importer.errors import WorkbookError
from importer.excel.cells import Sheet
from importer.excel.ranges import Table
from importer.forms.form import Form
from importer.forms.labels import listed


def choose_sheet(sheets: Sequence[Sheet], form: Form) -> Sheet:
    """Choose the sheet a form reads.

    Raises: WorkbookError(sheet_not_found), naming the sheets there are.
    """
    if form.sheet is None:
        for sheet in sheets:
            if sheet.kind == "worksheet" and sheet.visible:
                return sheet
        raise WorkbookError("sheet_not_found", f"the workbook has no visible worksheet; its sheets: {_names(sheets)}")
    if isinstance(form.sheet, int):
        wanted = f"sheet at position {form.sheet} (counted from 0)"
        found = [sheet for sheet in sheets if sheet.position == form.sheet]
    else:
        wanted = f'sheet named "{form.sheet}"'
        found = [sheet for sheet in sheets if _compared(sheet.name) == _compared(form.sheet)]
    if not found:
        raise WorkbookError("sheet_not_found", f"the workbook has no {wanted}; its sheets: {_names(sheets)}")
    if found[0].kind == "chartsheet":
        raise WorkbookError(
            "sheet_not_found",
            f'the sheet "{found[0].name}" is a chart and holds no rows; other sheets: {_names(sheets)}',
        )
    return found[0]


def choose_table(tables: Iterable[Table], sheets: Sequence[Sheet], form: Form) -> Table:
    """Choose the Excel table a form reads, in its sheet if it names one.

    Raises: WorkbookError(sheet_not_found) naming the tables there are; WorkbookError(no_header) for one without header.
    """
    every = list(tables)
    wanted = _compared(form.table_range or "")
    found = [table for table in every if _compared(table.name) == wanted]
    if form.sheet is not None:
        position = choose_sheet(sheets, form).position
        found = [table for table in found if table.sheet == position]
    if not found:
        names = {sheet.position: sheet.name for sheet in sheets}
        there = listed(f'{table.name}" in "{names.get(table.sheet, "")}' for table in every)
        within = f' in the sheet "{form.sheet}"' if form.sheet is not None else ""
        raise WorkbookError(
            "sheet_not_found",
            f'the workbook has no Excel table "{form.table_range}"{within}; its tables: {there or "none"}',
        )
    if not found[0].header_rows:
        raise WorkbookError("no_header", f'the Excel table "{found[0].name}" has its header row switched off')
    return found[0]


def _compared(name: str) -> str:
    """Names of sheets and tables are compared without case, as in Excel; spaces at the ends are a slip of the form."""
    return name.strip().casefold()


def _names(sheets: Iterable[Sheet]) -> str:
    return listed(sheet.name for sheet in sheets if sheet.kind != "chartsheet") or "none"
