"""A corrected file comes back: only what failed before and is right now goes in, whichever file it is."""

from __future__ import annotations

import dataclasses
import os
import random
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import importer as im
from importer import Form
from importer.db import Connection, Database
from importer.import_job import Job
from tests.importing import form, table_rows, workbook

Row = tuple[Any, ...]
BAD = "many"


def row(site: str, crew: object = 1, note: str | None = None) -> Row:
    """Give one row of the form; a crew that is no number is a fault."""
    return (site, None, crew, 1, note)


def imported(db: Database, path: Path, how: Form, **options: Any) -> Job:  # noqa: ANN401 - options of the import
    """Import a workbook."""
    return im.import_workbook(path, how, db=db, progress=False, **options)


def there(conn: Connection) -> list[tuple[Any, ...]]:
    """Give site, crew and note of the table's rows, sorted."""
    return sorted((str(r["site"]), r["crew"], r["note"] or "") for r in table_rows(conn))


def corrected(path: Path, values: dict[int, int], *, column: str = "C") -> Path:
    """Correct cells of a workbook in place, as a sender does: sheet row -> value."""
    book = openpyxl.load_workbook(path)
    sheet = book.worksheets[0]
    for number, value in values.items():
        sheet[f"{column}{number}"] = value
    book.save(path)
    return path


ROWS = [row("A"), row("B", BAD), row("A"), row("C", BAD), row("D", 4)]


@pytest.fixture
def first(db: Database, tmp_path: Path) -> Job:
    """Give an import of five rows, two of which have a fault, and two of which are equal."""
    return imported(db, workbook(tmp_path / "march.xlsx", ROWS), form())


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_the_marked_workbook_comes_back(db: Database, conn: Connection, tmp_path: Path, first: Job) -> None:
    """It names its job by its stamp; corrected rows go in, the others are known and left."""
    im.fault_workbook(first, tmp_path / "faults.xlsx", db=db)

    second = imported(db, corrected(tmp_path / "faults.xlsx", {3: 30}), form())

    assert second.parent_id == first.id
    assert (second.success_rows, second.skipped_rows, second.failed_rows) == (1, 3, 1)
    assert there(conn) == [("A", 1, ""), ("A", 1, ""), ("B", 30, ""), ("D", 4, "")]


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_the_small_workbook_comes_back(db: Database, conn: Connection, tmp_path: Path, first: Job) -> None:
    """Only the failed rows are in it, so nothing is left and nothing is missed."""
    im.fault_workbook(first, tmp_path / "small.xlsx", db=db, only_failed=True)

    second = imported(db, corrected(tmp_path / "small.xlsx", {3: 30, 4: 40}), form())

    assert (second.parent_id, second.status, second.success_rows) == (first.id, "success", 2)
    assert there(conn) == [("A", 1, ""), ("A", 1, ""), ("B", 30, ""), ("C", 40, ""), ("D", 4, "")]


def test_a_file_fixed_by_hand_and_sorted(db: Database, conn: Connection, tmp_path: Path, first: Job) -> None:
    """Without stamp and key the sender names the job; moved rows are known by what they hold."""
    rows = [row("C", 40), row("D", 4), row("A"), row("B", 30), row("A")]

    second = imported(db, workbook(tmp_path / "b.xlsx", rows), form(), corrects=first)

    assert (second.success_rows, second.skipped_rows, second.failed_rows) == (2, 3, 0)
    assert there(conn) == [("A", 1, ""), ("A", 1, ""), ("B", 30, ""), ("C", 40, ""), ("D", 4, "")]


def test_a_row_that_was_right_and_changed_is_shown_and_not_doubled(
    db: Database, conn: Connection, tmp_path: Path, first: Job
) -> None:
    """A good row that the sender changed is a fault `changed`; the corrected rows beside it go in."""
    rows = [row("A"), row("B", 30), row("A"), row("C", 40), row("D", 5)]

    second = imported(db, workbook(tmp_path / "b.xlsx", rows), form(), corrects=first.id)

    assert (second.success_rows, second.failed_rows) == (2, 1)
    assert im.faults(second, db=db).select("source_row", "rule").rows() == [(6, "changed")]
    assert ("D", 4, "") in there(conn)


def test_with_a_key_a_changed_row_is_known_wherever_it_stands(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Its key is in the table: a fault, or an update where the form says so; sorted or not."""
    rows = [row("A"), row("B", BAD), row("D", 4)]
    first = imported(db, workbook(tmp_path / "a.xlsx", rows), form(key=["site"]))
    returned = workbook(tmp_path / "b.xlsx", [row("D", 5), row("A"), row("B", 30)])

    second = imported(db, returned, form(key=["site"]), corrects=first)

    assert im.faults(second, db=db).select("source_row", "rule").rows() == [(2, "unique")]
    assert there(conn) == [("A", 1, ""), ("B", 30, ""), ("D", 4, "")]
    third = imported(db, returned, form(key=["site"], on_clash="update"), corrects=first, replace=True)
    assert (third.success_rows, third.updated_rows, third.skipped_rows) == (2, 1, 1)
    assert there(conn) == [("A", 1, ""), ("B", 30, ""), ("D", 5, "")]


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_a_failed_row_is_corrected_once_whatever_file_brings_it(
    db: Database, conn: Connection, tmp_path: Path, first: Job
) -> None:
    """The small workbook, then the marked one with another value for the same row: the second is shown."""
    im.fault_workbook(first, tmp_path / "small.xlsx", db=db, only_failed=True)
    im.fault_workbook(first, tmp_path / "marked.xlsx", db=db)
    imported(db, corrected(tmp_path / "small.xlsx", {3: 30}), form())

    third = imported(db, corrected(tmp_path / "marked.xlsx", {3: 31, 5: 40}), form())

    assert im.faults(third, db=db).select("source_row", "rule").rows() == [(3, "changed")]
    assert there(conn) == [("A", 1, ""), ("A", 1, ""), ("B", 30, ""), ("C", 40, ""), ("D", 4, "")]


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
@pytest.mark.parametrize("small", [True, False])
def test_a_row_put_right_to_what_another_row_holds_goes_in(
    db: Database, conn: Connection, tmp_path: Path, small: bool
) -> None:
    """Its origin says that it is none of the rows that were right."""
    first = imported(db, workbook(tmp_path / "a.xlsx", [row("A"), row("A", BAD)]), form())
    im.fault_workbook(first, tmp_path / "back.xlsx", db=db, only_failed=small)

    second = imported(db, corrected(tmp_path / "back.xlsx", {3: 1}), form())

    assert second.success_rows == 1
    assert there(conn) == [("A", 1, ""), ("A", 1, "")]


def test_the_history_shows_the_chain(db: Database, tmp_path: Path, first: Job) -> None:
    """From any of its jobs: the import, its correction, the undo of it."""
    rows = [row("A"), row("B", 30), row("A"), row("C", BAD), row("D", 4)]
    second = imported(db, workbook(tmp_path / "b.xlsx", rows), form(), corrects=first)
    back = im.undo(second, db=db, progress=False)

    chain = im.job(first, db=db).history

    assert [(job.id, job.kind, job.parent_id) for job in chain] == [
        (first.id, "import", None), (second.id, "import", first.id), (back.id, "undo", second.id),
    ]  # fmt: skip
    assert im.job(back, db=db).history == chain


def test_an_undone_correction_can_come_again(db: Database, conn: Connection, tmp_path: Path, first: Job) -> None:
    """Its rows go, those of the import stay, and the same file corrects again."""
    before = there(conn)
    path = workbook(tmp_path / "b.xlsx", [row("A"), row("B", 30), row("A"), row("C", 40), row("D", 4)])
    second = imported(db, path, form(), corrects=first)
    after = there(conn)

    im.undo(second, db=db, progress=False)

    assert there(conn) == before
    third = imported(db, path, form(), corrects=first)
    assert third.id != second.id
    assert there(conn) == after


@pytest.mark.parametrize("why", ["no job", "other form", "undone"])
def test_what_cannot_be_corrected_says_why(db: Database, tmp_path: Path, first: Job, why: str) -> None:
    """A job that is not there, one of another form, one whose rows were taken back."""
    path = workbook(tmp_path / "b.xlsx", [row("A")])
    how = form(name="another") if why == "other form" else form()
    if why == "undone":
        im.undo(first, db=db, progress=False)

    with pytest.raises(im.JobError):
        imported(db, path, how, corrects=999 if why == "no job" else first)


@pytest.mark.usefixtures("first")
def test_only_changes(db: Database, conn: Connection, tmp_path: Path) -> None:
    """Rows that are in the table as they are are left, whatever job they came with; the others are imported."""
    rows = [row("D", 4), row("A"), row("E", 5), row("A"), row("A")]

    second = imported(db, workbook(tmp_path / "b.xlsx", rows), form(), only_changes=True)

    assert (second.success_rows, second.skipped_rows) == (2, 3)
    assert there(conn) == [("A", 1, ""), ("A", 1, ""), ("A", 1, ""), ("D", 4, ""), ("E", 5, "")]


class _Killed(BaseException):
    """Ends an import as a signal would."""


def _at_random(dice: random.Random) -> Any:  # noqa: ANN401 - what `at=` takes
    def at(point: str) -> None:
        if point in ("committed", "copied") and dice.random() < 0.15:
            raise _Killed

    return at


def _imported_in_the_end(db: Database, path: Path, how: Form, dice: random.Random, **options: object) -> Job:
    """Import a workbook, killed now and then, until it ended."""
    for _ in range(50):
        try:
            job = imported(db, path, how, batch_rows=3, at=_at_random(dice), **options)
        except _Killed:
            continue
        if job.ended:
            return job
    raise AssertionError("it never ended")


class _Sender:
    """Somebody who corrects some rows, in whichever file is at hand, and moves rows about."""

    def __init__(self, folder: Path, right: Sequence[Row], wrong: set[int], dice: random.Random) -> None:
        self.folder, self.right, self.wrong, self.dice = folder, right, wrong, dice
        self.still = set(wrong)
        self.sent = 0

    def _row(self, at: int) -> Row:
        whole = self.right[at]
        return (*whole[:2], BAD, *whole[3:]) if at in self.still else whole

    def by_hand(self) -> Path:
        """Write the whole sheet anew, its rows in any order."""
        self.sent += 1
        order = list(range(len(self.right)))
        if self.sent > 1:
            self.dice.shuffle(order)
        return workbook(self.folder / f"{uuid.uuid4().hex}.xlsx", [self._row(at) for at in order])

    def in_ours(self, path: Path, *, small: bool) -> Path:
        """Correct cells in a marked workbook or in the small one, then sort its rows in any order."""
        book = openpyxl.load_workbook(path)
        sheet = book.worksheets[0]
        first = 3 if small else 2
        places = sorted(self.wrong) if small else list(range(len(self.right)))
        lines = []
        for number, at in enumerate(places, start=first):
            sheet.cell(number, 3).value = self._row(at)[2]
            lines.append([sheet.cell(number, column).value for column in range(1, sheet.max_column + 1)])
        self.dice.shuffle(lines)
        for number, line in enumerate(lines, start=first):
            for column, value in enumerate(line, start=1):
                sheet.cell(number, column).value = value
        book.save(path)
        return path


def sheets() -> st.SearchStrategy[list[tuple[str, int, bool]]]:
    """Rows of a sheet: a site (few, so that rows are equal), a crew, and whether the cell is wrong at first."""
    return st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3), st.booleans()), min_size=1, max_size=12)


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
@settings(
    max_examples=int(os.environ.get("ROWLEASE_SOAK_ROUNDS", "100")) // 10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a failure is told by its seed; shrinking would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=sheets(), has_key=st.booleans(), rounds=st.integers(1, 3), seed=st.integers(0, 10_000))
def test_the_table_ends_equal_to_the_corrected_sheet(
    db: Database, tmp_path: Path, rows: Sequence[tuple[str, int, bool]], has_key: bool, rounds: int, seed: int
) -> None:
    """Any table, faults, corrections, order, file, rounds and kills: in the end each right row is there once."""
    dice = random.Random(seed)
    table = f"t{uuid.uuid4().hex}"
    how = form(name=table, table=table, key=["site", "note"]) if has_key else form(name=table, table=table)
    right = [row(site, crew, f"n{at}" if has_key else None) for at, (site, crew, _) in enumerate(rows)]
    sender = _Sender(tmp_path, right, {at for at, (_, _, is_wrong) in enumerate(rows) if is_wrong}, dice)
    jobs = [_imported_in_the_end(db, sender.by_hand(), how, dice)]
    for number in range(1, rounds + 1):
        sender.still = set() if number == rounds else {at for at in sender.still if dice.random() < 0.5}
        kind = dice.choice(["hand", "marked", "small"]) if sender.wrong else "hand"
        if kind == "hand":
            path, options = sender.by_hand(), {"corrects": jobs[0]}
        else:
            path, options = tmp_path / f"{uuid.uuid4().hex}.xlsx", {}
            im.fault_workbook(jobs[0], path, db=db, only_failed=kind == "small")
            sender.in_ours(path, small=kind == "small")
        jobs.append(_imported_in_the_end(db, path, how, dice, **options))
    with db.connection() as conn:
        found = sorted((str(r["site"]), r["crew"], r["note"] or "") for r in table_rows(conn, table))
    assert found == sorted((r[0], r[2], r[4] or "") for r in right)
    for job in sorted({job.id for job in jobs}, reverse=True):
        assert im.undo(job, db=db, progress=False).failed_rows == 0
    with db.connection() as conn:
        assert table_rows(conn, table) == []


def test_a_killed_correction_goes_on(db: Database, conn: Connection, tmp_path: Path, first: Job) -> None:
    """Broken off between two batches, it resumes with what the first pass found."""
    path = workbook(tmp_path / "b.xlsx", [row("B", 30), row("A"), row("C", 40), row("D", 4), row("A")])

    class Broken(BaseException):
        """Ends the import as a signal would."""

    def at(point: str) -> None:
        if point == "committed":
            raise Broken

    with pytest.raises(Broken):
        imported(db, path, form(), corrects=first, batch_rows=2, at=at)
    waiting = im.jobs(db=db)[0]
    assert dataclasses.asdict(waiting)["status"] == "pending"

    done = imported(db, path, form(), corrects=first)

    assert (done.id, done.success_rows, done.skipped_rows) == (waiting.id, 2, 3)
    assert conn.execute("select from rowlease.import_row_matches where kind <> 'corrects'").fetchall() == []
    assert there(conn) == [("A", 1, ""), ("A", 1, ""), ("B", 30, ""), ("C", 40, ""), ("D", 4, "")]


def test_a_file_that_is_nearly_the_same_says_how_it_differs(db: Database, conn: Connection, tmp_path: Path) -> None:
    """By the key: new, changed, the same, gone, and with a fault; and `only_changes` loads just the changes."""
    how = form(key=["site"], on_clash="update")
    first = imported(db, workbook(tmp_path / "a.xlsx", [row(s) for s in "ABCDEF"]), how)
    path = workbook(tmp_path / "b.xlsx", [row("A"), row("B"), row("C"), row("D"), row("E", 9), row("G"), row("H", BAD)])

    found = im.compare(path, how, db=db)

    assert (found.new, found.changed, found.same, found.gone, found.failed) == (1, 1, 4, 1, 1)
    assert (found.is_nearly_the_same, found.sent_before) == (True, None)
    second = imported(db, path, how, only_changes=True)
    assert (second.success_rows, second.updated_rows, second.skipped_rows, second.failed_rows) == (2, 1, 4, 1)
    again = im.compare(tmp_path / "a.xlsx", how, db=db)
    assert again.sent_before == im.job(first, db=db)
    assert f"import job {first.id}" in repr(again)
    assert len(there(conn)) == 7


def test_comparing_needs_a_key(db: Database, tmp_path: Path) -> None:
    """Nothing else says which row is which; a table that is not there has nothing."""
    path = workbook(tmp_path / "a.xlsx", [row("A")])

    assert im.compare(path, form(key=["site"]), db=db).new == 1
    with pytest.raises(im.FormError):
        im.compare(path, form(), db=db)
