"""Bad input is answered by one clear sentence, and nothing is lost: files, forms, and disks that are full."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import importer as im
from importer.db import Connection, Database
from tests.importing import DEFINITION, assert_each_row_once, form, site_workbook, workbook

MoveClock = Callable[..., None]


def folder(path: Path) -> None:
    """Make a folder of that name."""
    path.mkdir()


def missing(path: Path) -> None:
    """Make nothing."""
    assert not path.exists()


def empty(path: Path) -> None:
    """Make an empty file."""
    path.touch()


def renamed_csv(path: Path) -> None:
    """Make a CSV file."""
    path.write_text("site,day\nS1,2024-01-01\n")


def protected(path: Path) -> None:
    """Make the start of a compound file as Excel writes it for a workbook with a password (MS-CFB, MS-OFFCRYPTO)."""
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + bytes.fromhex("3e000300feff0900") + bytes(480)
    names = "".join(f"{name}\0" for name in ("Root Entry", "EncryptionInfo", "EncryptedPackage")).encode("utf-16-le")
    path.write_bytes(header + names + bytes(2048))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (folder, ["folder"]),
        (missing, ["no file"]),
        (empty, ["empty"]),
        (renamed_csv, ["CSV"]),
        (protected, ["password"]),
    ],
)
def test_a_file_that_is_no_workbook(
    db: Database, tmp_path: Path, made: Callable[[Path], None], words: list[str]
) -> None:
    """Refused before anything is written: no job, nothing in the store, and a sentence that names the file."""
    path = tmp_path / "march.xlsx"
    made(path)

    calls: list[Callable[[], object]] = [
        lambda: im.check(path, form()),
        lambda: im.submit(path, form(), db=db),
        lambda: im.import_workbook(path, form(), db=db),
    ]
    for call in calls:
        with pytest.raises(im.ImporterError) as refusal:
            call()
        said = str(refusal.value)
        assert all(word.lower() in said.lower() for word in [*words, "march.xlsx"]), said

    assert im.jobs(db=db) == ()
    assert not Path(db.settings.store).exists()


def test_a_form_with_a_typo_in_a_type() -> None:
    """The sentence says which column, what stands there, and what was probably meant."""
    columns = [
        {**column, "type": "integre"} if column["name"] == "crew" else column for column in DEFINITION["columns"]
    ]

    with pytest.raises(im.FormError, match=r"crew.*integre.*integer"):
        form(columns=columns)


def test_an_unknown_sheet_names_those_that_are_there(db: Database, tmp_path: Path) -> None:
    """The job has failed with the reason and left no table."""
    path = site_workbook(tmp_path / "a.xlsx", 5)

    with pytest.raises(im.WorkbookError, match="Sheet1") as refusal:
        im.import_workbook(path, form(sheet="April"), db=db, progress=False)

    assert refusal.value.reason == "sheet_not_found"
    assert [job.reason for job in im.jobs(db=db)] == ["sheet_not_found"]


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Mount a file system of that size; skip where mounting is not allowed."""
    # Not in pytest's folder: the server runs as another user, who may not enter it.
    place = Path(tempfile.mkdtemp(prefix="rowlease-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        place.rmdir()
        pytest.skip("mounting a small disk needs root and the right to mount, which this machine does not give")
    place.chmod(0o777)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        shutil.rmtree(place, ignore_errors=True)


def test_a_full_disk_of_the_store(db: Database, tmp_path: Path) -> None:
    """Submitting says that there is no room; no job is made and no half file stays; with room it works."""
    with small_disk(1) as disk, Database(db.conninfo, replace(db.settings, store_folder=disk / "store")) as cramped:
        with pytest.raises(im.StoreError, match="room"):
            im.submit(large_workbook(tmp_path / "a.xlsx"), form(), db=cramped)
        assert [file for file in (disk / "store").rglob("*") if file.is_file()] == []
    assert im.jobs(db=db) == ()


def large_workbook(path: Path) -> Path:
    """Write a workbook that no zip can pack below 2 MB."""
    return workbook(path, [("S1", None, 1, 1, os.urandom(15_000).hex()) for _ in range(150)])


def test_a_full_disk_of_the_server(db: Database, conn: Connection, tmp_path: Path, move_clock: MoveClock) -> None:
    """The batch that finds no room is rolled back.

    Rows and cursor are kept, the job waits, and goes on when there is room.
    """
    path = site_workbook(tmp_path / "a.xlsx", 20_000)
    first = im.import_workbook(site_workbook(tmp_path / "first.xlsx", 1, start=90_000), form(), db=db, progress=False)
    name = conn.info.dbname
    with small_disk(1) as disk:
        data = conn.execute("show data_directory").fetchall()[0]["data_directory"]
        shutil.chown(disk, user=Path(data).owner())
        conn.execute(f"create tablespace {name} location '{disk}'")
        try:
            conn.execute(f"alter table site_reports set tablespace {name}")
            with pytest.raises(im.DatabaseError, match="disk of the server is full"):
                im.import_workbook(path, form(), db=db, batch_rows=1000, progress=False)
            waiting = im.jobs(db=db)[0]
            assert (waiting.status, waiting.attempt_count) == ("pending", 1)
            assert 0 < waiting.cursor < 20_000
        finally:
            conn.execute("alter table site_reports set tablespace pg_default")
            conn.execute(f"drop tablespace {name}")

    move_clock(dt.timedelta(minutes=1))
    with Database(db.conninfo, db.settings) as later:
        im.work(db=later)
        conn.execute("delete from site_reports where import_job_id = %s", [first.id])
        done = assert_each_row_once(conn, waiting.id, rows=20_000)
    assert done.status == "partial_success"
