"""Loading a batch: COPY, the stage for keys, and the search for the row that PostgreSQL refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from importer.db import Connection, errors, sql, statements
from importer.target.table import Target
from importer.target.update import set_aside_unchanged, update_rows

_ST = statements("target")

#: COPY takes the batch in slices of this size, so that a stop or a lost connection is seen early.
_SLICE_BYTES = 256 * 1024

#: SQLSTATEs that are about the row and not about the world: triggered actions, data exceptions, integrity, a check
#: option, PL/pgSQL (a trigger's own refusal), a value too long for an index (PostgreSQL manual, appendix A).
_ROW_CLASSES = ("09", "22", "23", "44", "P0")
_ROW_STATES = ("54000",)

#: What is said of a row that PostgreSQL took and did not keep.
_LEFT_OUT = "a trigger of the table left it out"


class Rows(Protocol):
    """A batch of rows as the target takes it: CSV of the form's columns, then import_job_id and source_row."""

    def __len__(self) -> int:
        """How many rows."""

    def csv(self, start: int, stop: int) -> bytes:
        """Rows from start up to, but without, stop as CSV in UTF-8."""

    def source_row(self, index: int) -> int:
        """The sheet row of one row."""


@dataclass(frozen=True, kw_only=True)
class Clash:
    """A row whose values a unique index has already; a row may clash in several sets of columns."""

    source_row: int
    #: The columns that repeat: the key, or one unique column.
    columns: tuple[str, ...]
    #: The job that put the other row there; null for a row of no job.
    job_id: int | None
    #: The other row's sheet row; null for a row of no job.
    first_row: int | None
    #: Where the other row lies in the table: tells rows apart within the transaction.
    place: str


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A row that PostgreSQL refused, in its words."""

    source_row: int
    #: The column, where PostgreSQL names one of the form's, else ''.
    column: str
    message: str


@dataclass(kw_only=True)
class Loaded:
    """What became of a batch."""

    inserted: int = 0
    #: Sheet rows that changed a row that was there, and those whose row is there as it is.
    updated: list[int] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def take(self, part: Loaded, *, rows: int) -> None:
        """Add what became of a part of the batch; rows of which nothing is told went in."""
        told = len(part.updated) + len(part.unchanged) + len(part.refused)
        self.inserted += rows - told - len({clash.source_row for clash in part.clashes})
        self.updated += part.updated
        self.unchanged += part.unchanged
        self.clashes += part.clashes
        self.refused += part.refused


#: Of rows that clash, the sheet rows of those that are to update the row that is there.
Updating = Callable[[Sequence[Clash]], Collection[int]]


def load(
    conn: Connection,
    target: Target,
    rows: Rows,
    *,
    job_id: int,
    copying: Callable[[], None] | None = None,
    updating: Updating | None = None,
) -> Loaded:
    """Load a batch in the caller's transaction; rows that cannot go in are told, all others are in.

    `copying` is called before each slice of COPY. For a target with a key or unique columns the caller holds `lock`.
    `updating` says which of the rows that clash are to update the row that is there; none does without it.

    Raises:
        psycopg.Error: for a reason outside the rows (connection, rights, time limit); the transaction is then aborted.
    """

    def put(start: int, stop: int) -> Loaded:
        if _copy(conn, _copy_into(target, target.table), rows.csv(start, stop), copying) < stop - start:
            raise errors.TriggeredActionException(_LEFT_OUT)
        conn.execute(_ST["check_now"])
        return Loaded()

    if not target.unique_sets:
        return _in_halves(conn, target, rows, range(len(rows)), put)
    stage = Stage(conn, target, job_id)

    def insert(start: int, stop: int) -> Loaded:
        part = stage.insert(rows.source_row(start), rows.source_row(stop - 1), updating)
        conn.execute(_ST["check_now"])
        return part

    def fill(start: int, stop: int) -> Loaded:
        stage.copy(rows.csv(start, stop), copying)
        return _in_halves(conn, target, rows, range(start, stop), insert)

    return _in_halves(conn, target, rows, range(len(rows)), fill)


def _in_halves(conn: Connection, target: Target, rows: Rows, part: range, work: Callable[[int, int], Loaded]) -> Loaded:
    """Do something with these rows in a savepoint; where PostgreSQL refuses, with each half, down to the row."""
    loaded = Loaded()
    parts = [part] if part else []
    while parts:
        part = parts.pop()
        try:
            with conn.transaction():
                done = work(part.start, part.stop)
        except errors.Error as error:
            if not about_a_row(error):
                raise
            if len(part) == 1:
                loaded.refused.append(_refusal(error, target, rows.source_row(part.start)))
            else:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
        else:
            loaded.take(done, rows=len(part))
    return loaded


def about_a_row(error: errors.Error) -> bool:
    """Whether PostgreSQL refused a row's values (and not the statement, the connection or the time it took)."""
    state = error.sqlstate or ""
    return state[:2] in _ROW_CLASSES or state in _ROW_STATES or _is_a_triggers_own(state)


def _is_a_triggers_own(state: str) -> bool:
    """Whether it is none of PostgreSQL's states: a trigger may raise any."""
    try:
        errors.lookup(state)
    except KeyError:
        return bool(state)
    return False


def _copy_into(target: Target, table: sql.Composable) -> sql.Composed:
    return _ST["copy"].format(table=table, columns=target.column_list)


def _copy(conn: Connection, statement: sql.Composed, data: bytes, copying: Callable[[], None] | None) -> int:
    """Send rows; return how many the table kept."""
    with conn.cursor() as cur:
        with cur.copy(statement) as copy:
            for piece in _slices(data):
                if copying is not None:
                    copying()
                copy.write(piece)
        return cur.rowcount


def _slices(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    for start in range(0, len(view), _SLICE_BYTES):
        yield view[start : start + _SLICE_BYTES]


def _refusal(error: errors.Error, target: Target, source_row: int) -> Refused:
    names = {c.name for c in target.columns}
    column = error.diag.column_name if error.diag.column_name in names else ""
    message = f"PostgreSQL refused the row: {error.diag.message_primary or error}"
    if error.diag.constraint_name:
        message += f" (constraint {error.diag.constraint_name})"
    return Refused(source_row=source_row, column=column or "", message=message)


class Stage:
    """A temporary table in which a batch waits while its keys are looked at."""

    def __init__(self, conn: Connection, target: Target, job_id: int) -> None:
        self._conn = conn
        self._target = target
        self._job_id = job_id
        self._name = sql.Identifier("pg_temp", f"rowlease_stage_{job_id}".replace("-", "_"))
        unqualified = sql.Identifier(f"rowlease_stage_{job_id}".replace("-", "_"))
        conn.execute(_ST["create_stage"].format(stage=unqualified, columns=target.column_list, table=target.table))

    @property
    def name(self) -> sql.Identifier:
        """The temporary table's name for a statement."""
        return self._name

    def copy(self, data: bytes, copying: Callable[[], None] | None = None) -> None:
        """Fill the stage with these rows and no others."""
        self._conn.execute(_ST["empty_stage"].format(stage=self._name))
        self.add(data, copying)

    def add(self, data: bytes, copying: Callable[[], None] | None = None) -> None:
        """Put these rows beside those that are there."""
        _copy(self._conn, _copy_into(self._target, self._name), data, copying)

    def insert(self, first: int, last: int, updating: Updating | None) -> Loaded:
        """Insert the staged rows from one sheet row to another; tell of those that did not go in as they are."""
        part = Loaded()
        if updating is not None and self._target.updates:
            part.unchanged = set_aside_unchanged(
                self._conn, self._target, self._name, job_id=self._job_id, first=first, last=last
            )
        statement = _ST["insert_stage"].format(
            table=self._target.table, stage=self._name, columns=self._target.column_list
        )
        found = self._conn.execute(statement, {"first": first, "last": last}).fetchall()
        left = [int(row["source_row"]) for row in found]
        if not left:
            return part
        clashes, part.refused = self._explain(left)
        chosen = frozenset(updating(clashes)) if updating is not None and clashes else frozenset()
        part.clashes = [clash for clash in clashes if clash.source_row not in chosen]
        if chosen:
            changed = update_rows(self._conn, self._target, self._name, sorted(chosen), job_id=self._job_id)
            part.updated = sorted(changed)
            part.unchanged += sorted(chosen - changed)
        return part

    def _explain(self, left: Sequence[int]) -> tuple[list[Clash], list[Refused]]:
        """Say of each row that was not inserted who has its key, or which index the form does not know refuses it."""
        clashes: list[Clash] = []
        for names in self._target.unique_sets:
            match = sql.SQL(" and ").join(sql.SQL("s.{0} = t.{0}").format(sql.Identifier(name)) for name in names)
            statement = _ST["clashes"].format(stage=self._name, table=self._target.table, match=match)
            rows = self._conn.execute(statement, {"rows": list(left)}).fetchall()
            clashes += [Clash(columns=names, **row) for row in rows]
        explained = {clash.source_row for clash in clashes}
        refused = [self._refused(row) for row in left if row not in explained]
        return clashes, refused

    def _refused(self, source_row: int) -> Refused:
        statement = _ST["insert_one"].format(
            table=self._target.table, stage=self._name, columns=self._target.column_list
        )
        try:
            with self._conn.transaction():
                if not self._conn.execute(statement, {"source_row": source_row}).rowcount:
                    raise errors.TriggeredActionException(_LEFT_OUT)
        except errors.Error as error:
            if not about_a_row(error):
                raise
            return _refusal(error, self._target, source_row)
        # Who had the key went away between the two statements. The whole batch is repeated, as after a conflict.
        raise errors.SerializationFailure(f"row {source_row}: the row it clashed with has gone")
