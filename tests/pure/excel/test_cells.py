"""Every kind of cell a sheet part can hold, each as the file writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pure.excel.reading import read, refused
from tests.workbooks import write_workbook

STRINGS = ["A1", "", "_x0041_B", "a_x0000_b", "<r><t>foo</t></r><r><rPr><b/></rPr><t xml:space='preserve'> bar</t></r>"]
ONE_CELL = {
    # what stands in the cell: kind, value; None for a blank cell
    "number": ('<c r="A1"><v>12.50</v></c>', ("number", "12.50")),
    "number with its type": ('<c r="A1" t="n"><v>1E+2</v></c>', ("number", "1E+2")),
    "number of 19 digits": ('<c r="A1"><v>1234567890123456789</v></c>', ("number", "1234567890123456789")),
    "number with noise": ('<c r="A1"><v>7.4999999999999997E-2</v></c>', ("number", "7.4999999999999997E-2")),
    "number among line breaks": ('<c r="A1">\n  <v>\n 7 </v>\n</c>', ("number", "7")),
    "words for no number": ('<c r="A1"><v>NaN</v></c>', ("broken", "NaN")),
    "infinity": ('<c r="A1"><v>INF</v></c>', ("broken", "INF")),
    "decimal comma": ('<c r="A1"><v>1,5</v></c>', ("broken", "1,5")),
    "text in a number cell": ('<c r="A1"><v>abc</v></c>', ("broken", "abc")),
    "two values": ('<c r="A1"><v>1</v><v>2</v></c>', ("broken", "1 | 2")),
    "unknown type": ('<c r="A1" t="zz"><v>1</v></c>', ("broken", "1")),
    "shared string": ('<c r="A1" t="s"><v>0</v></c>', ("text", "A1")),
    "empty shared string": ('<c r="A1" t="s"><v>1</v></c>', None),
    "shared string escaped": ('<c r="A1" t="s"><v>2</v></c>', ("text", "AB")),
    "shared string with NUL": ('<c r="A1" t="s"><v>3</v></c>', ("unstorable", "a_x0000_b")),
    "shared string of runs": ('<c r="A1" t="s"><v>4</v></c>', ("text", "foo bar")),
    "shared string beyond the table": ('<c r="A1" t="s"><v>5</v></c>', ("broken", "5")),
    "shared string of a negative index": ('<c r="A1" t="s"><v>-1</v></c>', ("broken", "-1")),
    "shared string of a fraction": ('<c r="A1" t="s"><v>1.0</v></c>', ("broken", "1.0")),
    "shared string without index": ('<c r="A1" t="s"><v/></c>', None),
    "inline string": ('<c r="A1" t="inlineStr"><is><t>x &amp; y</t></is></c>', ("text", "x & y")),
    "inline string of runs": (
        '<c r="A1" t="inlineStr"><is><r><t>foo</t></r><r><t> bar</t></r></is></c>',
        ("text", "foo bar"),
    ),
    "inline string with furigana": (
        '<c r="A1" t="inlineStr"><is><t>漢字</t><rPh sb="0" eb="2"><t>カンジ</t></rPh><phoneticPr/></is></c>',
        ("text", "漢字"),
    ),
    "inline string in a value": ('<c r="A1" t="inlineStr"><v>x</v></c>', ("text", "x")),
    "inline string without its type": ('<c r="A1"><is><t>x</t></is></c>', ("text", "x")),
    "empty inline string": ('<c r="A1" t="inlineStr"><is><t/></is></c>', None),
    "spaces only": ('<c r="A1" t="inlineStr"><is><t xml:space="preserve">  </t></is></c>', ("text", "  ")),
    "character data": ('<c r="A1" t="str"><v><![CDATA[<b>&]]></v></c>', ("text", "<b>&")),
    "numbered character": ('<c r="A1" t="str"><v>a&#13;&#10;b&#x1F600;</v></c>', ("text", "a\r\nb😀")),
    "carriage return": ('<c r="A1" t="str"><v>a\r\nb</v></c>', ("text", "a\nb")),
    "escaped escape": ('<c r="A1" t="str"><v>_x005F_x000D_</v></c>', ("text", "_x000D_")),
    "escape in small letters": ('<c r="A1" t="str"><v>_x000d__x000a_</v></c>', ("text", "\r\n")),
    "no escape": ('<c r="A1" t="str"><v>_x00_ _x000G_ _X0041_</v></c>', ("text", "_x00_ _x000G_ _X0041_")),
    "surrogate pair": ('<c r="A1" t="str"><v>_xD83D__xDE00_</v></c>', ("text", "😀")),
    "lone surrogate": ('<c r="A1" t="str"><v>a_xD83D_b</v></c>', ("unstorable", "a_xD83D_b")),
    "pair the wrong way": ('<c r="A1" t="str"><v>_xDE00__xD83D_</v></c>', ("unstorable", "_xDE00__xD83D_")),
    "formula-like text": ('<c r="A1" t="str"><v>=cmd|calc</v></c>', ("text", "=cmd|calc")),
    "true": ('<c r="A1" t="b"><v>1</v></c>', ("bool", "true")),
    "false in words": ('<c r="A1" t="b"><v>FALSE</v></c>', ("bool", "false")),
    "no truth": ('<c r="A1" t="b"><v>2</v></c>', ("broken", "2")),
    "error": ('<c r="A1" t="e"><v>#DIV/0!</v></c>', ("error", "#DIV/0!")),
    "text that names an error": ('<c r="A1" t="str"><v>#N/A</v></c>', ("text", "#N/A")),
    "day in ISO": ('<c r="A1" t="d"><v>2024-02-29</v></c>', ("date", "2024-02-29")),
    "moment in ISO": ('<c r="A1" t="d"><v>2024-02-29T10:30:00.5</v></c>', ("datetime", "2024-02-29T10:30:00.5")),
    "moment in ISO under a day's format": (
        '<c r="A1" t="d" s="1"><v>2024-02-29T00:00:00Z</v></c>',
        ("date", "2024-02-29T00:00:00"),
    ),
    "clock time in ISO": ('<c r="A1" t="d"><v>10:30</v></c>', ("time", "10:30")),
    "moment with an offset": (
        '<c r="A1" t="d"><v>2024-02-29T10:00:00+02:00</v></c>',
        ("broken", "2024-02-29T10:00:00+02:00"),
    ),
    "no moment": ('<c r="A1" t="d"><v>yesterday</v></c>', ("broken", "yesterday")),
    "day by format": ('<c r="A1" s="1"><v>45351</v></c>', ("date", "45351")),
    "format that is not there": ('<c r="A1" s="9"><v>45351</v></c>', ("number", "45351")),
    "format that is no number": ('<c r="A1" s="x"><v>45351</v></c>', ("number", "45351")),
    "text under a day's format": ('<c r="A1" s="1" t="str"><v>soon</v></c>', ("text", "soon")),
    "calculated number": ('<c r="A1"><f>1+1</f><v>2</v></c>', ("number", "2")),
    "calculated text": ('<c r="A1" t="str"><f>"a"&amp;"b"</f><v>ab</v></c>', ("text", "ab")),
    "calculated nothing": ('<c r="A1" t="str"><f>""</f><v></v></c>', None),
    "calculated error": ('<c r="A1" t="e"><f>1/0</f><v>#DIV/0!</v></c>', ("error", "#DIV/0!")),
    "never calculated": ('<c r="A1"><f>SUM(B1:B2)</f></c>', ("uncalculated", "=SUM(B1:B2)")),
    "never calculated, empty value": ('<c r="A1"><f>1+1</f><v/></c>', ("uncalculated", "=1+1")),
    "never calculated text": ('<c r="A1" t="str"><f>A2</f></c>', ("uncalculated", "=A2")),
    "shared formula, never calculated": ('<c r="A1"><f t="shared" si="0"/></c>', ("uncalculated", "")),
    "styled blank": ('<c r="A1" s="1"/>', None),
    "empty value": ('<c r="A1"><v></v></c>', None),
    "extension inside": ('<c r="A1"><v>1</v><extLst><ext><v>2</v></ext></extLst></c>', ("number", "1")),
    "another row's name": ('<c r="A7"><v>1</v></c>', ("broken", "1 (said to stand at A7)")),
    "the same cell twice": (
        '<c r="A1"><v>1</v></c><c r="A1"><v>2</v></c>',
        ("broken", "the cell is there twice: 1 | 2"),
    ),
}


@pytest.mark.parametrize(("xml", "expected"), ONE_CELL.values(), ids=ONE_CELL.keys())
def test_a_cell_comes_as_it_is_written(tmp_path: Path, xml: str, expected: tuple[str, str] | None) -> None:
    """Kind and value of one cell follow its XML alone; a blank cell does not come at all."""
    path = write_workbook(tmp_path / "a.xlsx", f'<row r="1">{xml}</row>', formats=["yyyy-mm-dd"], strings=STRINGS)

    cells = read(path)

    assert cells == ([] if expected is None else [(1, 0, *expected)])


def test_cells_without_names_follow_one_another(tmp_path: Path) -> None:
    """A row or cell without `r` stands after the one before it."""
    rows = '<row><c><v>1</v></c><c/><c><v>3</v></c></row><row r="5"><c r="C5"><v>4</v></c><c><v>5</v></c></row><row/>'
    path = write_workbook(tmp_path / "a.xlsx", rows + "<row><c><v>6</v></c></row>")

    places = [(row, column, value) for row, column, _, value in read(path)]

    assert places == [(1, 0, "1"), (1, 2, "3"), (5, 2, "4"), (5, 3, "5"), (7, 0, "6")]


def test_cells_may_stand_in_any_order_within_a_row(tmp_path: Path) -> None:
    """The name of a cell says its column, not its place among the others."""
    path = write_workbook(tmp_path / "a.xlsx", '<row r="1"><c r="AA1"><v>2</v></c><c r="b1"><v>1</v></c></row>')

    assert [(column, value) for _, column, _, value in read(path)] == [(1, "1"), (26, "2")]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ('<row r="2"/><row r="1"/>', "row 1 stands after row 2"),
        ('<row r="2"/><row r="2"/>', "row 2 stands after row 2"),
        ('<row r="0"/>', "'0'"),
        ('<row r="one"/>', "'one'"),
        ('<row r="1"><c r="11"/></row>', "'11'"),
        ('<row r="1"><c r="$A$1"/></row>', "'$A$1'"),
        ('<row r="1"><c r="A1"', "no sound XML"),
    ],
)
def test_a_sheet_whose_rows_make_no_sense_is_refused(tmp_path: Path, rows: str, says: str) -> None:
    """Rows out of order and cells that stand nowhere refuse the workbook, and the message shows what was found."""
    error = refused(write_workbook(tmp_path / "a.xlsx", rows))

    assert error.reason == "corrupt"
    assert says in str(error)


def test_elements_of_other_vocabularies_are_passed_over(tmp_path: Path) -> None:
    """What is in no spreadsheet namespace is no row, no cell and no value, whatever its name."""
    rows = (
        '<x:row xmlns:x="urn:x"><x:c><x:v>9</x:v></x:c></x:row>'
        '<row r="1" x:dyDescent="1" xmlns:x="urn:x"><x:c><v>8</v></x:c><c r="A1"><x:v>7</x:v><v>1</v></c><v>5</v></row>'
    )

    assert read(write_workbook(tmp_path / "a.xlsx", rows)) == [(1, 0, "number", "1")]
