"""What is done with triggers and alerts: `rowlease triggers ...`, `rowlease fire`, `rowlease alerts`."""

from __future__ import annotations

import argparse
import dataclasses
import json

import importer as im
from importer.cli.output import print_either, print_json, print_pairs, print_table
from importer.display import count, text
from importer.errors import TriggerError
from importer.triggers import Trigger


def run(arguments: argparse.Namespace) -> int:
    """Do one action on triggers."""
    with im.connect() as db:
        match arguments.action:
            case "list":
                _list(im.triggers(db=db), as_json=arguments.json)
            case "show":
                _show(im.trigger(arguments.trigger, db=db), im.firings(arguments.trigger, db=db), arguments)
            case "put":
                found = [im.put_trigger(each, db=db) for each in im.read_triggers(arguments.file)]
                line = f"{count(len(found), 'trigger')}: {', '.join(each.name for each in found)}"
                print_either([dataclasses.asdict(each) for each in found], line, as_json=arguments.json)
            case "remove":
                im.remove_trigger(arguments.trigger, db=db)
                print_either({"removed": arguments.trigger}, f"{arguments.trigger} is removed.", as_json=arguments.json)
            case "enable":
                _say(im.enable_trigger(arguments.trigger, db=db), arguments)
            case _:
                _say(im.disable_trigger(arguments.trigger, db=db), arguments)
    return 0


def fire(arguments: argparse.Namespace) -> int:
    """Say that something happened."""
    try:
        payload = None if arguments.payload is None else json.loads(arguments.payload)
    except ValueError as error:
        raise TriggerError("", f"{arguments.payload!r} is not JSON: {error}") from error
    with im.connect() as db:
        number = im.fire(arguments.event, payload, key=arguments.key, db=db)
    print_either({"message": number}, f"{arguments.event} is said; a worker delivers it.", as_json=arguments.json)
    return 0


def alerts(arguments: argparse.Namespace) -> int:
    """List what is wrong now; 1 when anything is."""
    with im.connect() as db:
        found = im.alerts(db=db)
    if arguments.json:
        print_json([{**dataclasses.asdict(each), "key": each.key} for each in found])
    else:
        rows = [(each.kind.replace("_", " "), each.subject, each.since, each.message) for each in found]
        print_table(("Alert", "Of", "Since", "Why"), rows, empty="Nothing is wrong.")
    return 1 if found else 0


def _list(found: list[Trigger], *, as_json: bool) -> None:
    if as_json:
        print_json([dataclasses.asdict(each) for each in found])
        return
    headers = ("Trigger", "Type", "Status", "Next look", "Last fired", "Fired", "Last error")
    rows = [
        (each.name, each.type, each.status, each.due_at, each.last_fired_at, each.fire_count, each.last_error)
        for each in found
    ]
    print_table(headers, rows, empty="There are no triggers.")


def _show(found: Trigger, firings: list[im.Firing], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json({**dataclasses.asdict(found), "firings": [dataclasses.asdict(each) for each in firings]})
        return
    print(f"Trigger {found.name}: {found.status}")
    pairs = [
        ("type", found.type),
        ("config", json.dumps(found.config, ensure_ascii=False)),
        ("condition", found.condition or ""),
        ("target", "" if found.target is None else json.dumps(found.target, ensure_ascii=False)),
        ("next", "" if found.due_at is None else text(found.due_at)),
        ("checked", "" if found.last_checked_at is None else text(found.last_checked_at)),
        ("error", found.last_error or ""),
    ]
    print_pairs([(name, shown) for name, shown in pairs if shown])
    if firings:
        print()
        rows = [(each.slot, each.fired_at, (each.started or "").replace("_", " "), each.started_id) for each in firings]
        print_table(("Slot", "Fired", "Started", "Number"), rows, empty="")


def _say(found: Trigger, arguments: argparse.Namespace) -> None:
    print_either(dataclasses.asdict(found), f"Trigger {found.name} is {found.status}.", as_json=arguments.json)
