"""Workbooks from an address, from a server that behaves and from one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import importer as im
from importer import import_address
from importer.db import Database
from importer.errors import RequestError, RequestRefusedError, WorkbookError
from tests.importing import form, site_workbook
from tests.web_server import Site, web_server


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Give a web server that has a workbook of ten rows."""
    with web_server() as found:
        found.body = site_workbook(tmp_path / "a.xlsx", 10).read_bytes()
        found.headers = {"Content-Type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
        yield found


@pytest.fixture
def open_db(db: Database) -> Iterator[Database]:
    """Open the database with requests to this machine allowed."""
    with Database(db.conninfo, replace(db.settings, private_addresses=True, create_tables=True)) as database:
        yield database


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note the pauses instead of making them."""
    noted: list[float] = []
    monkeypatch.setattr(import_address.bring, "__kwdefaults__", {"pause": noted.append})
    return noted


def asked(site: Site, method: str) -> int:
    """Count the requests of a method."""
    return sum(each.method == method for each in site.asked)


def test_a_workbook_is_brought_and_imported(open_db: Database, site: Site) -> None:
    """The job has the file's name and no query; its rows are those of the file."""
    job = im.submit(f"{site.url}/reports/m%C3%A4rz.xlsx?sig=secret", form(), db=open_db, create_table=True)
    im.work(db=open_db)

    done = im.job(job, db=open_db)
    assert (done.file_name, done.success_rows, done.status) == ("märz.xlsx", 10, "success")
    assert "secret" not in repr(done)


def test_a_signed_anew_address_is_the_same_job(open_db: Database, site: Site) -> None:
    """While its job is open, and after it while the server says that nothing changed, nothing is brought again."""
    site.headers["ETag"] = '"a"'
    first = im.submit(f"{site.url}/a.xlsx?sig=1", form(), db=open_db, create_table=True)
    again = im.submit(f"{site.url}/a.xlsx?sig=2", form(), db=open_db)
    im.work(db=open_db)
    after = im.submit(f"{site.url}/a.xlsx?sig=3", form(), db=open_db)

    assert (again.id, after.id, asked(site, "GET")) == (first.id, first.id, 1)
    assert after.submitted_before is not None


def test_after_a_download_the_content_decides(open_db: Database, site: Site, tmp_path: Path) -> None:
    """Unchanged content under a new ETag is the same job; changed content is a new one."""
    site.headers["ETag"] = '"a"'
    first = im.submit(f"{site.url}/a.xlsx", form(), db=open_db, create_table=True)
    im.work(db=open_db)
    site.headers["ETag"] = '"b"'
    same = im.submit(f"{site.url}/a.xlsx", form(), db=open_db)
    site.body = site_workbook(tmp_path / "b.xlsx", 10, start=100).read_bytes()
    site.headers["ETag"] = '"c"'
    other = im.submit(f"{site.url}/a.xlsx", form(), db=open_db)

    assert (same.id, asked(site, "GET")) == (first.id, 3)
    assert other.id != first.id


def test_a_server_without_head(open_db: Database, site: Site) -> None:
    """It is simply asked for the file."""

    def only_get(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(405 if handler.command == "HEAD" else 200)
        handler.send_header("Content-Length", str(0 if handler.command == "HEAD" else len(site.body)))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(site.body)

    site.instead = only_get

    assert im.submit(f"{site.url}/a.xlsx", form(), db=open_db).status == "pending"


def test_a_download_that_breaks_off_is_tried_again(open_db: Database, site: Site, pauses: list[float]) -> None:
    """After 1, 4 and 8 seconds; then it is an error, and nothing was submitted."""
    times: list[str] = []

    def half(handler: BaseHTTPRequestHandler) -> None:
        times.append(handler.command)
        whole = times.count("GET") == 3
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(site.body)))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(site.body if whole else site.body[:100])
        handler.close_connection = True

    site.instead = half
    assert im.submit(f"{site.url}/a.xlsx", form(), db=open_db).status == "pending"
    assert pauses == [1.0, 4.0]

    times[:] = ["GET"] * 10
    with pytest.raises(RequestError, match="broke off after 100 of"):
        im.submit(f"{site.url}/b.xlsx", form(), db=open_db)
    assert pauses == [1.0, 4.0, 1.0, 4.0, 8.0]
    assert len(im.jobs(db=open_db)) == 1


def test_a_page_instead_of_a_workbook(open_db: Database, site: Site) -> None:
    """A login page is told as what it is, whether the server admits it or not."""
    site.body, site.headers["Content-Type"] = b"<!doctype html><title>Login</title>", "text/html; charset=utf-8"
    with pytest.raises(WorkbookError, match="a web page instead of a workbook"):
        im.submit(f"{site.url}/a.xlsx", form(), db=open_db)
    site.headers["Content-Type"] = "application/octet-stream"
    with pytest.raises(WorkbookError) as caught:
        im.submit(f"{site.url}/a.xlsx", form(), db=open_db)
    assert caught.value.reason == "not_a_spreadsheet"


def test_a_private_address_is_refused(db: Database, site: Site) -> None:
    """Unless the setting allows it."""
    with pytest.raises(RequestRefusedError):
        im.submit(f"{site.url}/a.xlsx", form(), db=db)

    assert site.asked == []
