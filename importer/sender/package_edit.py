"""A workbook's package copied part by part, some parts changed; all others stay byte for byte as they were."""

from __future__ import annotations

import posixpath
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from importer.errors import WorkbookError

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#: The same relationships in a workbook saved as "Strict Open XML".
STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DECLARATION = b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

_TYPES = "[Content_Types].xml"
_RELATIONSHIP = re.compile(rb"<(?:\w+:)?Relationship\b[^>]*>")
_ATTRIBUTE = re.compile(rb"""([\w:]+)\s*=\s*("[^"]*"|'[^']*')""")
_BLOCK_BYTES = 1 << 20


def attributes(tag: bytes) -> dict[str, str]:
    """The attributes of a start tag, entities resolved."""
    return {name.decode(): _plain(value[1:-1].decode()) for name, value in _ATTRIBUTE.findall(tag)}


def _plain(text: str) -> str:
    for entity, mark in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(entity, mark)
    return text


class Package:
    """A package that is read, with what is to be written in place of its parts or beside them.

    Small parts are changed whole (`read`, `put`); a sheet is given as a stream of pieces.
    """

    def __init__(self, source: Path) -> None:
        self._zip = zipfile.ZipFile(source)
        self._changed: dict[str, bytes] = {}
        self._names = set(self._zip.namelist())
        self._by_fold = {name.casefold(): name for name in self._names}

    def close(self) -> None:
        """Close the file that is read."""
        self._zip.close()

    @property
    def names(self) -> set[str]:
        """Names of all parts, the new ones too."""
        return self._names | set(self._changed)

    def read(self, part: str) -> bytes:
        """A whole part as it is to be written, in UTF-8."""
        if part in self._changed:
            return self._changed[part]
        content = self._zip.read(self._stored(part))
        require_utf8(content, part)
        return content

    def put(self, part: str, content: bytes) -> None:
        """Write this in place of a part, or as a new one."""
        self._changed[self._by_fold.get(part.casefold(), part)] = content

    def has(self, part: str) -> bool:
        """Whether there is such a part."""
        return part in self._changed or part.casefold() in self._by_fold

    def blocks(self, part: str) -> Iterator[bytes]:
        """A part in blocks as it is stored."""
        with self._zip.open(self._stored(part)) as stream:
            while block := stream.read(_BLOCK_BYTES):
                yield block

    def free_name(self, pattern: str) -> str:
        """The first name of the pattern (`xl/comments{}.xml`) that no part has."""
        taken = {name.casefold() for name in self.names}
        return next(name for n in range(1, len(taken) + 2) if (name := pattern.format(n)).casefold() not in taken)

    def write(self, target: Path, streams: dict[str, Iterable[bytes]]) -> None:
        """Write the package; `streams` are parts given in pieces. An unfinished file is removed."""
        partial = target.with_name(f".{target.name}.part")
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as out:
                for item in self._zip.infolist():
                    self._write_part(out, item, streams)
                for name in sorted(set(self._changed) - self._names):
                    out.writestr(name, self._changed[name])
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def _write_part(self, out: zipfile.ZipFile, item: zipfile.ZipInfo, streams: dict[str, Iterable[bytes]]) -> None:
        if item.filename in self._changed:
            out.writestr(item.filename, self._changed[item.filename])
            return
        with out.open(item.filename, "w", force_zip64=item.file_size > 1 << 31) as part:
            if item.filename in streams:
                for piece in streams[item.filename]:
                    part.write(piece)
            else:
                with self._zip.open(item) as stored:
                    shutil.copyfileobj(stored, part, _BLOCK_BYTES)

    def stored_name(self, part: str) -> str:
        """The part's name as the package spells it."""
        return self._stored(part)

    def _stored(self, part: str) -> str:
        try:
            return self._by_fold[part.casefold()]
        except KeyError:
            raise WorkbookError("corrupt", f"the workbook lacks its part {part}") from None

    # ---- relationships and content types

    def relationships(self, part: str) -> dict[str, tuple[str, str]]:
        """What a part refers to: id -> (last word of the type, part)."""
        rels = _rels_of(part)
        if not self.has(rels):
            return {}
        found = {}
        for tag in _RELATIONSHIP.findall(self.read(rels)):
            its = attributes(tag)
            if its.get("TargetMode") == "External" or "Id" not in its:
                continue
            path = its.get("Target", "")
            place = (
                path[1:] if path.startswith("/") else posixpath.normpath(posixpath.join(posixpath.dirname(part), path))
            )
            found[its["Id"]] = (its.get("Type", "").rpartition("/")[2], place)
        return found

    def relate(self, part: str, kind: str, to: str) -> str:
        """Let a part refer to another; return the id."""
        rels = _rels_of(part)
        empty = (
            DECLARATION
            + b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"></Relationships>'
        )
        text = self.read(rels) if self.has(rels) else empty
        text = re.sub(rb"<((?:\w+:)?Relationships)\b([^>]*?)/>\s*$", rb"<\1\2></\1>", text)
        taken = {attributes(tag).get("Id") for tag in _RELATIONSHIP.findall(text)}
        key = next(key for n in range(1, len(taken) + 2) if (key := f"rIdRowlease{n}") not in taken)
        base = STRICT if STRICT.encode() in text or self.is_strict else OFFICE
        prefix = _prefix(text, b"Relationships")
        its = f"Id={quoteattr(key)} Type={quoteattr(f'{base}/{kind}')} Target={quoteattr('/' + to)}"
        item = f"<{prefix}Relationship {its}/>"
        self.put(rels, before_end(text, "Relationships", item.encode()))
        return key

    @property
    def is_strict(self) -> bool:
        """Whether the workbook was saved as "Strict Open XML"."""
        return STRICT.encode() in self._zip.read("_rels/.rels")

    def declare(self, *, part: str | None = None, extension: str | None = None, content_type: str) -> None:
        """Say the content type of a new part, or of all parts with an ending."""
        text = self.read(_TYPES)
        prefix = _prefix(text, b"Types")
        if extension is not None:
            if re.search(rb'Extension\s*=\s*["\']' + extension.encode() + rb'["\']', text, re.IGNORECASE):
                return
            item = f"<{prefix}Default Extension={quoteattr(extension)} ContentType={quoteattr(content_type)}/>"
            end = re.search(rb"<(?:\w+:)?Types\b[^>]*>", text)
            assert end is not None  # every package has it
            self.put(_TYPES, text[: end.end()] + item.encode() + text[end.end() :])
            return
        item = f"<{prefix}Override PartName={quoteattr(f'/{part}')} ContentType={quoteattr(content_type)}/>"
        self.put(_TYPES, before_end(text, "Types", item.encode()))


def require_utf8(content: bytes, part: str) -> None:
    """Refuse a part in another encoding than UTF-8: editing bytes would break it."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or re.match(
        rb"""<\?xml[^>]*encoding\s*=\s*["'](?!utf-8)""", content, re.IGNORECASE
    ):
        raise WorkbookError("encoding", f"the part {part} of the workbook is not written in UTF-8")


def _rels_of(part: str) -> str:
    return f"{posixpath.dirname(part)}/_rels/{posixpath.basename(part)}.rels".lstrip("/")


def _prefix(text: bytes, element: bytes) -> str:
    found = re.search(rb"<(\w+:)?" + element + rb"\b", text)
    return (found[1] or b"").decode() if found else ""


def before_end(text: bytes, element: str, item: bytes) -> bytes:
    """Put something before the last end tag of an element."""
    ends = list(re.finditer(rb"</(?:\w+:)?" + element.encode() + rb"\s*>", text))
    if not ends:
        raise WorkbookError("corrupt", f"a part of the workbook has no end of {element}")
    return text[: ends[-1].start()] + item + text[ends[-1].start() :]


def inline_text(text: str) -> str:
    """A text as XML, its spaces and line breaks kept."""
    return f'<t xml:space="preserve">{escape(text)}</t>'
