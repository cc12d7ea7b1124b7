"""Workbooks as other programs write them: the same cells, whatever the program's habits.

Each case holds the habits of one exporter in the parts it writes otherwise than Excel: attributes, order, prefixes,
where text stands, what it leaves out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pure.excel.reading import read
from tests.workbooks import MAIN, OFFICE, parts, sheet_xml, strings_xml, styles_xml, zip_parts

EXPECTED = [
    (1, 0, "text", "code"),
    (1, 1, "text", "day"),
    (2, 0, "text", "Ä1"),
    (2, 1, "date", "45351"),
    (3, 0, "text", "B2"),
    (3, 1, "date", "45352"),
]
Parts = dict[str, str | bytes]


def _shared(rows: str, **changed: str | bytes) -> Parts:
    made = parts(rows, formats=["yyyy-mm-dd"], strings=["code", "day", "Ä1", "B2"])
    return made | {key.replace("__", "/").replace("_xml", ".xml"): value for key, value in changed.items()}


LIBREOFFICE = (
    '<row r="1" customFormat="false" ht="12.8" hidden="false" customHeight="false" outlineLevel="0" collapsed="false">'
    '<c r="A1" s="0" t="s"><v>0</v></c><c r="B1" s="0" t="s"><v>1</v></c></row>'
    '<row r="2" customFormat="false" ht="12.8" hidden="false" customHeight="false" outlineLevel="0" collapsed="false">'
    '<c r="A2" s="0" t="s"><v>2</v></c><c r="B2" s="1" t="n"><v>45351</v></c></row>'
    '<row r="3" customFormat="false" ht="12.8" hidden="false" customHeight="false" outlineLevel="0" collapsed="false">'
    '<c r="A3" s="0" t="str"><f aca="false">CONCATENATE(&quot;B&quot;,&quot;2&quot;)</f><v>B2</v></c>'
    '<c r="B3" s="1" t="n"><f aca="false">B2+1</f><v>45352</v></c></row>'
)
GOOGLE = (
    '<row r="1"><c r="A1" s="0" t="s"><v>0</v></c><c r="B1" s="0" t="s"><v>1</v></c><c r="C1" s="0"/></row>'
    '<row r="2"><c r="A2" s="0" t="s"><v>2</v></c><c r="B2" s="1"><v>45351.0</v></c></row>'
    '<row r="3"><c r="A3" s="0" t="s"><v>3</v></c><c r="B3" s="1"><v>45352.0</v></c></row>'
    '<row r="4"><c r="A4" s="0"/></row>'
)
NPOI = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
    '<row r="2"><c r="A2" t="s"><v>2</v></c><c r="B2" s="1"><v>45351</v></c></row>'
    '<row r="3"><c r="A3" t="inlineStr"><is><t>B2</t></is></c><c r="B3" s="1" t="n"><v>45352</v></c></row>'
)
SAP = (
    '<row r="1" spans="1:2"><c r="A1" s="0" t="inlineStr"><is><t>code</t></is></c>'
    '<c r="B1" s="0" t="inlineStr"><is><t>day</t></is></c></row>'
    '<row r="2" spans="1:2"><c s="0" r="A2" t="inlineStr"><is><t xml:space="preserve">Ä1</t></is></c>'
    '<c s="1" r="B2"><v>45351</v></c></row>'
    '<row r="3" spans="1:2"><c s="0" r="A3" t="inlineStr"><is><t>B2</t></is></c><c s="1" r="B3"><v>45352</v></c></row>'
)
SSRS = (
    '<row r="1" ht="18" customHeight="1"><c r="A1" s="0" t="inlineStr"><is><r><rPr><b/></rPr><t>code</t></r></is></c>'
    '<c r="B1" s="0" t="inlineStr"><is><r><t xml:space="preserve">day</t></r></is></c></row>'
    '<row r="2" ht="18"><c r="A2" s="0" t="s"><v>2</v></c><c r="B2" s="1"><v>45351</v></c></row>'
    '<row r="3" ht="18"><c r="A3" s="0" t="s"><v>3</v></c><c r="B3" s="1"><v>45352</v></c></row>'
)
NO_NAMES = (
    '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row><row><c t="s"><v>2</v></c><c s="1"><v>45351</v></c></row>'
    '<row><c t="s"><v>3</v></c><c s="1"><v>45352</v></c></row>'
)
TOOLKIT = (
    '<x:row r="1"><x:c r="A1" t="s"><x:v>0</x:v></x:c><x:c r="B1" t="s"><x:v>1</x:v></x:c></x:row>'
    '<x:row r="2"><x:c r="A2" t="s"><x:v>2</x:v></x:c><x:c r="B2" s="1"><x:v>45351</x:v></x:c></x:row>'
    '<x:row r="3"><x:c r="A3" t="s"><x:v>3</x:v></x:c><x:c r="B3" s="1"><x:v>45352</x:v></x:c></x:row>'
)
PRETTY = GOOGLE.replace("><", ">\r\n      <").replace(".0<", "<")


def _toolkit() -> Parts:
    """ClosedXML and others on the Open XML SDK: a prefix everywhere, absolute targets."""
    made = _shared("")
    made["xl/worksheets/sheet1.xml"] = (
        f'<?xml version="1.0" encoding="utf-8"?><x:worksheet xmlns:r="{OFFICE}" xmlns:x="{MAIN}"><x:sheetPr/>'
        f"<x:sheetData>{TOOLKIT}</x:sheetData></x:worksheet>"
    )
    strings = strings_xml(["code", "day", "Ä1", "B2"])
    made["xl/sharedStrings.xml"] = (
        strings.replace("</", "\0")
        .replace("<", "<x:")
        .replace("\0", "</x:")
        .replace("<x:?", "<?")
        .replace("xmlns=", "xmlns:x=")
    )
    made["xl/_rels/workbook.xml.rels"] = str(made["xl/_rels/workbook.xml.rels"]).replace('Target="', 'Target="/xl/')
    return made


def _numbers() -> Parts:
    """Apple Numbers: the table on a later sheet part, a title row of its own is left to the user."""
    made = _shared(GOOGLE.replace(".0<", "<"))
    made["xl/styles.xml"] = styles_xml(["yyyy-mm-dd"]).replace(
        'numFmtId="0" xfId="0"', 'numFmtId="0" applyNumberFormat="1"'
    )
    return made


def _one_liner() -> Parts:
    """Streaming writers: no styles but those used, no dimension, everything in one line without declaration."""
    made = _shared(NPOI)
    made["xl/worksheets/sheet1.xml"] = sheet_xml(NPOI).partition("?>\n")[2]
    return made


EXPORTERS: dict[str, Parts] = {
    "LibreOffice": _shared(LIBREOFFICE),
    "Google Sheets": _shared(GOOGLE),
    "NPOI": _shared(NPOI),
    "SAP": _shared(SAP),
    "SSRS": _shared(SSRS),
    "EPPlus, cells without names": _shared(NO_NAMES),
    "Open XML SDK": _toolkit(),
    "Numbers": _numbers(),
    "streaming writer": _one_liner(),
    "pretty printer": _shared(PRETTY),
    "UTF-16": _shared("", xl__worksheets__sheet1_xml=sheet_xml(NPOI).replace("UTF-8", "UTF-16").encode("utf-16")),
}


@pytest.mark.parametrize("made", EXPORTERS.values(), ids=EXPORTERS.keys())
def test_an_exporters_workbook_holds_the_same_cells(tmp_path: Path, made: Parts) -> None:
    """The habits of a program change nothing of what its cells are."""
    cells = read(zip_parts(tmp_path / "a.xlsx", made))

    assert [(row, column, kind, value.removesuffix(".0")) for row, column, kind, value in cells] == EXPECTED
