"""What becomes of a cell: the tables of `importer/forms/cells.md`, and the fast ways against the rule."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import importer.forms
from importer.excel import serial
from importer.excel.cells import Kind
from importer.forms import COLUMN_TYPES, ColumnType, Form, FormColumn, Locale
from importer.forms.cells import ColumnTyper
from importer.forms.misfits import Judge, Misfit
from importer.forms.moment_text import duration_text
from tests.pure.forms.handmade import Cell, column, form

DOCUMENT = Path(importer.forms.__file__).with_name("cells.md").read_text(encoding="utf-8")


class Entry(NamedTuple):
    """One entry of a table."""

    section: str
    what: str
    cell: Cell
    #: As the heading says it: `date`, or `decimal(8, 2)`.
    type: str
    becomes: str


def _sections() -> dict[str, tuple[dict[str, Any], list[Entry]]]:
    sections: dict[str, tuple[dict[str, Any], list[Entry]]] = {}
    for section in DOCUMENT.split("\n## ")[1:]:
        title = section.splitlines()[0]
        block = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
        rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
        types = [heading.strip() for heading in rows[0][3:]]
        entries = [
            Entry(title, what.strip(), _cell(kind.strip(), written.strip(" ")), types[at], becomes.strip())
            for what, kind, written, *outcomes in rows[2:]
            for at, becomes in enumerate(outcomes)
        ]
        sections[title] = (yaml.safe_load(block[1]) if block else {}, entries)
    return sections


def _cell(kind: str, written: str) -> Cell:
    value = "" if written == "*empty*" else written[1:-1] if written else None
    return (Kind[kind.upper()], value)


SECTIONS = _sections()
ENTRIES = [entry for _, entries in SECTIONS.values() for entry in entries]


def _column(type_: str) -> FormColumn:
    name, _, limits = type_.partition("(")
    precision, scale = map(int, limits.strip(")").split(",")) if limits else (None, None)
    return form({"name": "c", "type": name} | ({"precision": precision, "scale": scale} if limits else {})).columns[0]


def _typer(section: str, type_: str) -> ColumnTyper:
    settings = SECTIONS[section][0]
    locale = form({"name": "c", "type": "text"}, locale=settings.get("locale", {})).locale
    return ColumnTyper(_column(type_), locale, date_1904=settings.get("date_1904", False))


def _written(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return f"`{value}`".lower()
    if isinstance(value, Decimal):
        return f"`{value.normalize():f}`"
    if isinstance(value, dt.timedelta):
        return f"`{duration_text(value)}`"
    if isinstance(value, dt.datetime):
        return f"`{value.isoformat(sep=' ')}`"
    return f"`{value}`"


def _outcomes(section: str, type_: str, cells: list[Cell]) -> list[str]:
    typed = _typer(section, type_).typed(column(cells))
    outcomes = [_written(value) for value in typed.values.to_list()]
    for at, rule in typed.misfits.select("index", "rule").iter_rows():
        assert outcomes[at] == "-"
        outcomes[at] = rule
    return outcomes


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e.section[:12]}-{e.what}-{e.cell[1]}-{e.type}")
def test_a_cell_becomes_what_the_table_says(entry: Entry) -> None:
    """Each entry of each table holds for a cell that stands alone."""
    becomes = _outcomes(entry.section, entry.type, [entry.cell])

    assert becomes == [entry.becomes]


@pytest.mark.parametrize(("section", "type_"), sorted({(entry.section, entry.type) for entry in ENTRIES}))
def test_a_cell_becomes_the_same_among_others(section: str, type_: str) -> None:
    """What a cell becomes does not depend on the cells about it, be they few or many of its kind."""
    entries = [entry for entry in ENTRIES if (entry.section, entry.type) == (section, type_)]
    by_kind = {kind: [e.cell for e in entries if e.cell[0] == kind] for kind, _ in {e.cell for e in entries}}

    for kind in [None, *by_kind]:
        cells = [entry.cell for entry in entries] + by_kind.get(kind or Kind.BLANK, []) * 50
        becomes = _outcomes(section, type_, cells)

        assert becomes[: len(entries)] == [entry.becomes for entry in entries]


def test_the_table_has_every_kind_under_every_type() -> None:
    """No kind of cell and no type of a form is missing in the main table."""
    main = SECTIONS["In any workbook"][1]

    assert {entry.cell[0] for entry in main} == set(Kind)
    assert {entry.type for entry in main} == set(COLUMN_TYPES)
    assert len(main) == len({(entry.cell, entry.type) for entry in main})


def test_the_rules_of_faults_in_the_tables_are_codes() -> None:
    """What is no value and not blank in a table is the code of a rule."""
    codes = {entry.becomes for entry in ENTRIES if not entry.becomes.startswith("`") and entry.becomes != "-"}

    assert codes == {"type", "bad_date", "cell_error", "no_cached_value", "bad_character", "precision", "bad_cell"}


digits = st.text("0123456789", min_size=1, max_size=24)
_oddities = [
    "nan", "inf", "-Infinity", "-", "+", ".", "-.", "e5", "1e", "1e+", "1_0", "0x10", "１２", "٣",
    "1 2", "--1", "1.2.3", "+.5", "5.", "1e0000000000001", "1E-400", "1e400", "1,5", "1d", "1f",
    "0b1", "1e5.0", "true", " 7 ", "\t7", "7\u00a0", "",
]  # fmt: skip
numbers_written = st.one_of(
    st.sampled_from(_oddities),
    st.integers(-(10**25), 10**25).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.17G}"),
    st.decimals(-(10**8), 10**8, places=2).map(str),
    st.builds("{}{}.{}{}".format, st.sampled_from(["", "-", "+"]), digits, digits, st.sampled_from(["", "E-3", "e5"])),
    st.builds("{}.{}E{}".format, st.integers(1, 9), digits, st.integers(-25, 25)),
)
COLUMNS = [
    FormColumn(name="c", title="c", type="text"),
    FormColumn(name="c", title="c", type="integer"),
    FormColumn(name="c", title="c", type="float"),
    FormColumn(name="c", title="c", type="boolean"),
    FormColumn(name="c", title="c", type="decimal"),
    FormColumn(name="c", title="c", type="decimal", precision=9, scale=2),
    FormColumn(name="c", title="c", type="decimal", precision=38, scale=20),
    FormColumn(name="c", title="c", type="decimal", precision=38, scale=38),
]


@given(st.sampled_from(COLUMNS), st.lists(st.tuples(st.sampled_from([Kind.NUMBER, Kind.TEXT]), numbers_written)))
def test_the_fast_ways_give_what_the_rule_gives(declared: FormColumn, cells: list[Cell]) -> None:
    """Whole columns of numbers come out exactly as cell by cell through the rule."""
    judge = Judge(declared, Locale())

    typed = ColumnTyper(declared, Locale(), date_1904=False).typed(column(cells))

    judged = [judge(kind, value or "") for kind, value in cells]
    expected = [None if isinstance(judgement, Misfit) else judgement for judgement in judged]
    misfits = [at for at, judgement in enumerate(judged) if isinstance(judgement, Misfit)]
    assert typed.values.to_list() == expected
    assert typed.misfits["index"].to_list() == misfits


LOCALES = [
    Locale(decimal=",", thousands="."),
    Locale(decimal=",", thousands=" "),
    Locale(decimal=".", thousands=","),
    Locale(decimal=".", thousands="'"),
    Locale(decimal=","),
]


@given(st.sampled_from(LOCALES), st.integers(-(10**12), 10**12), st.integers(0, 99))
def test_a_number_written_in_its_locale_is_read_back(locale: Locale, whole: int, cents: int) -> None:
    """A number with the declared marks is read as the number it is, alone or in a column of its like."""
    written = (
        f"{whole:,}.{cents:02d}".replace(",", "#").replace(".", locale.decimal).replace("#", locale.thousands or "")
    )
    declared = FormColumn(name="c", title="c", type="decimal", precision=20, scale=2)

    typed = ColumnTyper(declared, locale, date_1904=False).typed(column([(Kind.TEXT, f" {written} ")] * 2))

    assert typed.values.to_list() == [Decimal(f"{whole}.{cents:02d}")] * 2


@given(st.lists(st.dates(dt.date(1900, 3, 1)), min_size=1), st.booleans())
def test_a_day_is_read_back_from_its_serial(days: list[dt.date], date_1904: bool) -> None:
    """Each day of the calendar comes out of its serial, in both date systems."""
    epoch = dt.date(1904, 1, 1) if date_1904 else dt.date(1899, 12, 30)
    days = [max(day, dt.date(1904, 1, 1)) for day in days]
    declared = FormColumn(name="c", title="c", type="date")

    typed = ColumnTyper(declared, Locale(), date_1904=date_1904).typed(
        column([(Kind.DATE, str((day - epoch).days)) for day in days])
    )

    assert typed.values.to_list() == days


@given(st.datetimes(dt.datetime(1900, 3, 1), dt.datetime(9999, 12, 31)))  # noqa: DTZ001 - a workbook knows no zone
def test_a_moment_is_read_back_from_text(moment: dt.datetime) -> None:
    """A moment in ISO 8601 is read to the microsecond, and its day and its time of day likewise."""
    written: dict[ColumnType, str] = {
        "datetime": moment.isoformat(),
        "date": moment.date().isoformat(),
        "time": moment.time().isoformat(),
    }

    found = {
        kind: ColumnTyper(FormColumn(name="c", title="c", type=kind), Locale(), date_1904=False)
        .typed(column([(Kind.TEXT, iso)]))
        .values.item(0)
        for kind, iso in written.items()
    }

    assert found == {"datetime": moment, "date": moment.date(), "time": moment.time()}


@pytest.mark.parametrize(
    ("type_", "written", "hint"),
    [
        ("decimal", "1.234,56", "key locale"),
        ("integer", "1 234", "key locale"),
        ("float", "12,5 €", "key locale"),
        ("boolean", "Ja", "key locale"),
        ("date", "03/04/2024", "key formats"),
        ("datetime", "2024-02-29T10:00+02:00", "time zone"),
    ],
)
def test_a_fault_that_is_likely_a_locale_matter_says_so(type_: ColumnType, written: str, hint: str) -> None:
    """Where the text would be fine under another locale, the message names the key of the form to declare it."""
    declared = FormColumn(name="c", title="c", type=type_)

    misfit = (
        ColumnTyper(declared, Locale(), date_1904=False)
        .typed(column([(Kind.TEXT, written)]))
        .misfits.item(0, "message")
    )

    assert hint in misfit


def test_a_number_among_millions_of_odd_ones_is_judged_alike() -> None:
    """The memory of judgements is emptied when it grows, and nothing else changes."""
    declared = FormColumn(name="c", title="c", type="integer")
    typer = ColumnTyper(declared, Locale(), date_1904=False)
    cells: list[Cell] = [(Kind.TEXT, f"x{n}") for n in range(12_000)]

    first, again = typer.typed(column(cells)), typer.typed(column(cells))

    assert first.misfits.height == again.misfits.height == 12_000


def test_frames_have_the_types_of_the_form() -> None:
    """A column that is blank throughout, or all misfits, still has its type."""
    for kind in COLUMN_TYPES:
        declared = FormColumn(name="c", title="c", type=kind)
        typer = ColumnTyper(declared, Locale(), date_1904=False)

        for cells in ([(Kind.BLANK, None)], [(Kind.ERROR, "#N/A")], [(Kind.TEXT, "?")]):
            assert (
                typer.typed(column(cells)).values.dtype
                == Form.from_dict({"name": "f", "table": "t", "columns": [{"name": "c", "type": kind}]}).frame_schema[
                    "c"
                ]
            )
        assert typer.typed(column([])).values.dtype == declared.frame_type


def test_the_frame_type_of_a_decimal_follows_its_scale() -> None:
    """Declared places are kept; without a declaration there is room for 18."""
    assert _column("decimal(12, 2)").frame_type == pl.Decimal(38, 2)
    assert _column("decimal").frame_type == pl.Decimal(38, 18)


_serials_written = st.one_of(
    st.integers(-2, 2_958_470).map(str),
    st.floats(0, 2_958_467).map(repr),
    st.builds("{}.{}".format, st.sampled_from([0, 59, 60, 61, 2_957_002, 2_957_003, 2_958_464, 2_958_465]), digits),
)


@given(st.sampled_from(["date", "datetime"]), st.lists(_serials_written, min_size=1), st.booleans())
def test_the_short_cut_for_serials_gives_what_serials_are(
    type_: ColumnType, serials: list[str], date_1904: bool
) -> None:
    """A column of common days comes out as each of its cells does by the exact conversion of the reader."""
    declared = FormColumn(name="c", title="c", type=type_)

    typed = ColumnTyper(declared, Locale(), date_1904=date_1904).typed(column([(Kind.DATETIME, s) for s in serials]))

    exact = pl.select(serial.moments(pl.lit(pl.Series(serials)), date_1904=date_1904)).to_series().to_list()
    days = [None if m is None or m.time() != dt.time() else m.date() for m in exact]
    assert typed.values.to_list() == (exact if type_ == "datetime" else days)
