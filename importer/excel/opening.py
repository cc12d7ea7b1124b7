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
    name: str | None = None,
    limits: Limits | None = None,
    compiled: bool = True,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Workbook:
    """Open a workbook for reading; use it in a `with`.

    xlsx, xlsm, xltx, xltm, ods and ots are told by what they hold, xls and xlsb too, csv and tsv by their names. Reads
    what there is of sheets, not yet a sheet. `name` is what its sender calls it, where it stands under another name;
    `compiled=False` does without the compiled scanner; `encoding` and `delimiter` are those of a csv.

    Raises:
        WorkbookError: not_a_spreadsheet, empty_file, encrypted, corrupt, encoding, unsafe_xml, too_large,
            unsupported_format.
    """
    path = Path(path)
    called = path if name is None else Path(name)
    file = open_binary(path)
    try:
        kind = _kind(file, called)
        if kind == "csv":
            workbook: Workbook = DelimitedWorkbook(
                file, called, limits or Limits(), encoding=encoding, delimiter=delimiter
            )
        elif kind == "xls":
            file.close()
            workbook = OldFormatWorkbook(path, "xls", limits or Limits(), name=called.name)
        else:
            workbook = _zipped(file, path, called, limits or Limits(), compiled=compiled)
    except BaseException:
        file.close()
        raise
    workbook.path, workbook.name = path, called.name
    return workbook


def _kind(file: BinaryIO, called: Path) -> str:
    if is_xls(file):
        return "xls"
    if is_delimited(called) and not is_zip(file):
        return "csv"
    require_zip(file, called)
    return "zip"


def _zipped(file: BinaryIO, path: Path, called: Path, limits: Limits, *, compiled: bool) -> Workbook:
    archive = Archive(file, limits)
    if is_open_document(archive):
        return OpenDocumentWorkbook(file, archive, called, limits)
    if _XLSB_PART in archive:
        file.close()
        return OldFormatWorkbook(path, "xlsb", limits, name=called.name)
    package = read_package(archive, limits, called.name)
    return PackageWorkbook(called, file, archive, package, limits, compiled=compiled)
