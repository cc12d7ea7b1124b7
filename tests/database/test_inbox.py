"""The inbox: every whole workbook becomes one job, whoever looks and however often."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import importer as im
from importer.batch.arrivals import forms_of
from importer.db import Database
from importer.inbox import files, locate
from tests.importing import form, site_workbook

SETTLED = timedelta(minutes=2)


@pytest.fixture
def inbox(db: Database, tmp_path: Path) -> Path:
    """Return the folder of the test's inbox."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    db.settings = dataclasses.replace(db.settings, inbox=folder)
    return folder


@pytest.fixture
def later(move_clock: Callable[..., None], db: Database) -> Callable[[timedelta], None]:
    """Let time pass in the database, for connections opened from now on."""
    passed = timedelta()

    def let(time: timedelta) -> None:
        nonlocal passed
        passed += time
        move_clock(passed)
        with db.connection() as conn:
            move_clock(passed, conn)

    return let


def outcomes(db: Database) -> dict[str, str]:
    """Return path -> outcome as the ledger has it."""
    return {row["path"]: row["outcome"] for row in im.inbox_ledger(db=db)}


def test_a_file_that_stands_unchanged_becomes_one_job(
    db: Database, inbox: Path, later: Callable[[timedelta], None]
) -> None:
    """At the first look it settles, at the next it is taken, and after that it is known."""
    (inbox / "site_report").mkdir()
    site_workbook(inbox / "site_report/march.xlsx", 3)

    first = im.take_in(db, [form()])
    later(SETTLED)
    second = im.take_in(db, [form()])
    third = im.take_in(db, [form()])

    assert (first.taken, first.waiting) == ((), 1)
    assert [(taken.path, taken.job.file_name) for taken in second.taken] == [("site_report/march.xlsx", "march.xlsx")]
    assert third == im.Arrivals()
    assert len(im.jobs(db=db)) == 1


def test_waiting_for_the_settle_time_takes_a_new_file_in_one_look(db: Database, inbox: Path) -> None:
    """`wait=True` stays for the settle time and looks again."""
    db.settings = dataclasses.replace(db.settings, inbox_settle=timedelta(milliseconds=50))
    (inbox / "site_report").mkdir()
    site_workbook(inbox / "site_report/march.xlsx", 3)

    arrivals = im.take_in(db, [form()], wait=True)

    assert [taken.path for taken in arrivals.taken] == ["site_report/march.xlsx"]


def test_a_file_that_grows_is_left_until_it_is_whole(
    db: Database, inbox: Path, tmp_path: Path, later: Callable[[timedelta], None]
) -> None:
    """A copy under way changes its stamp at each look; what is taken is the whole workbook."""
    whole = site_workbook(tmp_path / "whole.xlsx", 50).read_bytes()
    (inbox / "site_report").mkdir()
    place = inbox / "site_report/march.xlsx"
    looks = []
    for part in (1, 2, 3):
        place.write_bytes(whole[: len(whole) * part // 3])
        looks.append(im.take_in(db, [form()]))
        later(timedelta(seconds=1))

    later(SETTLED)
    last = im.take_in(db, [form()])

    assert [look.waiting for look in looks] == [1, 1, 1]
    assert [taken.job.file_name for taken in last.taken] == ["march.xlsx"]
    assert len(im.inbox_ledger(db=db)) == 1


def test_a_copy_that_stalls_is_not_called_broken_at_once(
    db: Database, inbox: Path, tmp_path: Path, later: Callable[[timedelta], None]
) -> None:
    """Half a workbook has thirty settle times; called broken after them, it is taken all the same once it is whole."""
    whole = site_workbook(tmp_path / "whole.xlsx", 50).read_bytes()
    (inbox / "site_report").mkdir()
    place = inbox / "site_report/march.xlsx"
    place.write_bytes(whole[:1000])
    im.take_in(db, [form()])

    later(timedelta(seconds=10))
    early = im.take_in(db, [form()])
    later(SETTLED)
    late = im.take_in(db, [form()])
    place.write_bytes(whole)
    im.take_in(db, [form()])
    later(SETTLED)
    complete = im.take_in(db, [form()])

    assert (early.waiting, early.turned_away) == (1, ())
    assert [away.path for away in late.turned_away] == ["site_report/march.xlsx"]
    assert len(complete.taken) == 1


def test_a_broken_workbook_is_said_once(db: Database, inbox: Path, later: Callable[[timedelta], None]) -> None:
    """It is refused with a sentence and not looked at again while it stays as it is."""
    (inbox / "site_report").mkdir()
    (inbox / "site_report/march.xlsx").write_text("no workbook")
    im.take_in(db, [form()])
    later(SETTLED)

    said = im.take_in(db, [form()])
    after = im.take_in(db, [form()])

    assert [away.path for away in said.turned_away] == ["site_report/march.xlsx"]
    assert "march.xlsx" in said.turned_away[0].message
    assert after == im.Arrivals()
    assert outcomes(db) == {"site_report/march.xlsx": "refused"}


def test_a_file_that_cannot_be_read_is_said_once(db: Database, inbox: Path, later: Callable[[timedelta], None]) -> None:
    """A link that leads to itself can be read by nobody; the others are taken."""
    (inbox / "site_report").mkdir()
    (inbox / "site_report/loop.xlsx").symlink_to(inbox / "site_report/loop.xlsx")
    site_workbook(inbox / "site_report/march.xlsx", 3)
    im.take_in(db, [form()])
    later(SETTLED)

    said = im.take_in(db, [form()])
    after = im.take_in(db, [form()])

    assert [away.path for away in said.turned_away] == ["site_report/loop.xlsx"]
    assert len(said.taken) == 1
    assert after == im.Arrivals()


def test_the_same_content_is_one_job_wherever_it_lies(
    db: Database, inbox: Path, later: Callable[[timedelta], None]
) -> None:
    """A copy under another name, and the file renamed, are the job that was there."""
    (inbox / "site_report").mkdir()
    site_workbook(inbox / "site_report/march.xlsx", 3)
    shutil.copy(inbox / "site_report/march.xlsx", inbox / "site_report/copy of march.xlsx")
    im.take_in(db, [form()])
    later(SETTLED)
    im.take_in(db, [form()])
    os.rename(inbox / "site_report/march.xlsx", inbox / "site_report/april.xlsx")  # noqa: PTH104 - as a user does
    im.take_in(db, [form()])
    later(SETTLED)

    renamed = im.take_in(db, [form()])

    assert [taken.job.submitted_before is not None for taken in renamed.taken] == [True]
    assert len(im.jobs(db=db)) == 1


def test_a_file_written_anew_is_a_new_job(db: Database, inbox: Path, later: Callable[[timedelta], None]) -> None:
    """The same name with other content is other content."""
    (inbox / "site_report").mkdir()
    site_workbook(inbox / "site_report/march.xlsx", 3)
    im.take_in(db, [form()])
    later(SETTLED)
    im.take_in(db, [form()])
    site_workbook(inbox / "site_report/march.xlsx", 4)
    im.take_in(db, [form()])
    later(SETTLED)
    im.take_in(db, [form()])

    assert len(im.jobs(db=db)) == 2
    assert set(outcomes(db).values()) == {"taken"}


def test_two_who_look_at_once_take_each_file_once(
    db: Database, inbox: Path, later: Callable[[timedelta], None]
) -> None:
    """The row of a file decides who takes it; nobody takes it twice and none is left."""
    (inbox / "site_report").mkdir()
    for number in range(20):
        site_workbook(inbox / f"site_report/{number}.xlsx", 1, start=number)
    im.take_in(db, [form()])
    later(SETTLED)
    both = threading.Barrier(2)
    taken: list[str] = []

    def look() -> None:
        both.wait()
        taken.extend(each.path for each in im.take_in(db, [form()]).taken)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(taken) == sorted(f"site_report/{number}.xlsx" for number in range(20))
    assert len(im.jobs(db=db)) == 20


def test_a_file_without_form_is_said_once_and_taken_when_a_form_comes(
    db: Database, inbox: Path, later: Callable[[timedelta], None]
) -> None:
    """Nothing is skipped for ever: other forms make every file without one be looked at again."""
    site_workbook(inbox / "march.xlsx", 3)
    im.take_in(db, [form()])
    later(SETTLED)

    said = im.take_in(db, [form()])
    again = im.take_in(db, [form()])
    taken = im.take_in(db, [form(inbox="*.xlsx")])

    assert "the forms take: site_report/" in said.turned_away[0].message
    assert again == im.Arrivals()
    assert [each.path for each in taken.taken] == ["march.xlsx"]


def test_an_earlier_import_under_another_form_version_is_said(
    db: Database, inbox: Path, later: Callable[[timedelta], None]
) -> None:
    """Rows that are there under an earlier version are not doubled; the sentence says what to do."""
    (inbox / "site_report").mkdir()
    place = site_workbook(inbox / "site_report/march.xlsx", 3)
    im.import_workbook(place, form(), db=db, progress=False)
    im.take_in(db, [form(description="newer")])
    later(SETTLED)

    said = im.take_in(db, [form(description="newer")])

    assert "replace=True" in said.turned_away[0].message
    assert outcomes(db) == {"site_report/march.xlsx": "refused"}


def test_a_crash_between_job_and_decision_leaves_neither(
    db: Database, inbox: Path, later: Callable[[timedelta], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stand in one transaction."""
    (inbox / "site_report").mkdir()
    site_workbook(inbox / "site_report/march.xlsx", 3)
    im.take_in(db, [form()])
    later(SETTLED)

    def crash(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("importer.inbox.decide", crash)
        with pytest.raises(KeyboardInterrupt):
            im.take_in(db, [form()])
    left = len(im.jobs(db=db))
    im.take_in(db, [form()])

    assert left == 0
    assert len(im.jobs(db=db)) == 1


def test_what_programs_leave_while_they_write_is_no_file(tmp_path: Path) -> None:
    """Hidden files, Excel's own locks and unfinished downloads are passed over, everything else is looked at."""
    for name in ("~$march.xlsx", ".march.xlsx", "march.xlsx.part", "march.xlsx.crdownload", "march.xlsx", "notes.pdf"):
        (tmp_path / name).touch()

    assert [file.path for file in files(tmp_path)] == ["march.xlsx", "notes.pdf"]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("site/march.xlsx", ["by_pattern"]),
        ("by_folder/2026/march.xlsx", ["by_folder"]),
        ("by_pattern/march.xlsx", []),
        ("march.xlsx", []),
        ("by_folder.xlsx", []),
    ],
)
def test_a_file_goes_by_pattern_else_by_folder(path: str, names: list[str]) -> None:
    """A form that has a pattern takes what matches it, any other what lies in the folder of its name."""
    forms = [form(name="by_pattern", inbox="site/*.xlsx"), form(name="by_folder")]

    assert [each.name for each in forms_of(path, forms)] == names


@pytest.mark.parametrize("name", ["../secret.xlsx", "/etc/hostname", "sub/../../secret.xlsx", "missing.xlsx", ""])
def test_a_name_cannot_lead_out_of_the_inbox(db: Database, inbox: Path, name: str) -> None:
    """Only files below the inbox are found, whatever the name says."""
    (inbox.parent / "secret.xlsx").touch()

    with pytest.raises(im.StoreError):
        locate(db.settings, name)


def test_a_workbook_is_found_in_the_inbox_or_by_its_hash(db: Database, inbox: Path) -> None:
    """A path below the inbox, or the content hash of a workbook in the store."""
    place = site_workbook(inbox / "march.xlsx", 3)
    content_hash = im.Store(db.settings.store).put(place).content_hash

    assert im.locate("march.xlsx", db=db) == place
    assert im.locate(content_hash, db=db) == im.Store(db.settings.store).path(content_hash)


def test_an_idle_look_is_one_statement(
    db: Database, inbox: Path, later: Callable[[timedelta], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that were decided about cost one query, however many they are."""
    (inbox / "site_report").mkdir()
    for number in range(3):
        site_workbook(inbox / f"site_report/{number}.xlsx", 1, start=number)
    im.take_in(db, [form()])
    later(SETTLED)
    im.take_in(db, [form()])
    ran: list[str] = []
    execute = psycopg.Connection.execute

    def count(conn: psycopg.Connection, query: object, *rest: object, **more: object) -> object:
        ran.append(str(query))
        return execute(conn, query, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(psycopg.Connection, "execute", count)

    im.take_in(db, [form()])

    assert len([statement for statement in ran if statement]) == 1


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_the_inbox_may_be_a_bucket(
    db: Database, tmp_path: Path, later: Callable[[timedelta], None], scheme: str
) -> None:
    """A URL names it, and the store may be another; the workbooks come under their own names."""
    import upath  # noqa: PLC0415 - comes with Dagster only

    url = f"memory://{tmp_path.name}" if scheme == "memory" else f"file://{tmp_path}/bucket"
    bucket = upath.UPath(url)
    (bucket / "site_report").mkdir(parents=True)
    (bucket / "site_report" / "march.xlsx").write_bytes(site_workbook(tmp_path / "march.xlsx", 3).read_bytes())
    db.settings = dataclasses.replace(db.settings, inbox=url, store_folder=f"{url}-store", create_tables=True)
    im.take_in(db, [form()])
    later(SETTLED)

    arrivals = im.take_in(db, [form()])
    im.work(db=db)

    assert [taken.job.file_name for taken in arrivals.taken] == ["march.xlsx"]
    assert im.jobs(db=db)[0].success_rows == 3
