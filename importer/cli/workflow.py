"""What is done with workflows and their approvals: `rowlease workflow ...`, `rowlease approvals ...`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import importer as im
from importer.cli.output import print_either, print_json, print_table
from importer.display import count
from importer.errors import WorkflowError
from importer.workflow.seen import history_text


def run(arguments: argparse.Namespace) -> int:
    """Do one action on workflows."""
    match arguments.action:
        case "check":
            return _check(arguments)
        case "list" | "stored" | "store" | "enable" | "disable":
            return _lists(arguments)
        case "start":
            return _start(arguments)
        case _:
            return _one(arguments)


def approvals(arguments: argparse.Namespace) -> int:
    """List questions, or answer one."""
    with im.connect() as db:
        if arguments.action == "answer":
            moved = im.answer(arguments.approval, arguments.choice, by=arguments.by, note=arguments.note, db=db)
            _print(moved, f"Approval {arguments.approval} is answered: {arguments.choice}.", as_json=arguments.json)
            return 0
        found = im.approvals(arguments.who, status=None if arguments.all else "open", db=db)
    if arguments.json:
        print_json([_values(each) for each in found])
        return 0
    headers = ("Approval", "Workflow", "Question", "Choices", "Who", "Asked", "Until", "Answer")
    print_table(headers, found.rows(), empty="There are no open questions.")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    workflow = im.Workflow.from_file(arguments.file)
    if arguments.diagram:
        print(workflow.diagram())
        return 0
    nodes = count(len(workflow.nodes), "node")
    print(f"The workflow {workflow.name} can be stored: {nodes}, {count(len(workflow.connections), 'connection')}.")
    return 0


def _lists(arguments: argparse.Namespace) -> int:
    with im.connect() as db:
        if arguments.action == "list":
            found = im.workflows(workflow=arguments.workflow, status=arguments.status, limit=arguments.limit, db=db)
            if arguments.json:
                print_json([_values(each) for each in found])
                return 0
            headers = ("Instance", "Workflow", "Key", "Status", "Started", "Took", "Waits or why")
            print_table(headers, found.rows(), empty="There are no workflow instances.")
            return 0
        if arguments.action == "store":
            stored = [im.store_workflow(im.Workflow.from_file(arguments.file), db=db)]
        elif arguments.action == "stored":
            stored = im.stored_workflows(db=db)
        else:
            enabled = arguments.action == "enable"
            stored = im.enable_workflow(arguments.name, enabled=enabled, version=arguments.version, db=db)
    if arguments.json:
        print_json([_values(each) for each in stored])
        return 0
    rows = [(each.name, each.version, each.enabled, each.running, each.created_at) for each in stored]
    print_table(("Workflow", "Version", "Enabled", "Running", "Stored"), rows, empty="There are no stored workflows.")
    return 0


def _start(arguments: argparse.Namespace) -> int:
    of_file = Path(arguments.workflow).suffix.lower() in {".yaml", ".yml", ".json"}
    workflow = im.Workflow.from_file(arguments.workflow) if of_file else arguments.workflow
    variables = {name: _value(said) for name, said in _pairs(arguments.set)}
    with im.connect() as db:
        started = im.start(workflow, variables, key=arguments.key, files=dict(_pairs(arguments.file)), db=db)
    _print(started, f"Workflow instance {started.id} is {started.status}.", as_json=arguments.json)
    return 0


def _one(arguments: argparse.Namespace) -> int:
    with im.connect() as db:
        match arguments.action:
            case "why":
                why = im.why(arguments.instance, db=db)
                said = {"waits": [_values(wait) for wait in why.waits], "workers": why.workers}
                print_either({"status": why.instance.status, **said}, str(why), as_json=arguments.json)
                return 0
            case "cancel":
                found = im.cancel_workflow(arguments.instance, by=arguments.by, db=db)
                _print(found, f"Workflow instance {found.id} is cancelled; work done stays.", as_json=arguments.json)
                return 0
            case "retry":
                found = im.retry_workflow(arguments.instance, db=db)
                _print(found, f"Workflow instance {found.id} runs again.", as_json=arguments.json)
                return 0
            case _:
                found = im.workflow(arguments.instance, db=db)
    if arguments.json:
        print_json({**_values(found), "history": [_values(step) for step in found.history]})
    elif arguments.diagram:
        print(found.diagram())
    else:
        error = f": {found.last_error}" if found.last_error else ""
        print(f"Workflow instance {found.id} ({found.workflow} v{found.version}) is {found.status}{error}")
        for wait in found.waits:
            print(f"  {wait}")
        print()
        print(history_text(found))
    return 0


def _print(found: im.Instance, line: str, *, as_json: bool) -> None:
    print_either(_values(found), "\n".join([line, *(f"  {wait}" for wait in found.waits)]), as_json=as_json)


def _values(of: Any) -> dict[str, object]:  # noqa: ANN401 - one of the frozen values of workflows
    left_out = {"definition", "marked", "history"}
    values = {each.name: getattr(of, each.name) for each in fields(of) if each.name not in left_out}
    if "waits" in values:
        values["waits"] = [_values(wait) for wait in of.waits]
    return values


def _pairs(said: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for each in said:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WorkflowError(f"{each!r}: a name, = and a value are wanted")
        pairs.append((name, value))
    return pairs


def _value(said: str) -> object:
    try:
        return json.loads(said)
    except ValueError:
        return said
