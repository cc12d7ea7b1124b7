"""The many ways a sound workbook is packed, and what is told of a file that is none."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from importer.errors import WorkbookError
from importer.excel import open_workbook
from tests.pure.excel.reading import read, refused
from tests.workbooks import MAIN, OFFICE, XLSX, parts, relationships_xml, sheet_xml, write_workbook, zip_parts

ROW = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>45351</v></c></row>'
CELLS = [(1, 0, "text", "é"), (1, 1, "date", "45351")]
Parts = dict[str, str | bytes]


def _absolute(made: Parts) -> None:
    made["xl/_rels/workbook.xml.rels"] = str(made["xl/_rels/workbook.xml.rels"]).replace('Target="', 'Target="/xl/')
    made["_rels/.rels"] = str(made["_rels/.rels"]).replace('Target="', 'Target="/')


def _roundabout(made: Parts) -> None:
    made["xl/_rels/workbook.xml.rels"] = str(made["xl/_rels/workbook.xml.rels"]).replace(
        'Target="', 'Target="./../xl/sub%2F../'
    )


def _back_slashes(made: Parts) -> None:
    for name in list(made):
        made[name.replace("/", "\\")] = made.pop(name)


def _other_case(made: Parts) -> None:
    made["xl/SharedStrings.xml"] = made.pop("xl/sharedStrings.xml")
    made["xl/Worksheets/Sheet1.xml"] = made.pop("xl/worksheets/sheet1.xml")


def _other_names(made: Parts) -> None:
    made["book/main.xml"] = made.pop("xl/workbook.xml")
    made["book/_rels/main.xml.rels"] = str(made.pop("xl/_rels/workbook.xml.rels")).replace('Target="', 'Target="../xl/')
    made["_rels/.rels"] = str(made["_rels/.rels"]).replace("xl/workbook.xml", "book/main.xml")
    made["[Content_Types].xml"] = str(made["[Content_Types].xml"]).replace("/xl/workbook.xml", "/book/main.xml")


def _prefixes(made: Parts) -> None:
    for name in ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"):
        text = str(made[name]).replace("<?xml", "\0").replace("</", "\1").replace("<", "<x:").replace("\1", "</x:")
        text = text.replace("\0", "<?xml").replace(f'xmlns="{MAIN}"', f'xmlns:x="{MAIN}"')
        made[name] = text.replace("xmlns:r=", "xmlns:odd=").replace("r:id", "odd:id")


def _strict(made: Parts) -> None:
    for name, content in made.items():
        made[name] = (
            str(content)
            .replace(MAIN, "http://purl.oclc.org/ooxml/spreadsheetml/main")
            .replace(OFFICE, "http://purl.oclc.org/ooxml/officeDocument/relationships")
        )


def _no_namespace(made: Parts) -> None:
    for name in ("xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"):
        made[name] = str(made[name]).replace(f' xmlns="{MAIN}"', "")


def _byte_order_marks(made: Parts) -> None:
    for name, content in made.items():
        made[name] = b"\xef\xbb\xbf" + str(content).encode()


def _encoded(encoding: str) -> Callable[[Parts], None]:
    def change(made: Parts) -> None:
        for name, content in made.items():
            made[name] = str(content).replace('encoding="UTF-8"', f'encoding="{encoding}"').encode(encoding)

    return change


def _no_declaration(made: Parts) -> None:
    for name, content in made.items():
        made[name] = str(content).partition("?>\n")[2]


def _no_content_types(made: Parts) -> None:
    del made["[Content_Types].xml"]


def _no_relationships_beside(made: Parts) -> None:
    made["xl/_rels/workbook.xml.rels"] = relationships_xml({"rId1": (f"{OFFICE}/worksheet", "worksheets/sheet1.xml")})


def _pretty(made: Parts) -> None:
    for name in ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"):
        made[name] = str(made[name]).replace("><", ">\r\n\t<")


def _senseless_properties(made: Parts) -> None:
    made["docProps/core.xml"] = "<cp:coreProperties><dcterms:created>99999"


FORMS: dict[str, Callable[[Parts], None]] = {
    "as written": lambda _: None,
    "absolute targets": _absolute,
    "roundabout targets": _roundabout,
    "back slashes in names": _back_slashes,
    "names in another case": _other_case,
    "other part names": _other_names,
    "a prefix on every element": _prefixes,
    "strict namespaces": _strict,
    "no namespace": _no_namespace,
    "byte-order marks": _byte_order_marks,
    "UTF-16": _encoded("UTF-16"),
    "ISO-8859-1": _encoded("ISO-8859-1"),
    "windows-1252": _encoded("windows-1252"),
    "no XML declaration": _no_declaration,
    "no content types": _no_content_types,
    "strings and styles without relationship": _no_relationships_beside,
    "white space between elements": _pretty,
    "senseless document properties": _senseless_properties,
}


@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS.keys())
def test_a_sound_workbook_is_read_however_it_is_packed(tmp_path: Path, change: Callable[[Parts], None]) -> None:
    """Targets, names, prefixes, namespaces, encodings and white space change nothing of the cells."""
    made = parts(ROW, formats=["yyyy-mm-dd"], strings=["é"])

    change(made)

    assert read(zip_parts(tmp_path / "a.xlsx", made)) == CELLS


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_sizes_may_stand_after_the_bytes(tmp_path: Path, method: int) -> None:
    """An archive written as a stream has its sizes in data descriptors only."""

    class Stream(io.RawIOBase):
        content = b""

        def writable(self) -> bool:
            return True

        def write(self, piece: bytes) -> int:  # type: ignore[override]  # any buffer is bytes here
            self.content += bytes(piece)
            return len(piece)

    stream = Stream()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in parts(ROW, formats=["yyyy-mm-dd"], strings=["é"]).items():
            archive.writestr(name, content)
    path = tmp_path / "a.xlsx"
    path.write_bytes(stream.content)

    assert read(path) == CELLS


def test_bytes_before_the_archive_do_not_matter(tmp_path: Path) -> None:
    """An archive may grow: entries that were replaced stay in the file, unlisted."""
    path = write_workbook(tmp_path / "a.xlsx", "")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/styles.xml", "<x/>")

    assert refused(path).reason == "corrupt"


@pytest.mark.parametrize(
    ("content_type", "format_"),
    [
        (XLSX, "xlsx"),
        (XLSX.replace("sheet.main", "template.main"), "xltx"),
        ("application/vnd.ms-excel.sheet.macroEnabled.main+xml", "xlsm"),
        ("application/vnd.ms-excel.template.macroEnabled.main+xml", "xltm"),
    ],
)
def test_the_format_is_what_the_file_says_of_itself(tmp_path: Path, content_type: str, format_: str) -> None:
    """The content type of the workbook part decides, not the ending of the file name."""
    path = write_workbook(tmp_path / "a.bin", ROW, content_type=content_type)

    with open_workbook(path) as workbook:
        assert workbook.format == format_


def test_sheets_are_listed_with_kind_and_visibility(tmp_path: Path) -> None:
    """Chart sheets, dialogs and hidden sheets are sheets too, in the order of their tabs."""
    kinds = ["worksheet", "chartsheet", "dialogsheet", "worksheet", "worksheet"]
    made = parts({f"S{at}": sheet_xml("") for at in range(1, 6)} | {"_x0041_&": sheet_xml("")})
    rels = str(made["xl/_rels/workbook.xml.rels"])
    for at, kind in enumerate(kinds, 1):
        rels = rels.replace(
            f'{OFFICE}/worksheet" Target="worksheets/sheet{at}.xml',
            f'{OFFICE}/{kind}" Target="worksheets/sheet{at}.xml',
        )
    book = str(made["xl/workbook.xml"]).replace('name="S4"', 'name="S4" state="hidden"')
    made |= {"xl/_rels/workbook.xml.rels": rels, "xl/workbook.xml": book.replace('"S5"', '"S5" state="veryHidden"')}

    with open_workbook(zip_parts(tmp_path / "a.xlsx", made)) as workbook:
        listed = [(sheet.name, sheet.kind, sheet.visible, sheet.position) for sheet in workbook.sheets]

    assert listed == [
        ("S1", "worksheet", True, 0),
        ("S2", "chartsheet", True, 1),
        ("S3", "dialogsheet", True, 2),
        ("S4", "worksheet", False, 3),
        ("S5", "worksheet", False, 4),
        ("A&", "worksheet", True, 5),
    ]


def _compound(*streams: str) -> bytes:
    """Give the beginning of a compound file whose directory names these streams."""
    header = bytearray(512)
    header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    struct.pack_into("<H", header, 30, 9)
    names = b"".join((name + "\0").encode("utf-16-le").ljust(128, b"\0") for name in ("Root Entry", *streams))
    return bytes(header) + names.ljust(1024, b"\0")


STRANGERS: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "empty_file", "0 bytes"),
    "text": (b"code,qty\nA1,1\n", "not_a_spreadsheet", "CSV"),
    "text in UTF-16": ("code\tqty\r\n".encode("utf-16"), "not_a_spreadsheet", "no Excel workbook"),
    "web page": (b"\r\n<html><table><tr><td>1", "not_a_spreadsheet", "web page"),
    "Excel 2003": (
        b'<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
        "not_a_spreadsheet",
        "Excel 2003",
    ),
    "PDF": (b"%PDF-1.7", "not_a_spreadsheet", "PDF"),
    "zeros": (b"\0" * 5000, "corrupt", "zero bytes"),
    "password": (_compound("EncryptionInfo", "EncryptedPackage"), "encrypted", "password"),
    "damaged xls": (_compound("Workbook"), "corrupt", "damaged"),
    "old Word": (_compound("WordDocument"), "not_a_spreadsheet", "another kind"),
    "beginning of an archive": (b"PK\x03\x04" + b"\0" * 200, "corrupt", "broke off"),
    "empty archive": (b"PK\x05\x06" + b"\0" * 18, "not_a_spreadsheet", "without a workbook"),
}


@pytest.mark.parametrize(("content", "reason", "says"), STRANGERS.values(), ids=STRANGERS.keys())
def test_a_file_that_is_no_workbook_is_named(tmp_path: Path, content: bytes, reason: str, says: str) -> None:
    """Whatever a file is called, its bytes say what it is, and the message says it in plain words."""
    path = tmp_path / "report.xlsx"
    path.write_bytes(content)

    error = refused(path)

    assert error.reason == reason
    assert says in str(error)


ARCHIVES: dict[str, tuple[Parts, str, str]] = {
    "Word": (
        {
            "[Content_Types].xml": (
                '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
                'officedocument.wordprocessingml.document.main+xml"/></Types>'
            ),
            "_rels/.rels": relationships_xml({"r": (f"{OFFICE}/officeDocument", "word/document.xml")}),
            "word/document.xml": "<x/>",
        },
        "not_a_spreadsheet",
        "Word",
    ),
    "damaged xlsb": (
        {
            "[Content_Types].xml": (
                '<Types><Default Extension="bin" ContentType="application/vnd.ms-excel.sheet.binary.'
                'macroEnabled.main"/></Types>'
            ),
            "_rels/.rels": relationships_xml({"r": (f"{OFFICE}/officeDocument", "xl/workbook.bin")}),
            "xl/workbook.bin": b"\x83\x01\x00",
        },
        "corrupt",
        "damaged",
    ),
    "OpenDocument text": (
        {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<x/>"},
        "not_a_spreadsheet",
        "no spreadsheet",
    ),
    "OpenDocument without a sheet": (
        {"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<x/>"},
        "corrupt",
        "no sheet",
    ),
    "Numbers": ({"Index/Document.iwa": b"\0"}, "not_a_spreadsheet", "Numbers"),
    "zipped workbook": ({"march.xlsx": b"PK"}, "not_a_spreadsheet", "unpack"),
}


@pytest.mark.parametrize(("made", "reason", "says"), ARCHIVES.values(), ids=ARCHIVES.keys())
def test_an_archive_that_is_no_workbook_is_named(tmp_path: Path, made: Parts, reason: str, says: str) -> None:
    """A zip archive of another kind is told by what is in it."""
    error = refused(zip_parts(tmp_path / "report.xlsx", made))

    assert error.reason == reason
    assert says in str(error)


def test_a_folder_and_a_missing_file_are_told(tmp_path: Path) -> None:
    """What is no file at all is a clear sentence too."""
    for path, says in ((tmp_path, "folder"), (tmp_path / "none.xlsx", "no file")):
        with pytest.raises(WorkbookError, match=says):
            open_workbook(path)


def _without(part: str) -> Callable[[Parts], None]:
    def change(made: Parts) -> None:
        del made[part]

    return change


BROKEN: dict[str, tuple[Callable[[Parts], None], str]] = {
    "sheet part missing": (_without("xl/worksheets/sheet1.xml"), "missing"),
    "no relationships of the workbook": (_without("xl/_rels/workbook.xml.rels"), "where its sheet Sheet1 is"),
    "no sheets": (lambda made: made.update({"xl/workbook.xml": f'<workbook xmlns="{MAIN}"/>'}), "no sheet"),
    "sheet part of another kind": (
        lambda made: made.update({"xl/worksheets/sheet1.xml": f'<sst xmlns="{MAIN}"/>'}),
        "no worksheet",
    ),
    "styles that are no XML": (lambda made: made.update({"xl/styles.xml": "<styleSheet"}), "xl/styles.xml"),
    "control character": (
        lambda made: made.update({"xl/sharedStrings.xml": f'<sst xmlns="{MAIN}"><si><t>\x01</t></si></sst>'}),
        "xl/sharedStrings.xml",
    ),
    "no UTF-8": (lambda made: made.update({"xl/worksheets/sheet1.xml": b"<worksheet a='\xff\xfe'/>"}), "sheet1.xml"),
    "two roots": (lambda made: made.update({"xl/worksheets/sheet1.xml": sheet_xml("") + "<x/>"}), "sheet1.xml"),
}


@pytest.mark.parametrize(("change", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_workbook_with_a_broken_part_is_refused(tmp_path: Path, change: Callable[[Parts], None], says: str) -> None:
    """A part that is missing or no sound XML is corrupt, and the message names it."""
    made = parts(ROW, formats=["yyyy-mm-dd"], strings=["é"])

    change(made)
    error = refused(zip_parts(tmp_path / "a.xlsx", made))

    assert error.reason == "corrupt"
    assert says in str(error)


def test_an_unknown_encoding_is_told(tmp_path: Path) -> None:
    """An encoding that no parser knows is the reason `encoding`."""
    made = parts(ROW)
    made["xl/worksheets/sheet1.xml"] = str(made["xl/worksheets/sheet1.xml"]).replace("UTF-8", "x-none")

    assert refused(zip_parts(tmp_path / "a.xlsx", made)).reason == "encoding"


def test_an_archive_cut_off_or_changed_is_corrupt(tmp_path: Path) -> None:
    """Wherever the bytes end or differ, the workbook is refused or reads the same; it never reads otherwise."""
    path = write_workbook(tmp_path / "a.xlsx", ROW, formats=["yyyy-mm-dd"], strings=["é"])
    sound = path.read_bytes()

    for cut in range(4, len(sound), 37):
        path.write_bytes(sound[:cut])
        assert refused(path).reason == "corrupt"


def test_a_zip_password_is_told(tmp_path: Path) -> None:
    """An archive with encrypted entries is `encrypted`, not damaged."""
    path = write_workbook(tmp_path / "a.xlsx", ROW)
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        content[at + 8] |= 1
        at = content.find(b"PK\x01\x02", at + 1)
    path.write_bytes(content)

    error = refused(path)

    assert error.reason == "encrypted"
    assert "password" in str(error)
