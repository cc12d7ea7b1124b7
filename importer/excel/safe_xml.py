"""A parser that refuses what a workbook never needs: document types, entities, endless tags, deep nesting.

expat does the work (exact, streaming, C); this module adds the bounds and turns its complaints into `WorkbookError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pyexpat import ErrorString, ExpatError, ParserCreate, XMLParserType
from pyexpat.errors import XML_ERROR_INCORRECT_ENCODING, XML_ERROR_UNKNOWN_ENCODING, codes
from typing import NoReturn

from importer.errors import WorkbookError
from importer.excel.limits import Limits, too_large

#: the namespace of spreadsheet elements, transitional and strict (ISO/IEC 29500 part 1, annex A)
MAIN = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
#: stands between namespace and name; no XML text can hold it
SEPARATOR = "\x01"
_ENCODING = {codes[XML_ERROR_INCORRECT_ENCODING], codes[XML_ERROR_UNKNOWN_ENCODING]}


def local_name(name: str) -> str:
    """Give the name without its namespace."""
    return name.rpartition(SEPARATOR)[2]


def namespace(name: str) -> str:
    """Give the namespace of a name, "" without one."""
    return name.rpartition(SEPARATOR)[0]


def main_names(*names: str) -> dict[str, str]:
    """Map the full names of spreadsheet elements to their local ones, for both namespaces and for none."""
    return {prefix + name: name for name in names for prefix in (*(uri + SEPARATOR for uri in MAIN), "")}


class SafeParser:
    """expat with namespaces, in pieces, that calls `start(name, attributes)`, `end(name)` and `text(characters)`.

    `part` is the part's name, for messages. Raises `WorkbookError`: corrupt (no well-formed XML), unsafe_xml (a
    document type), encoding (one that is not known), too_large (a tag or nesting beyond the limits).
    """

    def __init__(
        self,
        part: str,
        limits: Limits,
        *,
        start: Callable[[str, dict[str, str]], object],
        end: Callable[[str], object],
        text: Callable[[str], object] | None = None,
    ) -> None:
        self.part = part
        self.limits = limits
        self.depth = 0
        self._start = start
        self._end = end
        self._unseen = 0  # bytes fed since expat last reported anything
        self._parser = self._make(text)

    def _make(self, text: Callable[[str], object] | None) -> XMLParserType:
        parser = ParserCreate(namespace_separator=SEPARATOR)
        parser.buffer_text = True
        parser.StartElementHandler = self._open
        parser.EndElementHandler = self._close
        parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        return parser

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > self.limits.nesting:
            raise too_large(f"the part {self.part} nests its elements too deeply", self.limits.nesting)
        self._start(name, attributes)

    def _close(self, name: str) -> None:
        self.depth -= 1
        self._end(name)

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise WorkbookError(
            "unsafe_xml",
            f"the part {self.part} of the workbook declares a document type, which no spreadsheet program writes and "
            "which can be used to do harm; it was not read",
        )

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Parse the next bytes of the part."""
        step = self.limits.tag_bytes
        try:
            for begin in range(0, len(piece), step):
                self._parser.Parse(piece[begin : begin + step], False)
                self._check_token(min(step, len(piece) - begin))
            if last:
                self._parser.Parse(b"", True)
        except ExpatError as error:
            raise self._refusal(error) from error
        except (LookupError, ValueError) as error:  # how pyexpat says that Python has no such encoding
            if self.depth:
                raise
            raise self._unknown_encoding() from error

    def _check_token(self, fed: int) -> None:
        """Refuse a tag that goes on and on: expat would have to hold all of it."""
        at = self._parser.CurrentByteIndex
        self._unseen = self._unseen + fed if at == self._seen_at else 0
        self._seen_at = at
        if self._unseen > 2 * self.limits.tag_bytes:
            raise too_large(f"the part {self.part} holds a tag of too many bytes", self.limits.tag_bytes)

    _seen_at = -1

    def _refusal(self, error: ExpatError) -> WorkbookError:
        if error.code in _ENCODING:
            return self._unknown_encoding()
        return WorkbookError(
            "corrupt",
            f"the workbook is damaged: its part {self.part} is no sound XML ({ErrorString(error.code)}, line "
            f"{error.lineno}); open it in Excel, let it repair the file, and save it again",
        )

    def _unknown_encoding(self) -> WorkbookError:
        return WorkbookError(
            "encoding", f"the part {self.part} of the workbook is written in an encoding that cannot be read"
        )


def parse(
    part: str,
    pieces: Iterable[bytes],
    limits: Limits,
    *,
    start: Callable[[str, dict[str, str]], object],
    end: Callable[[str], object],
    text: Callable[[str], object] | None = None,
) -> None:
    """Parse a whole part from its pieces."""
    parser = SafeParser(part, limits, start=start, end=end, text=text)
    for piece in pieces:
        parser.feed(piece)
    parser.feed(b"", last=True)
