"""Cell formats: for each one, what a number under it is."""

from __future__ import annotations

from importer.excel.archive import Archive
from importer.excel.cells import Kind
from importer.excel.limits import Limits, too_large
from importer.excel.number_format import BUILTIN, kind_of
from importer.excel.safe_xml import main_names, parse

_NAMES = main_names("numFmt", "cellXfs", "cellStyleXfs", "xf", "dxfs")


def read_style_kinds(archive: Archive, part: str | None, limits: Limits) -> list[Kind]:
    """Give, by index of the cell format (`s` of a cell), the kind of a number under it; empty without styles."""
    if part is None:
        return []
    reader = _StylesReader(limits)
    parse(
        part,
        archive.pieces(part, most_bytes=limits.description_bytes),
        limits,
        start=reader.start,
        end=reader.end,
    )
    return [reader.kind(form) for form in reader.cell_formats]


class _StylesReader:
    """Collects number formats and the cell formats that use them."""

    def __init__(self, limits: Limits) -> None:
        #: of each cell format: the id of its number format, and of the style it stands on
        self.cell_formats: list[tuple[int | None, int]] = []
        self._style_formats: list[int | None] = []
        self._codes: dict[int, str] = {}
        self._limits = limits
        self._path: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = _NAMES.get(name, "")
        parent = self._path[-1] if self._path else ""
        if local == "numFmt" and "dxfs" not in self._path:
            number = _integer(attributes.get("numFmtId"))
            if number is not None:
                self._codes[number] = attributes.get("formatCode", "")
        elif local == "xf" and parent == "cellXfs":
            style = _integer(attributes.get("xfId")) or 0
            self.cell_formats.append((_integer(attributes.get("numFmtId")), style))
            if len(self.cell_formats) > self._limits.cell_formats:
                raise too_large("the workbook has too many cell formats", self._limits.cell_formats)
        elif local == "xf" and parent == "cellStyleXfs":
            self._style_formats.append(_integer(attributes.get("numFmtId")))
        self._path.append(local)

    def end(self, _: str) -> None:
        self._path.pop()

    def kind(self, cell_format: tuple[int | None, int]) -> Kind:
        """Give the kind of a number under a cell format; a code in the file goes before the builtin of that id."""
        number, style = cell_format
        if number is None and style < len(self._style_formats):
            number = self._style_formats[style]
        if number is None:
            return Kind.NUMBER
        code = self._codes.get(number)
        return BUILTIN.get(number, Kind.NUMBER) if code is None else kind_of(code)


def _integer(text: str | None) -> int | None:
    try:
        number = int((text or "").strip())
    except ValueError:
        return None
    return number if number >= 0 else None
