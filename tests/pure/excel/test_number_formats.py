"""What a number is under a number format."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer.excel import Kind
from importer.excel.number_format import BUILTIN, kind_of
from tests.pure.excel.reading import read
from tests.workbooks import parts, zip_parts

CODES = {
    Kind.DATE: [
        "yyyy-mm-dd",
        "dd/mm/yyyy;@",
        "[$-409]d\\-mmm\\-yy;@",
        "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy",
        'yyyy"年"m"月"d"日"',
        '[$-411]ggge"年"m"月"d"日";@',
        "[$-1070000]d/mm/yyyy;@",
        'mmmm" "yyyy',
        "mmm\\-yy",
        "m/d",
        "MM/DD/YY",
        "mmmmm",
        "dddd",
        "aaaa",
        "yyyy",
        "e",
        "d.m.bbbb",
        '[=0]"-";dd.mm.yyyy',
        "[Red]dd.mm.yyyy;[Blue]dd.mm.yyyy",
        '"on "dd mmm',
        "_-yyyy\\-mm\\-dd_-",
        "[ENG][$-409]d mmm yyyy;@",
        "[DBNum1][$-804]yyyy年m月d日",
    ],
    Kind.DATETIME: [
        "yyyy-mm-dd hh:mm:ss",
        "m/d/yy h:mm",
        'dd.mm.yyyy" um "hh:mm',
        "yyyy-mm-dd\\Thh:mm:ss.000",
        "d/m h",
        "[$-409]m/d/yy h:mm AM/PM;@",
        "[<1]hh:mm;dd.mm.yyyy",
        "[h]:mm d/m",
    ],
    Kind.TIME: [
        "h:mm",
        "hh:mm:ss AM/PM",
        "mm:ss",
        "mm:ss.0",
        "ss",
        "[$-F400]h:mm:ss\\ AM/PM",
        "h A/P",
        "h上午/下午",
        'h"時"mm"分"',
        "hh:mm:ss.000",
        "AM/PM",
    ],
    Kind.DURATION: ["[h]:mm", "[hh]:mm:ss", "[m]", "[mm]:ss", "[ss]", "[ss].00", "[h]:mm:ss;@", "[H]:MM:SS"],
    Kind.NUMBER: [
        "",
        "General",
        "GENERAL",
        "0",
        "0.00",
        "#,##0.00",
        "0.00E+00",
        "##0.0E+0",
        "# ?/?",
        "@",
        "0%",
        "[Red]0;[Cyan]-0",
        '0.00" days"',
        '#,##0,,\\ "M"',
        "#,##0.00\\ [$CHF]",
        "#,##0.00 [$€-407]",
        "[$$-409]#,##0.00",
        "#,##0_M_M_M;#,##0_M_M_M;_(@_M_M_M",
        '"yes";"no"',
        '"yyyy-mm-dd"',
        "\\d\\a\\y\\s",
        '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)',
        "General;yyyy-mm-dd",
        "0;;;@",
        "[Color10]0",
        '[>100]0 "h";0',
        "*d0",
        "[$-409]General",
        "0.0,, ",
        "00000",
        "000-00-0000",
        '"unclosed yyyy',
    ],
}
PAIRS = [(code, kind) for kind, codes in CODES.items() for code in codes]


@pytest.mark.parametrize(("code", "kind"), PAIRS, ids=[f"{kind.name} {code}" for code, kind in PAIRS])
def test_a_format_code_says_what_a_number_is(code: str, kind: Kind) -> None:
    """Letters outside quotes, escapes and brackets decide; an m beside h or s is a minute."""
    assert kind_of(code) is kind


def test_builtin_formats_need_no_code() -> None:
    """The formats 14 to 22 and 45 to 47 are dates, times and one duration without a word in the file."""
    kinds = {
        number: BUILTIN.get(number, Kind.NUMBER).name for number in (*range(1, 50),) if number not in range(27, 37)
    }

    assert [number for number, kind in kinds.items() if kind == "DATE"] == [14, 15, 16, 17]
    assert [number for number, kind in kinds.items() if kind == "TIME"] == [18, 19, 20, 21, 45, 47]
    assert (kinds[22], kinds[46], kinds[49]) == ("DATETIME", "DURATION", "NUMBER")


def test_a_code_in_the_file_goes_before_the_builtin_of_its_number(tmp_path: Path) -> None:
    """A file may give builtin numbers a code of its own, and a cell format may leave its number to its style."""
    made = parts('<row r="1"><c s="0"><v>1</v></c><c s="1"><v>1</v></c><c s="2"><v>1</v></c></row>')
    made["xl/styles.xml"] = (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<numFmts><numFmt numFmtId="14" formatCode="0.0"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="14"/><xf numFmtId="15" xfId="0"/><xf xfId="1"/></cellXfs>'
        '<dxfs><dxf><numFmt numFmtId="15" formatCode="0"/></dxf></dxfs></styleSheet>'
    )

    kinds = [kind for _, _, kind, _ in read(zip_parts(tmp_path / "a.xlsx", made))]

    assert kinds == ["number", "date", "datetime"]
