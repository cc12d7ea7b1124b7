"""The zip archive of a workbook: opened with suspicion, its parts inflated in pieces.

zipfile reads the directory; everything that bounds work (entries, overlaps, declared and real sizes, ratios) and the
inflating itself is done here, because zipfile believes what the directory says.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import BinaryIO, TypeVar

from importer.errors import WorkbookError
from importer.excel.limits import Limits, too_large

T = TypeVar("T")

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_END_OF_DIRECTORY = b"PK\x05\x06"
_STORED, _DEFLATED = 0, 8
_ENCRYPTED_FLAG = 0x1
_READ_BYTES = 256 * 1024
PIECE_BYTES = 1024 * 1024
AHEAD_BYTES = 4 * 1024 * 1024


class Archive:
    """The parts of a workbook by name (case and slashes do not matter, as OPC part names want it).

    Raises `WorkbookError`: corrupt, encrypted, too_large, unsupported_format.
    """

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self._reading = Lock()
        self._refuse_endless_directory()
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, struct.error, OverflowError) as error:
            raise WorkbookError(
                "corrupt",
                "the workbook is damaged: the end of the file is missing or broken, as after a download or upload that "
                "broke off; get the file again",
            ) from error
        except NotImplementedError as error:
            raise WorkbookError("corrupt", f"the workbook's archive cannot be read: {error}") from error
        self._parts: dict[str, zipfile.ZipInfo] = {}
        self._twice: set[str] = set()
        self._index()
        self._refuse_overlaps()

    def _refuse_endless_directory(self) -> None:
        """Look at the declared number of entries before a directory of millions is built."""
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - 65_536 - 22))
        tail = self._file.read()
        at = tail.rfind(_END_OF_DIRECTORY)
        self._file.seek(0)
        if at < 0 or at + 22 > len(tail):
            return  # zipfile says what is wrong
        count, directory_bytes = struct.unpack_from("<HI", tail, at + 10)
        most = self._limits.entries
        if count != 0xFFFF and count > most:
            raise too_large(f"the workbook's archive has {count:,} entries", most)
        if directory_bytes != 0xFFFFFFFF and directory_bytes > most * 512:
            raise too_large("the directory of the workbook's archive is too long for its entries", most)

    def _index(self) -> None:
        entries = self._zip.infolist()
        limits = self._limits
        if len(entries) > limits.entries:
            raise too_large(f"the workbook's archive has {len(entries):,} entries", limits.entries)
        total = 0
        for entry in entries:
            if len(entry.filename) > limits.name_characters:
                raise too_large("a name in the workbook's archive is too long", limits.name_characters)
            total += entry.file_size
            key = _key(entry.filename)
            if key in self._parts:
                self._twice.add(key)
            self._parts[key] = entry
        if total > limits.total_bytes:
            raise too_large(f"the workbook unpacks to {total:,} bytes", limits.total_bytes)

    def _refuse_overlaps(self) -> None:
        """Entries that share bytes unpack to much more than the file holds; no honest program writes them."""
        end = 0
        for entry in sorted(self._zip.infolist(), key=lambda entry: entry.header_offset):
            if entry.header_offset < end:
                raise WorkbookError(
                    "too_large",
                    "the workbook's archive is built to unpack endlessly: its entry "
                    f"{entry.filename!r} overlaps another",
                )
            end = entry.header_offset + _LOCAL_HEADER.size + entry.compress_size

    def __contains__(self, part: str) -> bool:
        return _key(part) in self._parts

    def names(self) -> list[str]:
        """Give the names of all parts, as written."""
        return [entry.filename for entry in self._parts.values()]

    def pieces_ahead(self, part: str) -> Iterator[bytes]:
        """Inflate a part in pieces, the next one in a thread while one is worked on."""
        return read_ahead(self.pieces(part, piece_bytes=AHEAD_BYTES))

    def pieces(self, part: str, *, most_bytes: int | None = None, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
        """Inflate a part in pieces of at most `piece_bytes`, checking sizes as it goes and the checksum at the end."""
        key = _key(part)
        entry = self._parts.get(key)
        if entry is None:
            raise WorkbookError("corrupt", f"the workbook is damaged: its part {part} is missing")
        if key in self._twice:
            raise WorkbookError("corrupt", f"the workbook is damaged: its part {part} is there twice")
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise WorkbookError(
                "encrypted", "the workbook is protected by a password (a zip password); save it without one"
            )
        most = self._limits.part_bytes if most_bytes is None else most_bytes
        if entry.file_size > most:
            raise too_large(f"the part {part} of the workbook unpacks to {entry.file_size:,} bytes", most)
        self._refuse_ratio(part, entry, entry.file_size)
        return self._checked(part, entry, self._inflate(part, entry, piece_bytes))

    def read(self, part: str) -> bytes:
        """Inflate a small part whole."""
        return b"".join(self.pieces(part, most_bytes=self._limits.description_bytes))

    def _refuse_ratio(self, part: str, entry: zipfile.ZipInfo, size: int) -> None:
        limits = self._limits
        if size > limits.ratio_from_bytes and size > limits.ratio * max(entry.compress_size, 1):
            raise too_large(
                f"the part {part} of the workbook unpacks to {size:,} bytes from {entry.compress_size:,}, more than "
                "any real sheet does",
                limits.ratio,
            )

    def _checked(self, part: str, entry: zipfile.ZipInfo, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = checksum = 0
        for piece in pieces:
            size += len(piece)
            if size > entry.file_size:
                raise _damaged(part, "it holds more than the archive says")
            checksum = zlib.crc32(piece, checksum)
            yield piece
        if size != entry.file_size or checksum != entry.CRC:
            raise _damaged(part, "its checksum does not match")

    def _inflate(self, part: str, entry: zipfile.ZipInfo, piece_bytes: int) -> Iterator[bytes]:
        if entry.compress_type not in {_STORED, _DEFLATED}:
            raise WorkbookError(
                "unsupported_format",
                f"the part {part} of the workbook is compressed in a way that is not read here (method "
                f"{entry.compress_type}); open it in Excel and save it again",
            )
        at, left = self._begin(part, entry), entry.compress_size
        inflater = zlib.decompressobj(-zlib.MAX_WBITS) if entry.compress_type == _DEFLATED else None
        pending = b""
        while left or pending:
            if not pending:
                pending = self._read(at, min(left, _READ_BYTES))
                if not pending:
                    raise _damaged(part, "the file ends within it")
                at += len(pending)
                left -= len(pending)
            if inflater is None:
                yield pending
                pending = b""
                continue
            try:
                piece = inflater.decompress(pending, piece_bytes)
            except zlib.error as error:
                raise _damaged(part, "it cannot be unpacked") from error
            pending = inflater.unconsumed_tail
            if piece:
                yield piece
            if inflater.eof:
                return
        if inflater is not None:
            yield from self._rest(part, inflater, piece_bytes)

    def _rest(self, part: str, inflater: zlib._Decompress, piece_bytes: int) -> Iterator[bytes]:
        while not inflater.eof:
            piece = inflater.decompress(b"", piece_bytes)
            if not piece:
                raise _damaged(part, "it breaks off")
            yield piece

    def _read(self, at: int, size: int) -> bytes:
        with self._reading:  # two sheets may be read at once, each ahead in a thread of its own
            self._file.seek(at)
            return self._file.read(size)

    def _begin(self, part: str, entry: zipfile.ZipInfo) -> int:
        """Find where the bytes of an entry begin: after its own header, which may be longer than the directory says."""
        header = self._read(entry.header_offset, _LOCAL_HEADER.size)
        if len(header) != _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise _damaged(part, "the archive points to a wrong place")
        fields = _LOCAL_HEADER.unpack(header)
        return entry.header_offset + _LOCAL_HEADER.size + int(fields[9]) + int(fields[10])


def _key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _damaged(part: str, how: str) -> WorkbookError:
    return WorkbookError(
        "corrupt", f"the workbook is damaged: its part {part} cannot be read, {how}; get the file again or save it anew"
    )


def read_ahead(pieces: Iterator[T]) -> Iterator[T]:
    """Yield pieces while the next one is being made in a thread (zlib, the scanner and polars do not need the GIL)."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as pool:
        coming = pool.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = pool.submit(next, pieces, None)
            yield piece


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading, or say in plain words why it cannot be."""
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise WorkbookError("not_a_spreadsheet", f"there is no file {path}") from error
    except IsADirectoryError as error:
        raise WorkbookError("not_a_spreadsheet", f"{path} is a folder, not a workbook") from error
    except PermissionError as error:
        what = "is a folder, not a workbook" if path.is_dir() else "may not be read by this user"
        raise WorkbookError("not_a_spreadsheet", f"{path} {what}") from error
