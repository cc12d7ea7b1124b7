"""What is done with durable tasks: `rowlease tasks list show enqueue signal cancel retry`."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import importer as im
from importer.cli.output import print_either, print_json, print_pairs, print_table
from importer.display import text
from importer.errors import TaskInputError
from importer.task_run import TaskRun


def run(arguments: argparse.Namespace) -> int:
    """Do one action on durable tasks."""
    match arguments.action:
        case "list":
            return _list(arguments)
        case "show":
            return _show(arguments)
        case "enqueue":
            return _enqueue(arguments)
        case "signal":
            with im.connect() as db:
                fact = im.signal(arguments.run, arguments.fact, _json(arguments.payload), db=db)
            line = f"The fact {fact.name} of task run {arguments.run} stands since {text(fact.came_at)}."
            print_either(dataclasses.asdict(fact), line, as_json=arguments.json)
        case "cancel":
            with im.connect() as db:
                found = im.cancel_task(arguments.run, db=db)
            print_either(_values(found), f"Task run {found.id} is cancelled.", as_json=arguments.json)
        case _:
            with im.connect() as db:
                found = im.retry_task(arguments.run, db=db)
            print_either(_values(found), f"Task run {found.id} waits for a worker.", as_json=arguments.json)
    return 0


def import_tasks(modules: Iterable[str]) -> None:
    """Import the modules that define tasks, also from the working directory.

    Raises:
        TaskInputError: a module cannot be imported.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise TaskInputError(f"the module {module} with tasks cannot be imported: {error}") from error


def _list(arguments: argparse.Namespace) -> int:
    with im.connect() as db:
        found = im.tasks(task=arguments.task, status=arguments.status, limit=arguments.limit, db=db)
    if arguments.json:
        print_json([_values(each) for each in found])
        return 0
    headers = ("Run", "Task", "State", "Key", "Priority", "Attempts", "Due", "Created", "Time", "Why")
    rows = [
        (
            each.id, f"{each.task} v{each.version}", _state(each), each.key, each.priority,
            f"{each.attempt_count} of {each.max_attempts}", each.due_at, each.created_at, each.duration,
            each.unserved or each.last_error,
        )
        for each in found
    ]  # fmt: skip
    print_table(headers, rows, empty="There are no task runs.")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    with im.connect() as db:
        found = im.task_run(arguments.run, db=db)
    if arguments.json:
        print_json(_values(found))
        return 0
    print(f"Task run {found.id}: {_state(found)}")
    pairs = [
        ("task", f"{found.task}, version {found.version}"),
        ("key", found.key or ""),
        ("input", json.dumps(found.input, ensure_ascii=False)),
        ("result", "" if found.result is None else json.dumps(found.result, ensure_ascii=False)),
        ("trace", found.trace_id),
        ("due", "" if found.due_at is None else text(found.due_at)),
        ("why", found.unserved or found.last_error or ""),
    ]
    print_pairs([(name, shown) for name, shown in pairs if shown])
    if found.attempts:
        print()
        rows = [(each.fence, each.how.replace("_", " "), each.ended_at, each.error) for each in found.attempts]
        print_table(("Attempt", "How", "Ended", "Error"), rows, empty="")
    if found.facts:
        print()
        facts = [(each.name, each.came_at, json.dumps(each.payload, ensure_ascii=False)) for each in found.facts]
        print_table(("Fact", "Came", "Payload"), facts, empty="")
    if found.operations:
        print()
        done = [(each["key"], each["attempts"], each["began_at"], each["ended_at"]) for each in found.operations]
        print_table(("Operation", "Attempts", "Began", "Ended"), done, empty="")
    return 0


def _enqueue(arguments: argparse.Namespace) -> int:
    import_tasks(arguments.tasks)
    with im.connect() as db:
        number = im.enqueue(
            arguments.task, _json(arguments.input), key=arguments.key, priority=arguments.priority, db=db
        )
        found = im.task_run(number, db=db)
    print_either(
        _values(found), f"Task run {found.id} of {found.task} version {found.version}.", as_json=arguments.json
    )
    return 0


def _json(given: str | None) -> object:
    if given is None:
        return None
    try:
        return json.loads(given)
    except ValueError as error:
        raise TaskInputError(f"{given!r} is not JSON: {error}") from error


def _state(found: TaskRun) -> str:
    return found.state if found.waits_for is None else f"{found.state} for {found.waits_for}"


def _values(found: TaskRun) -> dict[str, object]:
    return {**dataclasses.asdict(found), "duration": found.duration}
