"""A workflow as data: what is taken, what is refused, and that everything wrong is said at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pydantic
import pytest

import importer as im
from importer.errors import WorkflowDefinitionError
from importer.workflow import node_types
from tests.workflows import flow, node

BUDGET: dict[str, Any] = {
    "name": "budget",
    "description": "A budget is approved, loaded and remembered",
    "start": "ask",
    "nodes": [
        {
            "id": "ask",
            "type": "approval",
            "name": "Ask the controller",
            "config": {"who": ["controller"], "question": "Load {{file.file_name}}?", "limit": {"days": 2}},
        },
        {"id": "load", "type": "import", "config": {"file": "{{file}}", "form": "budget"}},
        {"id": "many", "type": "condition", "config": {"expression": "{{result.failed_rows}} > 10"}},
        {"id": "wait", "type": "timer", "config": {"minutes": 10}},
        {"id": "tell", "type": "log", "config": {"message": "{{result.success_rows}} rows are in"}},
        {"id": "end", "type": "end"},
    ],
    "connections": [
        {"source": "ask", "target": "load", "when": "approve"},
        {"source": "ask", "target": "end", "when": "reject"},
        {"source": "ask", "target": "ask", "when": "timed_out"},
        {"source": "load", "target": "many", "when": "partial_success"},
        {"source": "load", "target": "tell", "when": "{{result.failed_rows}} == 0"},
        {"source": "load", "target": "end"},
        {"source": "many", "target": "end", "when": True},
        {"source": "many", "target": "wait", "when": False},
        {"source": "wait", "target": "tell"},
        {"source": "tell", "target": "end"},
    ],
}


def problems(definition: object) -> str:
    """Return all problems of a definition, one per line."""
    with pytest.raises(WorkflowDefinitionError) as caught:
        im.Workflow.from_dict(definition)  # type: ignore[arg-type]  # that is what is tested
    return "\n".join(caught.value.problems)


def changed(**changes: object) -> dict[str, Any]:
    """Return the budget with other parts."""
    return {**json.loads(json.dumps(BUDGET)), **changes}


def test_it_is_the_same_as_data_and_back() -> None:
    """`from_dict(to_dict())` is the same workflow with the same digest; the order of keys does not matter."""
    workflow = im.Workflow.from_dict(BUDGET)

    again = im.Workflow.from_dict(dict(reversed(workflow.to_dict().items())))

    assert again == workflow
    assert again.digest == workflow.digest
    assert im.Workflow.from_dict(changed(description="Another")).digest != workflow.digest


@pytest.mark.parametrize("name", ["budget.yaml", "budget.json"])
def test_from_a_file(tmp_path: Path, name: str) -> None:
    """YAML and JSON say the same; JSON is YAML."""
    (tmp_path / name).write_text(json.dumps(BUDGET), encoding="utf-8")

    assert im.Workflow.from_file(tmp_path / name) == im.Workflow.from_dict(BUDGET)


@pytest.mark.parametrize(
    ("text", "said"), [("{", "neither YAML nor JSON"), ("- 1", "is a mapping"), (None, "cannot be read")]
)
def test_a_file_that_holds_no_workflow(tmp_path: Path, text: str | None, said: str) -> None:
    """In words."""
    path = tmp_path / "a.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(WorkflowDefinitionError, match=said):
        im.Workflow.from_file(path)


@pytest.mark.parametrize(("name", "text"), [("a.yaml", "name: x\nname: y\n"), ("a.json", '{"name": "x", "name": "y"}')])
def test_a_key_written_twice(tmp_path: Path, name: str, text: str) -> None:
    """Is said, and the last one does not win in silence."""
    (tmp_path / name).write_text(text, encoding="utf-8")

    with pytest.raises(WorkflowDefinitionError, match="the key 'name' is written twice"):
        im.Workflow.from_file(tmp_path / name)


def test_all_problems_at_once() -> None:
    """Ten mistakes are ten sentences, with the nearest names."""
    said = problems(
        {
            "name": "",
            "strat": "a",
            "start": "b",
            "nodes": [
                {"id": "a", "type": "timr"},
                {"id": "a", "type": "end"},
                {"id": "1", "type": "end"},
                {"id": "c", "type": "timer", "config": {"hour": 1}},
                {"id": "d", "type": "approval", "config": {"question": "{{1}}?", "choices": ["a", "a"]}},
                {"id": "e", "type": "end", "cofig": {}},
            ],
            "connections": [
                {"source": "c", "target": "f"},
                {"source": "c", "target": "e", "when": "dne"},
                {"source": "e", "target": "c"},
            ],
        }
    )

    for expected in (
        "name: a text of up to 200 characters is wanted",
        "the workflow: there is no key 'strat' (is start meant?)",
        "start: there is no node 'b'",
        "node a: there is no type 'timr' (is timer meant?)",
        "node a: there are two nodes of this id",
        "node 3: id: a word of letters, digits, _ and - is wanted, not '1'",
        "node c: config: hour: Extra inputs are not permitted",
        "node d: config: question: '{{1}}?': braces hold the name of a variable",
        "node d: config: choices: a choice is named twice",
        "node e: there is no key 'cofig' (is config meant?)",
        "connection c -> f: target: there is no node 'f'",
        "node e: an end has no connections",
        "node d: it leads nowhere",
    ):
        assert expected in said


@pytest.mark.parametrize(
    ("nodes", "ways", "said"),
    [
        ([node("a", "end"), node("b", "end")], [], "node b: it cannot be reached from the start"),
        (
            [node("a", "log", message="x"), node("e", "end")],
            [("a", "e"), ("a", "a")],
            "node a: 2 connections without when; only a fork goes several ways at once",
        ),
        (
            [node("a", "log", message="x"), node("b", "log", message="x"), node("e", "end")],
            [("a", "b"), ("b", "a", "{{n}} > 1"), ("b", "e")],
            "the cycle a -> b -> a never waits: a timer, approval, import or task is wanted",
        ),
        (
            [node("a", "log", message="x"), node("e", "end")],
            [("a", "e", "{{n}} > 1")],
            "node a: no connection is taken when no condition holds; add one without when",
        ),
        (
            [node("a", "approval", question="?"), node("e", "end")],
            [("a", "e", "approve")],
            "node a: no connection for the outcome reject, and none without when",
        ),
        (
            [node("a", "approval", question="?", limit={"hours": 1}), node("e", "end")],
            [("a", "e", "approve"), ("a", "e", "reject")],
            "node a: no connection for the outcome timed_out, and none without when",
        ),
        (
            [node("a", "approval", question="?"), node("e", "end")],
            [("a", "e", "aprove"), ("a", "e")],
            "'aprove' is no outcome of a, which ends as: approve, reject (is approve meant?)",
        ),
        (
            [node("a", "condition", expression="n > 1"), node("e", "end")],
            [("a", "e", "true"), ("a", "e", "true"), ("a", "e")],
            "node a: two connections for the outcome true",
        ),
        (
            [node("a", "log", message="x"), node("j", "join", fork="f"), node("e", "end")],
            [("a", "j"), ("j", "e")],
            "node j: there is no fork 'f' to join",
        ),
        (
            [node("a", "log", message="x"), node("j", "join", fork="a"), node("e", "end")],
            [("a", "j"), ("j", "e")],
            "node j: it is to join a, which is no fork but a log",
        ),
        ([node("a", "fork"), node("j", "join"), node("e", "end")], [("a", "j"), ("j", "e")], "node j: config: fork"),
        (
            [
                node("c", "condition", expression="n > 1"),
                node("f", "fork"),
                node("j", "join", fork="f"),
                node("e", "end"),
            ],
            [("c", "f", "true"), ("c", "j", "false"), ("f", "j"), ("j", "e")],
            "node j: this join can be reached without passing its fork f",
        ),
        (
            [node("f", "fork"), node("t", "timer", hours=1), node("e", "end")],
            [("f", "t"), ("t", "f", "{{n}} > 1"), ("t", "e")],
            "node f: this fork can be entered again before it was joined",
        ),
        (
            [node("f", "fork"), node("j", "join", fork="f"), node("k", "join", fork="f"), node("e", "end")],
            [("f", "j"), ("f", "k"), ("j", "e"), ("k", "e")],
            "node f: it is joined twice",
        ),
        (
            [node("f", "fork"), node("e", "end")],
            [("f", "e", "{{n}} > 1")],
            "node f: one connection of a fork is to be without when",
        ),
        (
            [node("a", "condition", expression="n ** 2 > 1"), node("e", "end")],
            [("a", "e")],
            "node a: config: expression: 'n ** 2 > 1': the language has no pow",
        ),
        (
            [node("a", "timer"), node("e", "end")],
            [("a", "e")],
            "say either minutes, hours, days (more than 0), or until",
        ),
        ([node("a", "timer", days=40_000), node("e", "end")], [("a", "e")], "a delay is at most a hundred years"),
        ([node("a", "import", file="x"), node("e", "end")], [("a", "e")], "say either file and form, or job"),
        (
            [node("a", "approval", question="?", choices=[True]), node("e", "end")],
            [("a", "e")],
            "node a: config: choices.0: Input should be a valid string",
        ),
    ],
)
def test_a_graph_that_would_not_run(nodes: list[dict[str, Any]], ways: list[tuple[str, ...]], said: str) -> None:
    """Dead ends, missing ways, unreachable nodes, joins without their fork, cycles that never wait."""
    with pytest.raises(WorkflowDefinitionError) as caught:
        flow(*nodes, ways=ways)

    assert said in "\n".join(caught.value.problems)


@pytest.mark.parametrize("written", [None, [], {"name": "x"}, {"name": "x", "nodes": {}, "connections": 5}, {1: 2}])
def test_what_is_no_workflow_at_all(written: object) -> None:
    """No other error than the one that lists problems."""
    assert problems(written)


def test_too_large() -> None:
    """Bounded: nodes and text."""
    many = [node(f"n{n}", "end") for n in range(501)]

    assert "there are 501, and at most 500 are taken" in problems(changed(nodes=many, connections=[]))
    assert "longer than 1,000,000 characters" in problems(changed(description="x" * 1_000_001))


class Letter(pydantic.BaseModel):
    """Config of a user's type."""

    to: str


def test_a_type_of_the_users_own() -> None:
    """Registered with a function and a config model, it is checked like a built-in one."""

    @im.node_type("letter", config=Letter, outcomes=("sent", "returned"))
    def letter(_config: Letter, _context: im.NodeContext) -> str:
        return "sent"

    try:
        ways = [("a", "e", "sent"), ("a", "e", "returned")]
        workflow = flow(node("a", "letter", to="Ada"), node("e", "end"), ways=ways)
        with pytest.raises(WorkflowDefinitionError, match="node a: config: to: Field required"):
            flow(node("a", "letter"), node("e", "end"), ways=ways)
        with pytest.raises(WorkflowDefinitionError, match="no connection for the outcome returned"):
            flow(node("a", "letter", to="Ada"), node("e", "end"), ways=ways[:1])
    finally:
        node_types.forget("letter")

    with pytest.raises(WorkflowDefinitionError, match="there is no type 'letter'"):
        im.Workflow.from_dict(workflow.to_dict())
    assert im.Workflow.stored(workflow.to_dict()).to_dict() == workflow.to_dict()


def test_the_name_of_a_built_in_type_is_taken() -> None:
    """Nobody changes what `end` means."""
    with pytest.raises(ValueError, match="'end' is built in"):
        im.node_type("end", config=Letter)


def test_the_diagram_shows_any_text_as_text() -> None:
    """Names and conditions cannot break out of the diagram."""
    definition = changed()
    definition["nodes"][0]["name"] = 'Ask "now"; <b>or</b> ``` end'
    workflow = im.Workflow.from_dict(definition)

    drawn = workflow._repr_markdown_()

    assert drawn.splitlines()[:3] == ["```mermaid", "flowchart TD", "  start(( )) --> n0"]
    assert drawn.count("```") == 2
    assert "<b>" not in drawn
    assert '  n0 -->|"approve"| n1' in drawn
    assert '  n5((("end")))' in drawn
