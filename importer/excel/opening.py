"""Which reader a file gets: by what it holds, and for delimited text, which holds no mark, by its name."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from importer.excel.archive import Archive, open_binary
from importer.excel.book import Workbook
from importer.excel.delimited import DelimitedWorkbook, is_delimited
from importer.excel.limits import Limits
from importer.excel.old_formats import OldFormatWorkbook
from importer.excel.open_document import OpenDocumentWorkbook, is_open_document
from importer.excel.package import read_package
from importer.excel.sniff import is_xls, is_zip, require_zip
from importer.excel.workbook import PackageWorkbook

_XLSB_PART = "xl/workbook.bin"


def open_workbook(
    path: str | Path,
    *,
    limits: Limits | None = None,
    compiled: bool = True,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Workbook:
    """Open a workbook for reading; use it in a `with`.

    xlsx, xlsm, xltx, xltm, ods and ots are told by what they hold, xls and xlsb too, csv and tsv by their names. Reads
    what there is of sheets, not yet a sheet. `compiled=False` does without the compiled scanner; `encoding` and
    `delimiter` are those of a csv.

    Raises:
        WorkbookError: not_a_spreadsheet, empty_file, encrypted, corrupt, encoding, unsafe_xml, too_large,
            unsupported_format.
    """
    path = Path(path)
    limits = limits or Limits()
    file = open_binary(path)
    try:
        if is_xls(file):
            return _old_format(file, path, "xls", limits)
        if is_delimited(path) and not is_zip(file):
            return DelimitedWorkbook(file, path, limits, encoding=encoding, delimiter=delimiter)
        require_zip(file, path)
        archive = Archive(file, limits)
        if is_open_document(archive):
            return OpenDocumentWorkbook(file, archive, path, limits)
        if _XLSB_PART in archive:
            return _old_format(file, path, "xlsb", limits)
        package = read_package(archive, limits, path.name)
    except BaseException:
        file.close()
        raise
    return PackageWorkbook(path, file, archive, package, limits, compiled=compiled)


def _old_format(file: BinaryIO, path: Path, kind: str, limits: Limits) -> Workbook:
    file.close()
    return OldFormatWorkbook(path, kind, limits)
