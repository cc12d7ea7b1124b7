"""Workbooks written by hand, part by part, so that a test can hold what no library would write.

`write_workbook(path, '<row r="1"><c r="A1"><v>1</v></c></row>')` makes a whole file around rows; `parts` are the same
parts before they are zipped, for tests that change one; `zip_parts` zips any.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def sheet_xml(rows: str, *, before: str = "", after: str = "") -> str:
    """Give a worksheet part around row elements."""
    head = f'{DECLARATION}<worksheet xmlns="{MAIN}" xmlns:r="{OFFICE}">{before}<sheetData>'
    return f"{head}{rows}</sheetData>{after}</worksheet>"


def styles_xml(codes: Sequence[str]) -> str:
    """Give a styles part whose cell format n + 1 has the number format `codes[n]`; 0 is General."""
    formats = "".join(
        f"<numFmt numFmtId={quoteattr(str(164 + at))} formatCode={quoteattr(code)}/>" for at, code in enumerate(codes)
    )
    xfs = "".join(f'<xf numFmtId="{164 + at}" xfId="0"/>' for at in range(len(codes)))
    return (
        f'{DECLARATION}<styleSheet xmlns="{MAIN}"><numFmts count="{len(codes)}">{formats}</numFmts>'
        f'<cellStyleXfs count="1"><xf numFmtId="0"/></cellStyleXfs>'
        f'<cellXfs count="{len(codes) + 1}"><xf numFmtId="0" xfId="0"/>{xfs}</cellXfs></styleSheet>'
    )


def strings_xml(items: Sequence[str]) -> str:
    """Give a shared-strings part; an item that starts with "<" is the inside of its `si`, any other is text."""
    inner = (item if item.startswith("<") else f'<t xml:space="preserve">{escape(item)}</t>' for item in items)
    return f'{DECLARATION}<sst xmlns="{MAIN}">' + "".join(f"<si>{item}</si>" for item in inner) + "</sst>"


def relationships_xml(targets: Mapping[str, tuple[str, str]]) -> str:
    """Give a relationships part from id -> (type, target)."""
    items = "".join(
        f"<Relationship Id={quoteattr(key)} Type={quoteattr(kind)} Target={quoteattr(target)}/>"
        for key, (kind, target) in targets.items()
    )
    return f'{DECLARATION}<Relationships xmlns="{PACKAGE}/relationships">{items}</Relationships>'


def parts(
    sheets: str | Mapping[str, str],
    *,
    formats: Sequence[str] = (),
    strings: Sequence[str] | None = None,
    date_1904: bool = False,
    content_type: str = XLSX,
) -> dict[str, str | bytes]:
    """Give the parts of a workbook. `sheets` is rows of one sheet ("Sheet1"), or whole sheet parts by name."""
    by_name = {"Sheet1": sheet_xml(sheets)} if isinstance(sheets, str) else dict(sheets)
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(by_name, 1)
    )
    targets = {f"rId{at}": (f"{OFFICE}/worksheet", f"worksheets/sheet{at}.xml") for at in range(1, len(by_name) + 1)}
    targets["rIdStyles"] = (f"{OFFICE}/styles", "styles.xml")
    if strings is not None:
        targets["rIdStrings"] = (f"{OFFICE}/sharedStrings", "sharedStrings.xml")
    made: dict[str, str | bytes] = {
        "[Content_Types].xml": (
            f'{DECLARATION}<Types xmlns="{PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{content_type}"/></Types>'
        ),
        "_rels/.rels": relationships_xml({"rId1": (f"{OFFICE}/officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": (
            f'{DECLARATION}<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><workbookPr date1904="{int(date_1904)}"/>'
            f"<sheets>{listed}</sheets></workbook>"
        ),
        "xl/_rels/workbook.xml.rels": relationships_xml(targets),
        "xl/styles.xml": styles_xml(formats),
    }
    if strings is not None:
        made["xl/sharedStrings.xml"] = strings_xml(strings)
    return made | {f"xl/worksheets/sheet{at}.xml": part for at, part in enumerate(by_name.values(), 1)}


def zip_parts(path: Path, made: Mapping[str, str | bytes], *, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Zip parts into a file; the same parts give the same bytes, whatever the time."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in made.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return path


def write_workbook(
    path: Path,
    sheets: str | Mapping[str, str],
    *,
    formats: Sequence[str] = (),
    strings: Sequence[str] | None = None,
    date_1904: bool = False,
    content_type: str = XLSX,
) -> Path:
    """Write a workbook; see `parts`."""
    made = parts(sheets, formats=formats, strings=strings, date_1904=date_1904, content_type=content_type)
    return zip_parts(path, made)
