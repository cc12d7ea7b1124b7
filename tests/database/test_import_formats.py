"""Every format is imported alike: the store knows contents only, and the job knows what the sender called it."""

from __future__ import annotations

from pathlib import Path

import pytest

import importer as im
from importer.db import Database
from importer.forms import Form
from tests.importing import table_rows

CODES = Form.from_dict(
    {
        "name": "codes",
        "table": "codes",
        "columns": [
            {"name": "code", "title": "Code", "type": "text", "required": True},
            {"name": "count", "title": "Count", "type": "integer"},
        ],
    }
)


def codes(**changes: object) -> Form:
    """Give the form with other settings."""
    return Form.from_dict({**CODES.to_dict(), **changes})


def test_a_csv_goes_in_by_the_name_its_sender_gave(db: Database, tmp_path: Path) -> None:
    """The store knows contents only; the job knows the name, and the worker reads a csv."""
    path = tmp_path / "march.csv"
    path.write_text("Code;Count\n00123;1\n00124;many\n")

    job = im.submit(path, CODES, db=db, create_table=True)
    im.work(db=db)

    done = im.job(job, db=db)
    assert (done.status, done.success_rows, done.failed_rows) == ("partial_success", 1, 1)
    assert "delimiter was seen" in str(done.left_out)
    with db.connection() as conn:
        assert [row["code"] for row in table_rows(conn, "codes")] == ["00123"]


def test_encoding_and_delimiter_are_declared_in_the_form(db: Database, tmp_path: Path) -> None:
    """What cannot be seen is said once, in the form."""
    path = tmp_path / "march.csv"
    path.write_bytes("Code,x;Count\nKöln,1;2\n".encode("windows-1252"))
    columns = [{**CODES.to_dict()["columns"][0], "title": "Code,x"}, CODES.to_dict()["columns"][1]]  # type: ignore[index]

    with pytest.raises(im.WorkbookError, match=r"march\.csv .*declare"):
        im.import_workbook(path, codes(columns=columns), db=db, progress=False)
    declared = codes(columns=columns, encoding="windows-1252", delimiter=";")
    im.import_workbook(path, declared, db=db, progress=False)

    with db.connection() as conn:
        assert [(row["code"], row["count"]) for row in table_rows(conn, "codes")] == [("Köln,1", 2)]


@pytest.mark.parametrize(("key", "value"), [("encoding", "windows-1525"), ("delimiter", ";;"), ("delimiter", '"')])
def test_an_encoding_or_delimiter_that_there_is_not(key: str, value: str) -> None:
    """A typo is told when the form is read."""
    with pytest.raises(im.FormError, match=key):
        codes(**{key: value})


def test_a_refusal_names_the_file_and_not_its_hash(db: Database, tmp_path: Path) -> None:
    """A person knows march.csv, not the name it has in the store."""
    path = tmp_path / "march.csv"
    path.write_text("Code,Count\n1,2\n" * 60 + '"open\n')

    with pytest.raises(im.WorkbookError, match=r"march\.csv"):
        im.import_workbook(path, CODES, db=db, progress=False)

    assert "march.csv" in (im.jobs(db=db)[0].last_error or "")
