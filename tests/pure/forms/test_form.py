"""A form as a value: read from data with all its problems said, written in one canonical shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from importer.errors import FormError
from importer.forms import COLUMN_TYPES, Form
from importer.forms.moment_text import LONGEST

SITE_REPORT: dict[str, Any] = {
    "name": "site_report",
    "table": "site_reports",
    "columns": [{"name": "site_code", "title": "Site code", "type": "text", "required": True}],
}


def _problems(changes: Mapping[str, object]) -> list[str]:
    with pytest.raises(FormError) as refused:
        Form.from_dict({**SITE_REPORT, **changes})
    return list(refused.value.problems)


def _column_problems(column: Mapping[str, object]) -> list[str]:
    return _problems({"columns": [{"name": "c", "type": "text", **column}]})


_words = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=12)
_limits: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "text": st.fixed_dictionaries(
        {},
        optional={
            "choices": st.lists(_words, min_size=1, unique=True),
            "max_length": st.integers(1, 500),
            "pattern": st.sampled_from(["^[A-Z]{3}$", "x|y"]),
        },
    ),
    "integer": st.fixed_dictionaries({}, optional={"min": st.integers(-100, 0), "max": st.integers(1, 2**63 - 1)}),
    "decimal": st.fixed_dictionaries(
        {"min": st.decimals(-5, 0, places=3), "precision": st.integers(9, 38), "scale": st.integers(3, 9)}
    ),
    "float": st.fixed_dictionaries({"choices": st.lists(st.floats(-1e9, 1e9), min_size=1)}),
    "boolean": st.just({}),
    "date": st.fixed_dictionaries({}, optional={"min": st.dates(), "formats": st.just(["%d/%m/%Y"])}),
    "datetime": st.fixed_dictionaries({}, optional={"max": st.datetimes()}),
    "time": st.fixed_dictionaries({}, optional={"min": st.times()}),
    "duration": st.fixed_dictionaries({}, optional={"max": st.timedeltas(-LONGEST, LONGEST)}),
}


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """Definitions of valid forms."""
    names = draw(st.lists(_words, min_size=1, max_size=4))
    columns = []
    for at, name in enumerate(names):
        kind = draw(st.sampled_from(COLUMN_TYPES))
        flags = draw(st.fixed_dictionaries({}, optional={"required": st.booleans(), "unique": st.booleans()}))
        columns.append({"name": f"{name}{at}_", "type": kind, **flags, **draw(_limits[kind])})
    options = st.fixed_dictionaries(
        {},
        optional={
            "sheet": st.one_of(_words, st.integers(0, 5)),
            "header_row": st.integers(1, 50),
            "header_rows": st.sampled_from([1, 2]),
            "on_clash": st.sampled_from(["fault", "skip"]),
            "on_fault": st.sampled_from(["keep", "refuse_all"]),
            "locale": st.just({"decimal": ",", "thousands": ".", "true": ["ja"], "false": ["nein"]}),
            "fresh_within": st.just("26h"),
        },
    )
    return {"name": "f", "table": "s.t", "columns": columns, **draw(options)}


@given(definitions())
def test_a_form_is_read_back_from_its_canonical_data(definition: dict[str, Any]) -> None:
    """The canonical data are JSON, and give the same form and digest again."""
    form = Form.from_dict(definition)

    again = Form.from_dict(json.loads(json.dumps(form.to_dict())))

    assert again == form
    assert again.digest == form.digest
    assert again.to_dict() == form.to_dict()


def test_ways_of_writing_the_same_form_have_one_digest() -> None:
    """Order of keys, defaults written out, text or list, number or text: none of them makes another form."""
    column = {"scale": 2, "precision": 8, "type": "decimal", "name": "cost", "max": "10.50", "aliases": "Costs"}
    spelled = {**column, "title": "cost", "required": False, "unique": False, "aliases": ["Costs"], "max": 10.5}
    plain = {"name": "f", "table": "t", "columns": [column]}
    words = {"on_clash": "fault", "on_fault": "keep", "merged": "first", "unknown_columns": "ignore"}
    detailed = {"columns": [spelled], "header_rows": 1, "owners": [], "locale": {"decimal": "."}, **words}

    assert Form.from_dict(plain).digest == Form.from_dict({**plain, **detailed}).digest


def test_another_rule_is_another_digest() -> None:
    """What changes which rows are good changes the digest."""
    forms = [
        Form.from_dict({**SITE_REPORT, **changes})
        for changes in ({}, {"sheet": "Report"}, {"header_row": 4}, {"key": ["site_code"]}, {"on_clash": "skip"})
    ]

    assert len({form.digest for form in forms}) == len(forms)


def test_all_problems_are_said_at_once() -> None:
    """A form with many mistakes names each of them, and the nearest word for a typo."""
    with pytest.raises(FormError) as refused:
        Form.from_dict(
            {
                "name": "f",
                "tabel": "t",
                "columns": [{"name": "crew", "type": "interger"}, {"name": "day", "type": "date", "pattren": "x"}],
                "key": ["dai"],
                "on_clash": "skipp",
            }
        )

    said = "\n".join(refused.value.problems)
    assert 'unknown key "tabel"; did you mean "table"?' in said
    assert '"interger" is no type' in said
    assert 'did you mean "integer"?' in said
    assert 'unknown key "pattren"; did you mean "pattern"?' in said
    assert 'there is no column "dai"; did you mean "day"?' in said
    assert "on_clash must be one of" in said
    assert "table is missing" in said
    assert all(problem in str(refused.value) for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("word", "type_"),
    [("string", "text"), ("int", "integer"), ("money", "decimal"), ("bool", "boolean"), ("timestamp", "datetime")],
)
def test_a_word_of_another_tool_is_answered_with_ours(word: str, type_: str) -> None:
    """It is refused all the same: a form has one word for one type."""
    assert f'did you mean "{type_}"?' in _column_problems({"type": word})[0]


@pytest.mark.parametrize("line", [50, "5%", "0.5%"])
def test_a_form_keeps_the_line_at_which_it_stops(line: object) -> None:
    """A line in rows or as a part of all rows comes back from plain data as it went in."""
    form = Form.from_dict({**SITE_REPORT, "on_fault": {"stop_at": line}})

    assert (form.on_fault, form.stop_at) == ("stop_at", line)
    assert Form.from_dict(form.to_dict()) == form
    assert form.to_dict()["on_fault"] == {"stop_at": line}


@pytest.mark.parametrize("line", [0, -1, True, "0%", "101%", "5", None])
def test_a_line_that_says_nothing_is_refused(line: object) -> None:
    """A line is a number of rows above 0, or a part of them."""
    assert [p for p in _problems({"on_fault": {"stop_at": line}}) if "stop_at must be" in p]


def test_an_update_needs_a_key() -> None:
    """Without a key nothing says which row is meant."""
    assert [p for p in _problems({"on_clash": "update", "key": []}) if "update needs a key" in p]


def test_a_form_keeps_its_lookups() -> None:
    """A lookup comes back from plain data as it went in; its cells are read as text."""
    lookup = {"table": "firms", "match": "name", "take": "id"}
    form = Form.from_dict(
        {**SITE_REPORT, "columns": [{"name": "firm", "type": "integer", "lookup": lookup}], "key": []}
    )

    assert form.to_dict()["columns"] == [{"name": "firm", "type": "integer", "lookup": lookup}]
    assert form.columns[0].as_read.type == "text"
    assert Form.from_dict(form.to_dict()) == form


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"lookup": "firms"}, "lookup must be a mapping"),
        ({"lookup": {"table": "firms"}}, "match is missing"),
        ({"lookup": {"table": "a.b.c", "match": "n", "take": "id"}}, "schema.table"),
        ({"lookup": {"table": "f", "match": "n", "take": "id", "creates": True}}, 'unknown key "creates"'),
        ({"lookup": {"table": "f", "match": "n", "take": "id"}, "choices": ["a"]}, "does not go with lookup"),
    ],
)
def test_a_lookup_that_says_too_little_is_refused(column: Mapping[str, object], said: str) -> None:
    """Table, match and take are needed; what may be chosen is what is in the table."""
    assert [p for p in _column_problems(column) if said in p]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"type": None}, "type is missing"),
        ({"min": 3}, "min does not go with type text"),
        ({"type": "integer", "max_length": 3}, "max_length does not go with type integer"),
        ({"type": "integer", "min": 5, "max": 2}, "min 5 is above max 2"),
        ({"type": "integer", "min": 1.5}, "min must be a whole number"),
        ({"type": "integer", "min": True}, "min must be a whole number"),
        ({"type": "date", "min": "03/04/2024"}, "min must be a date"),
        ({"type": "datetime", "max": "2024-01-01T00:00:00Z"}, "without a time zone"),
        ({"type": "time", "min": 480}, "write it in quotes"),
        ({"type": "decimal", "scale": 2}, "scale needs precision"),
        ({"type": "decimal", "precision": 2, "scale": 3}, "scale 3 is more than precision 2"),
        ({"type": "decimal", "precision": 40, "scale": 3}, "from 1 to 38"),
        ({"type": "decimal", "precision": 4, "scale": 1, "min": "0.05"}, "min 0.05 has more decimal places"),
        ({"choices": []}, "choices must be a list of at least one value"),
        ({"choices": [True, "maybe"]}, "in quotes"),
        ({"pattern": "("}, "pattern '(' cannot be used"),
        ({"pattern": "(?=x)"}, "cannot be used"),
        ({"type": "date", "formats": ["DD/MM/YYYY"]}, "holds no directive"),
        ({"type": "date", "formats": ["%d/%m"]}, "must hold a day, a month and a year"),
        ({"type": "date", "formats": ["%d/%m/%Y %H:%M"]}, "holds a time of day"),
        ({"type": "time", "formats": ["%I:%M"]}, "must hold an hour"),
        ({"type": "datetime", "formats": ["%d/%m/%Y %z"]}, "holds %z"),
        ({"type": "integer", "formats": ["%d"]}, "formats does not go with type integer"),
        ({"required": "yes"}, "required must be true or false"),
        ({"name": ""}, "name must be text"),
        ({"name": "source_row"}, "the name is taken"),
        ({"name": "ctid"}, "the name is taken"),
        ({"name": "share_%"}, "per cent sign"),
        ({"name": "x" * 64}, "longer than the 63 bytes"),
        ({"name": "a\nb"}, "cannot be printed"),
    ],
)  # fmt: skip
def test_a_column_that_makes_no_sense_is_said_to(column: Mapping[str, object], said: str) -> None:
    """Each mistake in a column has its sentence."""
    assert said in "\n".join(_column_problems(column))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"columns": []}, "at least one column"),
        ({"columns": ["a"]}, "column 1 must be a mapping"),
        ({"columns": [{"name": "a", "type": "text"}] * 2}, "column a is declared twice"),
        ({"columns": [{"name": "a", "type": "text"}, {"name": "b", "title": "A ", "type": "text"}]}, 'the title "a"'),
        ({"columns": [{"name": "a", "type": "text", "required": False}], "key": ["a"]}, "always required"),
        ({"key": ["site_code", "site_code"]}, "named twice"),
        ({"table": "a.b.c"}, '"table" or "schema.table"'),
        ({"table": "rowlease.import_jobs"}, "not for the tables of forms"),
        ({"sheet": -1}, "its position from 0"),
        ({"header_row": 0}, "header_row must be a whole number"),
        ({"header_rows": 3}, "from 1 to 2"),
        ({"table_range": "T", "header_row": 2}, "header_row does not go with table_range"),
        ({"fresh_within": "a day"}, '"26h"'),
        ({"on_fault": {"stop": 3}}, "on_fault must be"),
        ({"locale": {"decimal": "x"}}, "decimal must be one of"),
        ({"locale": {"decimal": ",", "thousands": ","}}, "the same mark"),
        ({"locale": {"true": ["ja"]}}, "both true and false"),
        ({"locale": {"true": ["x"], "false": ["X"]}}, "true and false at once"),
        ({"locale": {"formats": ["%H"]}}, "format '%H'"),
        ({"locale": {"decimals": ","}}, 'did you mean "decimal"?'),
        ({"locale": "de"}, "locale must be a mapping"),
    ],
)  # fmt: skip
def test_a_form_that_makes_no_sense_is_said_to(changes: Mapping[str, object], said: str) -> None:
    """Each mistake in a form has its sentence."""
    assert said in "\n".join(_problems(changes))


def test_key_columns_are_required_without_saying_so() -> None:
    """A key cannot be blank."""
    form = Form.from_dict({**SITE_REPORT, "columns": [{"name": "a", "type": "text"}], "key": ["a"]})

    assert form.columns[0].required


def test_a_form_from_yaml_is_the_form_from_json(tmp_path: Path) -> None:
    """Bare `true:` and dates of YAML, strings of JSON: the same form."""
    yaml_file, json_file = tmp_path / "f.yaml", tmp_path / "f.json"
    yaml_file.write_text(
        'name: f\ntable: t\nlocale: {decimal: ",", true: [ja], false: [nein]}\n'
        "columns:\n  - {name: day, type: date, min: 2024-02-29}\n",
        encoding="utf-8",
    )
    json_file.write_text(
        json.dumps(
            {
                "name": "f",
                "table": "t",
                "locale": {"decimal": ",", "true": ["ja"], "false": ["nein"]},
                "columns": [{"name": "day", "type": "date", "min": "2024-02-29"}],
            }
        ),
        encoding="utf-8-sig",
    )

    assert Form.from_file(yaml_file) == Form.from_file(json_file)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("f.yaml", "name: f\nname: g\n", 'the key "name" is written twice'),
        ("f.json", '{"name": "f", "name": "g"}', 'the key "name" is written twice'),
        ("f.yaml", "name: [", "no YAML"),
        ("f.json", "{", "no JSON"),
        ("f.yaml", "- a\n", "holds no form"),
        ("f.yaml", b"name: \xff\n", "not encoded as UTF-8"),
        ("g/f.yaml", None, "cannot be read"),
    ],
)
def test_a_file_that_holds_no_form_is_said_to(
    tmp_path: Path, name: str, content: str | bytes | None, said: str
) -> None:
    """The message names what is wrong with the file, and where."""
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(FormError, match=said):
        Form.from_file(tmp_path / name)


def test_the_example_forms_are_valid() -> None:
    """Every form in `forms/` is one, and is written canonically enough to be read back."""
    files = sorted((Path(__file__).parents[3] / "forms").glob("*.yaml"))

    assert files
    for file in files:
        form = Form.from_file(file)
        assert Form.from_dict(yaml.safe_load(yaml.safe_dump(form.to_dict()))) == form
