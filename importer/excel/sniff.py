"""What a file is by its first bytes, whatever it is called, and a sentence for each that is no workbook we read."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from importer.errors import WorkbookError

_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PK00")
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_KNOWN: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"SQLite format 3", "an SQLite database"),
)
_HEAD_BYTES = 4096
_DIRECTORY_BYTES = 8 * 1024 * 1024  # how much of a compound file is searched for the names of its streams


def require_zip(file: BinaryIO, path: Path) -> None:
    """Return for a zip archive; raise `WorkbookError` naming what else the file is."""
    head = file.read(_HEAD_BYTES)
    if not head:
        raise WorkbookError("empty_file", f"{path.name} is empty (0 bytes); get the file again")
    if head.startswith(_ZIP):
        return
    if not head.strip(b"\x00"):
        raise WorkbookError("corrupt", f"{path.name} holds nothing but zero bytes; get the file again")
    if head.startswith(_COMPOUND):
        raise _compound(file, path)
    raise WorkbookError("not_a_spreadsheet", f"{path.name} is no Excel workbook: it is {_describe(head)}")


def is_zip(file: BinaryIO) -> bool:
    """Whether a file begins as a zip archive does; the file is at 0 after it."""
    head = file.read(4)
    file.seek(0)
    return head.startswith(_ZIP)


def is_xls(file: BinaryIO) -> bool:
    """Whether a file is a workbook of the old format (a compound file with its stream); the file is at 0 after it."""
    head = file.read(len(_COMPOUND))
    names = _stream_names(file) if head == _COMPOUND else b""
    file.seek(0)
    return _named(names, "Workbook") or (_named(names, "Book") and not _named(names, "EncryptedPackage"))


def _named(names: bytes, name: str) -> bool:
    return f"{name}\0".encode("utf-16-le") in names


def _stream_names(file: BinaryIO) -> bytes:
    """Give the bytes of a compound file in which the names of its streams stand."""
    file.seek(0)
    content = file.read(_DIRECTORY_BYTES)
    size = file.seek(0, 2)
    if size > _DIRECTORY_BYTES:  # the directory may stand anywhere; its place is in the header
        sector = 1 << int.from_bytes(content[30:32], "little")
        file.seek((int.from_bytes(content[48:52], "little") + 1) * min(sector, 4096))
        content += file.read(_DIRECTORY_BYTES)
    return content


def _compound(file: BinaryIO, path: Path) -> WorkbookError:
    """Tell a workbook with a password and other compound files apart by the names of their streams."""
    if "EncryptedPackage".encode("utf-16-le") in _stream_names(file):
        return WorkbookError(
            "encrypted", f"{path.name} is protected by a password; open it in Excel, remove the password, save it again"
        )
    return WorkbookError(
        "not_a_spreadsheet", f"{path.name} is no Excel workbook: it is an old Office file of another kind"
    )


def _describe(head: bytes) -> str:
    for magic, what in _KNOWN:
        if head.startswith(magic):
            return what
    text = head.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").replace(b"\0", b"").lower()
    if text.startswith((b"<html", b"<!doctype html", b"<table")):
        return "a web page (some programs export one under an Excel name); open it in Excel and save it as .xlsx"
    if b"urn:schemas-microsoft-com:office:spreadsheet" in text:
        return "an XML spreadsheet of Excel 2003; open it in Excel and save it as .xlsx"
    if text.startswith(b"<?xml"):
        return "an XML document"
    if b"\0" not in head:
        return "plain text, probably a CSV file; open it in Excel and save it as .xlsx"
    return "a file of an unknown kind"
