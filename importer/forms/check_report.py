"""What a check found: good rows, faults, what was left out; it shows itself in a notebook and in a terminal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import polars as pl

from importer.display import count, duration, number, table, text_table
from importer.errors import WorkbookError
from importer.forms.form import Form
from importer.forms.left_out import LeftOut
from importer.forms.reading import FAULT_SCHEMA
from importer.sender import Marked

#: Faults that a report shows of itself; `report.faults` has them all.
SHOWN_FAULTS = 10


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """The result of a dry run.

    ```python
    report = im.check("march.xlsx", form)
    report.faults.filter(pl.col("rule") == "bad_date")
    ```
    """

    form: Form
    file_name: str
    #: The good rows: source_row (Int64) and one typed column per form column, in sheet order.
    accepted: pl.DataFrame
    #: One row per fault: source_row, column, rule, value, message; sorted by row and the form's order of columns.
    faults: pl.DataFrame
    #: Data rows of the sheet, good or bad.
    rows: int
    left_out: LeftOut
    #: Rules that need the database, each with the reason.
    not_checked: tuple[str, ...] = ()
    #: How long the check took.
    seconds: float | None = None
    #: The workbook that was checked, for `workbook`.
    path: Path | None = None

    @cached_property
    def failed_rows(self) -> int:
        """Rows with at least one fault."""
        return self.faults["source_row"].n_unique()

    @property
    def counts(self) -> dict[str, int]:
        """Rows, of them accepted and failed, and faults by rule (`fault:bad_date`), the most frequent first."""
        by_rule = self.faults.group_by("rule").len().sort("len", "rule", descending=[True, False])
        rows = {"rows": self.rows, "accepted": self.accepted.height, "failed": self.failed_rows}
        return rows | {f"fault:{rule}": count for rule, count in by_rule.iter_rows()}

    @property
    def is_clean(self) -> bool:
        """Whether every row is good."""
        return self.faults.is_empty()

    def workbook(self, path: str | os.PathLike[str], *, only_failed: bool = False) -> Marked:
        """Write the sender's own workbook with the bad cells marked: coloured, each with a note, and a list of all.

        `only_failed`: a small workbook with the failed rows alone. Returns where it is, how many notes it has, and
        what of the sender's workbook could not be kept.

        Raises: WorkbookError when the workbook was changed or moved since the check.
        """
        from importer.forms.fault_workbook import Sent, write_fault_workbook  # noqa: PLC0415 - only who asks needs it

        if self.path is None or not self.path.is_file():
            raise WorkbookError("empty_file", f"the workbook {self.file_name} is not where it was checked any more")
        sent = Sent(path=self.path, file_name=self.file_name, form=self.form)
        return write_fault_workbook(sent, path, self.faults, only_failed=only_failed)

    def _title(self) -> str:
        counts = self.counts
        took = "" if self.seconds is None else f" ({duration(timedelta(seconds=self.seconds))})"
        return (
            f"{self.file_name} as {self.form.name}: {count(counts['rows'], 'row')}, "
            f"{number(counts['accepted'])} accepted, {number(counts['failed'])} failed{took}"
        )

    def _fault_rows(self) -> list[tuple[object, ...]]:
        return self.faults.head(SHOWN_FAULTS).rows()

    def _remarks(self) -> list[str]:
        more = self.faults.height - SHOWN_FAULTS
        rules = [
            f"{rule.removeprefix('fault:')} {count:,}"
            for rule, count in self.counts.items()
            if rule.startswith("fault:")
        ]
        return [
            *([f"faults: {', '.join(rules)}"] if rules else []),
            *([f"and {more:,} more faults in report.faults"] if more > 0 else []),
            *self.left_out.lines,
            *(f"not checked: {rule}" for rule in self.not_checked),
        ]

    def __repr__(self) -> str:
        """The same for a terminal."""
        parts = [self._title()]
        if not self.is_clean:
            parts.append(text_table(list(FAULT_SCHEMA), self._fault_rows()))
        return "\n".join([*parts, *self._remarks()])

    def _repr_html_(self) -> str:
        """Counts, first faults and what was left out, as two small tables."""
        html = [table(list(FAULT_SCHEMA), self._fault_rows(), caption=self._title())]
        if self.is_clean:
            html = [table(["rows", "accepted", "failed"], [tuple(self.counts.values())], caption=self._title())]
        if remarks := self._remarks():
            html.append(table(["remark"], [(remark,) for remark in remarks]))
        return "".join(html)
