"""The package of a workbook: which part is what, by relationships and content types (ECMA-376 part 2)."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from urllib.parse import unquote

from importer.errors import WorkbookError
from importer.excel.archive import Archive
from importer.excel.cells import Sheet, SheetKind
from importer.excel.limits import Limits, too_large
from importer.excel.safe_xml import local_name, main_names, namespace, parse
from importer.excel.strings import decode_escapes

_FORMATS = {
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml": "xlsx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml": "xltx",
    "application/vnd.ms-excel.sheet.macroenabled.main+xml": "xlsm",
    "application/vnd.ms-excel.template.macroenabled.main+xml": "xltm",
    "application/vnd.ms-excel.addin.macroenabled.main+xml": "xlsm",
}
_OTHERS = {
    "application/vnd.ms-excel.sheet.binary.macroenabled.main": (
        "unsupported_format",
        "it is a binary workbook (.xlsb); open it in Excel and save it as .xlsx",
    ),
    "wordprocessingml": ("not_a_spreadsheet", "it is a Word document"),
    "presentationml": ("not_a_spreadsheet", "it is a PowerPoint presentation"),
    "visio": ("not_a_spreadsheet", "it is a Visio drawing"),
}
_SHEET_KINDS: dict[str, SheetKind] = {
    "worksheet": "worksheet",
    "chartsheet": "chartsheet",
    "dialogsheet": "dialogsheet",
    "xlmacrosheet": "macrosheet",
    "xlintlmacrosheet": "macrosheet",
}
_TRUE = {"1", "true", "on"}
_WORKBOOK = main_names("workbook", "sheets", "sheet", "workbookPr")


@dataclass(frozen=True)
class Relationship:
    """One relationship: the last word of its type, and the part it points to."""

    kind: str
    part: str


@dataclass(frozen=True, kw_only=True)
class Package:
    """What the package says about the workbook as a whole."""

    #: xlsx, xlsm, xltx or xltm
    format: str
    #: whether serials count from 1904
    date_1904: bool
    #: all sheets in the order of their tabs
    sheets: tuple[Sheet, ...]
    #: the part of each sheet by position; "" where the workbook names none
    sheet_parts: tuple[str, ...]
    #: the part of the shared strings, None without one
    shared_strings: str | None
    #: the part of the styles, None without one
    styles: str | None


def read_package(archive: Archive, limits: Limits, file_name: str) -> Package:
    """Find the workbook part and read what it says; `WorkbookError` when there is none."""
    main, content_type = _main_part(archive, limits, file_name)
    relationships = read_relationships(archive, main, limits)
    reader = _WorkbookReader(limits)
    parse(main, iter([archive.read(main)]), limits, start=reader.start, end=reader.end)
    if not reader.is_workbook:
        raise WorkbookError("not_a_spreadsheet", f"{file_name} is no Excel workbook: its main part is something else")
    if not reader.sheets:
        raise WorkbookError("corrupt", f"{file_name} is damaged: it lists no sheet at all")
    sheets, parts = [], []
    for position, (name, state, rid) in enumerate(reader.sheets):
        target = relationships.get(rid)
        kind = _SHEET_KINDS.get(target.kind, "worksheet") if target else "worksheet"
        sheets.append(Sheet(name=name, kind=kind, visible=state not in {"hidden", "veryhidden"}, position=position))
        parts.append(target.part if target else "")
    return Package(
        format=_FORMATS.get(content_type, "xlsx"),
        date_1904=reader.date_1904,
        sheets=tuple(sheets),
        sheet_parts=tuple(parts),
        shared_strings=_beside(archive, relationships, main, "sharedstrings", "sharedStrings.xml"),
        styles=_beside(archive, relationships, main, "styles", "styles.xml"),
    )


def _beside(archive: Archive, relationships: dict[str, Relationship], main: str, kind: str, usual: str) -> str | None:
    """Find a part the workbook needs by its relationship, else under its usual name."""
    for relationship in relationships.values():
        if relationship.kind == kind and relationship.part in archive:
            return relationship.part
    part = posixpath.join(posixpath.dirname(main), usual)
    return part if part in archive else None


def _main_part(archive: Archive, limits: Limits, file_name: str) -> tuple[str, str]:
    """Find the part of the workbook and its content type."""
    if "mimetype" in archive and "[Content_Types].xml" not in archive:
        kind = archive.read("mimetype")[:200].decode("ascii", "replace")
        if "opendocument.spreadsheet" in kind:
            raise WorkbookError(
                "unsupported_format", f"{file_name} is an OpenDocument spreadsheet (.ods); save it as .xlsx"
            )
    types = _content_types(archive, limits)
    main = next(
        (
            relationship.part
            for relationship in read_relationships(archive, "", limits).values()
            if relationship.kind == "officedocument" and relationship.part in archive
        ),
        "xl/workbook.xml",
    )
    content_type = types.get(main.lower(), "")
    for word, (reason, what) in _OTHERS.items():
        if word in content_type:
            error: WorkbookError = WorkbookError("not_a_spreadsheet", f"{file_name} is no Excel workbook: {what}")
            if reason == "unsupported_format":
                error = WorkbookError("unsupported_format", f"{file_name} cannot be read: {what}")
            raise error
    if main not in archive:
        raise WorkbookError("not_a_spreadsheet", _describe_stranger(archive, file_name))
    return main, content_type


def _describe_stranger(archive: Archive, file_name: str) -> str:
    names = [name.lower() for name in archive.names()]
    if any((name.startswith("index/") and name.endswith(".iwa")) or name == "index.zip" for name in names):
        what = "an Apple Numbers document; export it as an Excel workbook"
    elif any(name.endswith((".xlsx", ".xlsm", ".xls", ".csv")) for name in names):
        what = "a zip archive with files in it; unpack it and import the workbook inside"
    elif "xl/workbook.bin" in names:
        what = "a binary workbook (.xlsb); open it in Excel and save it as .xlsx"
    else:
        what = "a zip archive without a workbook in it"
    return f"{file_name} is no Excel workbook: it is {what}"


def _content_types(archive: Archive, limits: Limits) -> dict[str, str]:
    """Read the content types of parts named one by one and, under the part's own name, those given by ending."""
    part = "[Content_Types].xml"
    if part not in archive:
        return {}
    overrides: dict[str, str] = {}
    defaults: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("ContentType", "").strip().lower()
        match local_name(name):
            case "Override":
                overrides[_part_name(attributes.get("PartName", ""), "")] = kind
            case "Default":
                defaults[attributes.get("Extension", "").strip().lower()] = kind

    parse(part, iter([archive.read(part)]), limits, start=start, end=_ignore)
    by_ending = {
        name.lower(): defaults[name.lower().rpartition(".")[2]]
        for name in archive.names()
        if name.lower().rpartition(".")[2] in defaults
    }
    return by_ending | {name.lower(): kind for name, kind in overrides.items()}


def read_relationships(archive: Archive, part: str, limits: Limits) -> dict[str, Relationship]:
    """Read the relationships of a part by id ("" is the package itself); none when it has no such part."""
    folder, name = posixpath.split(part)
    source = posixpath.join(folder, "_rels", name + ".rels")
    if source not in archive:
        return {}
    found: dict[str, Relationship] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) != "Relationship" or attributes.get("TargetMode", "").lower() == "external":
            return
        kind = attributes.get("Type", "").strip().rstrip("/").rpartition("/")[2].lower()
        target = _part_name(attributes.get("Target", ""), folder)
        found.setdefault(attributes.get("Id", ""), Relationship(kind, target))

    parse(source, iter([archive.read(source)]), limits, start=start, end=_ignore)
    return found


def _part_name(target: str, folder: str) -> str:
    """Resolve a target as it is written to the name of a part: absolute or relative, escaped, with back slashes."""
    path = unquote(target.strip()).replace("\\", "/").partition("#")[0]
    joined = path if path.startswith("/") else posixpath.join("/", folder, path)
    return posixpath.normpath(joined).lstrip("/")


def _ignore(_: str) -> None:
    """Do nothing at the end of an element."""


class _WorkbookReader:
    """Collects sheets and the date system from the workbook part."""

    def __init__(self, limits: Limits) -> None:
        self.is_workbook = False
        self.date_1904 = False
        self.sheets: list[tuple[str, str, str]] = []
        self._limits = limits
        self._path: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = _WORKBOOK.get(name, "")
        if not self._path:
            self.is_workbook = local == "workbook"
        elif local == "workbookPr":
            self.date_1904 = attributes.get("date1904", "").strip().lower() in _TRUE
        elif local == "sheet" and self._path[-1] == "sheets":
            self._add(attributes)
        self._path.append(local)

    def end(self, _: str) -> None:
        self._path.pop()

    def _add(self, attributes: dict[str, str]) -> None:
        rid = next(
            (
                value
                for key, value in attributes.items()
                if local_name(key) == "id" and namespace(key).endswith("/relationships")
            ),
            "",
        )
        name = decode_escapes(attributes.get("name", ""))[0]
        if len(name) > self._limits.name_characters:
            raise too_large("the name of a sheet is too long", self._limits.name_characters)
        self.sheets.append((name, attributes.get("state", "").strip().lower(), rid))
        if len(self.sheets) > self._limits.sheets:
            raise too_large("the workbook has too many sheets", self._limits.sheets)
