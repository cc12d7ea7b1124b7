"""csv and tsv: every cell text, every record a row; encoding and delimiter declared or plain to see, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer import WorkbookError, check, read_cells
from importer.excel import Kind, Limits, open_workbook
from importer.forms import Form

HEADER = "Site;Note\r\n"


def cells(path: Path) -> list[tuple[int, int, str, str]]:
    """Give the cells of a file as plain rows."""
    return read_cells(path).rows()


def written(path: Path, content: bytes | str) -> Path:
    """Write a file."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_records_are_rows_and_cells_are_text(tmp_path: Path) -> None:
    """Zeros in front, words like NULL and numbers stay as they stand; quoted delimiters and line ends are text."""
    path = written(tmp_path / "a.csv", 'code,note\n00123,NULL\n" 7 ","x,\ny ""z"""\n\n,#N/A\n')

    assert cells(path) == [
        (1, 0, "text", "code"),
        (1, 1, "text", "note"),
        (2, 0, "text", "00123"),
        (2, 1, "text", "NULL"),
        (3, 0, "text", " 7 "),
        (3, 1, "text", 'x,\ny "z"'),
        (5, 1, "text", "#N/A"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "a;b\n1;2\n"),
        ("a.csv", "a\tb\n1\t2\n"),
        ("a.csv", "a|b\n1|2\n"),
        ("a.tsv", "a\tb\n1\t2\n"),
        ("a.csv", "a,b\r1,2\r"),
        ("A.CSV", "a,b\r\n1,2\r\n"),
    ],
)
def test_a_delimiter_that_is_plain_to_see_is_seen(tmp_path: Path, name: str, content: str) -> None:
    """One of them cuts all records into the same number of cells; what was seen is said."""
    path = written(tmp_path / name, content)

    with open_workbook(path) as workbook:
        (chunk,) = workbook.chunks(workbook.sheets[0])
        remarks = workbook.notes(workbook.sheets[0]).remarks

    assert [column.value.to_list() for column in chunk.columns.values()] == [["a", "1"], ["b", "2"]]
    assert any("encoding" in remark for remark in remarks)


def test_one_column_has_no_delimiter(tmp_path: Path) -> None:
    """A list of names is a sheet of one column."""
    assert cells(written(tmp_path / "a.csv", "name\nx\ny\n"))[-1] == (3, 0, "text", "y")


def test_two_delimiters_that_fit_are_refused_by_name(tmp_path: Path) -> None:
    """Which one is meant is for the sender to say."""
    path = written(tmp_path / "a.csv", "a,b;c\n1,2;3\n")

    with pytest.raises(WorkbookError, match=r"comma.*semicolon.*declare which") as refusal:
        cells(path)

    assert refusal.value.reason == "encoding"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_an_encoding_that_is_plain_to_see_is_seen(tmp_path: Path, encoding: str) -> None:
    """A mark at the beginning, or all of it UTF-8."""
    path = written(tmp_path / "a.csv", "städte,größe\nköln,ß\n".encode(encoding))

    assert cells(path)[2:] == [(2, 0, "text", "köln"), (2, 1, "text", "ß")]


def test_another_encoding_must_be_declared(tmp_path: Path) -> None:
    """No byte of windows-1252 says that it is not windows-1250; a declaration is taken at its word, or refused."""
    path = written(tmp_path / "a.csv", "stadt,größe\nKöln,€\n".encode("windows-1252"))

    with pytest.raises(WorkbookError, match="declare it") as refusal:
        cells(path)
    with open_workbook(path, encoding="windows-1252") as workbook:
        (chunk,) = workbook.chunks(workbook.sheets[0])

    assert refusal.value.reason == "encoding"
    assert chunk.columns[1].value.to_list() == ["größe", "€"]


@pytest.mark.parametrize("content", ['a,b\n"1,2\n', 'a,b\n"1"x,2\n'])
def test_quotes_that_do_not_close_are_refused(tmp_path: Path, content: str) -> None:
    """A file that breaks off within a cell is damaged."""
    with pytest.raises(WorkbookError) as refusal:
        cells(written(tmp_path / "a.csv", content))

    assert refusal.value.reason == "corrupt"


def test_a_nul_is_a_fault_of_its_cell(tmp_path: Path) -> None:
    """PostgreSQL cannot hold it; the other cells are fine."""
    path = written(tmp_path / "a.csv", b"a,b\nx\0y,2\n")

    with open_workbook(path) as workbook:
        (chunk,) = workbook.chunks(workbook.sheets[0])

    assert chunk.columns[0].kind.to_list() == [Kind.TEXT, Kind.UNSTORABLE]
    assert chunk.columns[0].value.to_list() == ["a", "x_x0000_y"]


def test_limits_hold(tmp_path: Path) -> None:
    """Too many columns, a cell without end."""
    path = written(tmp_path / "a.csv", "a,b,c\n1,2,3\n")
    long = written(tmp_path / "b.csv", "a\n" + "x" * 5000 + "\n")

    for file, limits in [
        (path, Limits(columns=2)),
        (long, Limits(cell_characters=1000)),
        (long, Limits(part_bytes=100)),
    ]:
        with pytest.raises(WorkbookError) as refusal, open_workbook(file, limits=limits) as workbook:
            list(workbook.chunks(workbook.sheets[0]))
        assert refusal.value.reason == "too_large"


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    """Nothing is not a sheet without rows."""
    with pytest.raises(WorkbookError) as refusal:
        cells(written(tmp_path / "a.csv", ""))

    assert refusal.value.reason == "empty_file"


def test_a_form_reads_a_csv_as_it_reads_a_workbook(tmp_path: Path) -> None:
    """Types, faults and row numbers are the same; a chunk boundary in between does not matter."""
    form = Form.from_dict(
        {
            "name": "stock",
            "table": "stock",
            "columns": [
                {"name": "code", "title": "Code", "type": "text", "required": True},
                {"name": "count", "title": "Count", "type": "integer"},
            ],
        }
    )
    path = written(tmp_path / "a.csv", "Code,Count\n" + "".join(f"{n:05},{n}\n" for n in range(60_000)) + "x,many\n")

    report = check(path, form)

    assert report.accepted.height == 60_000
    assert report.accepted["code"][7] == "00007"
    assert report.faults.select("source_row", "column", "rule").rows() == [(60_002, "count", "type")]
