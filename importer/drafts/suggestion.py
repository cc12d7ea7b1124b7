"""Which heading of a sheet is which wanted column."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import yaml

from importer.display import table, text_table
from importer.drafts.headings import Heading, Headings, read_headings
from importer.excel import Column
from importer.forms import Form, FormColumn
from importer.forms.cells import ColumnTyper
from importer.forms.nearness import nearest_label
from importer.forms.rules import Rules

#: Confidence below which nothing is proposed.
BAR = 0.6
#: What the title counts for, and the values.
_TITLE, _VALUES = 0.75, 0.25
#: How far the best heading must be before the second best: two that are alike are a guess.
_LEAD = 0.05


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A column that is looked for."""

    column: FormColumn
    #: Whether its type is known (a table's column that no form knows may be of any).
    typed: bool = True


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A wanted column and the heading that is proposed for it, or none."""

    column: str
    heading: str | None
    #: Of the heading that is proposed; of the best one when none is.
    confidence: float
    #: Why, in a few words.
    why: str


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A proposal for review: nothing is changed by it.

    ```python
    suggestion = im.suggest("march.xlsx", form)
    suggestion.write("forms/site_report_march.yaml")   # the form with the proposed headings as aliases
    ```
    """

    sheet: str
    header_row: int
    pairs: tuple[Pair, ...]
    #: Headings that belong to no wanted column.
    left: tuple[str, ...]
    form: Form

    @property
    def aliases(self) -> dict[str, str]:
        """The proposed heading by column name, where one is proposed."""
        return {pair.column: pair.heading for pair in self.pairs if pair.heading is not None}

    @property
    def frame(self) -> pl.DataFrame:
        """The pairs as a frame: column str, heading str (null: none proposed), confidence f64, why str."""
        schema = {"column": pl.String, "heading": pl.String, "confidence": pl.Float64, "why": pl.String}
        return pl.DataFrame([dataclasses.astuple(pair) for pair in self.pairs], schema=schema, orient="row")

    def as_form(self) -> Form:
        """The form, its columns answering to the proposed headings too."""
        named = self.aliases
        return dataclasses.replace(
            self.form, columns=tuple(_answering(column, named.get(column.name)) for column in self.form.columns)
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the form with the proposed headings as aliases, each pair with its confidence above, for review."""
        lines = [
            f"#   {pair.column}: {pair.heading or '(none proposed)'}  {pair.confidence:.2f}  {pair.why}"
            for pair in self.pairs
        ]
        body = yaml.safe_dump(self.as_form().to_dict(), sort_keys=False, allow_unicode=True)
        text = "\n".join(["# Proposed; look at each line before you use it.", *lines, body])
        Path(path).write_text(text, encoding="utf-8")
        return Path(path)

    def _rows(self) -> list[tuple[object, ...]]:
        return [(p.column, p.heading or "", f"{p.confidence:.2f}", p.why) for p in self.pairs]

    def __repr__(self) -> str:
        left = f"\nheadings of no column: {', '.join(self.left)}" if self.left else ""
        return text_table(["column", "heading", "confidence", "why"], self._rows()) + left

    def _repr_html_(self) -> str:
        return table(["column", "heading", "confidence", "why"], self._rows())


def wanted_by(form: Form) -> tuple[Wanted, ...]:
    """The columns that a form looks for."""
    return tuple(Wanted(column=column) for column in form.columns)


def suggest(
    path: str | os.PathLike[str], form: Form, wanted: Sequence[Wanted], *, sheet: str | None = None
) -> Suggestion:
    """Propose a heading for each wanted column; one below the bar, or hardly before the next, gets none."""
    chosen = sheet if sheet is not None else form.sheet if isinstance(form.sheet, str) else None
    found = read_headings(Path(path), sheet=chosen, header_row=form.header_row)
    scores = [[_score(want, heading, form, found) for heading in found.columns] for want in wanted]
    taken: dict[int, int] = {}
    order = sorted(
        ((scores[at][place], at, place) for at in range(len(wanted)) for place in range(len(found.columns))),
        key=lambda each: (-each[0], each[1], each[2]),
    )
    for score, at, place in order:
        if score >= BAR and at not in taken and place not in taken.values() and not _doubtful(scores, at, place, taken):
            taken[at] = place
    return Suggestion(
        sheet=found.sheet,
        header_row=found.row,
        pairs=tuple(_pair(want, at, scores[at], taken, found) for at, want in enumerate(wanted)),
        left=tuple(h.title for place, h in enumerate(found.columns) if place not in taken.values()),
        form=form,
    )


def _doubtful(scores: Sequence[Sequence[float]], at: int, place: int, taken: dict[int, int]) -> bool:
    """Whether another free heading is nearly as good, or another free column wants this one nearly as much."""
    best = scores[at][place]
    free = [other for other in range(len(scores[at])) if other != place and other not in taken.values()]
    others = [column for column in range(len(scores)) if column != at and column not in taken]
    rivals = [scores[at][other] for other in free] + [scores[column][place] for column in others]
    return any(best - rival < _LEAD for rival in rivals if rival >= BAR)


def _pair(want: Wanted, at: int, scores: Sequence[float], taken: dict[int, int], found: Headings) -> Pair:
    name = want.column.name
    best = max(range(len(scores)), key=lambda place: scores[place], default=None)
    if at in taken:
        heading = found.columns[taken[at]]
        return Pair(column=name, heading=heading.title, confidence=round(scores[taken[at]], 2), why=_why(want, heading))
    if best is None:
        return Pair(column=name, heading=None, confidence=0.0, why="the sheet has no headings")
    near = f"nearest is {found.columns[best].title!r}"
    why = f"{near}, below {BAR}" if scores[best] < BAR else f"{near}, but another is as near"
    return Pair(column=name, heading=None, confidence=round(scores[best], 2), why=why)


def _why(want: Wanted, heading: Heading) -> str:
    near = nearest_label(heading.title, want.column.labels)
    return "the same title" if near == 1 else f"titles alike {near:.2f}, values fit the type {want.column.type}"


def _score(want: Wanted, heading: Heading, form: Form, found: Headings) -> float:
    title = nearest_label(heading.title, want.column.labels)
    if not want.typed or not heading.values:
        return title
    return _TITLE * title + _VALUES * _fitting(want.column, heading, form, date_1904=found.date_1904)


def _fitting(column: FormColumn, heading: Heading, form: Form, *, date_1904: bool) -> float:
    """Which part of the sample's cells the column would take."""
    cells = Column(heading.cells["kind"], heading.cells["value"])
    typed = ColumnTyper(column, form.locale, date_1904=date_1904).typed(cells)
    alone = dataclasses.replace(form, columns=(column,), key=(), sheet=None)
    broken = Rules(alone).breaches(typed.values.alias(column.name).to_frame())
    bad = set(typed.misfits["index"].to_list()) | set(broken["index"].to_list())
    return 1 - len(bad) / len(cells.value)


def _answering(column: FormColumn, heading: str | None) -> FormColumn:
    if heading is None or nearest_label(heading, ()) == 1 or heading in column.labels:
        return column
    return dataclasses.replace(column, aliases=(*column.aliases, heading))
