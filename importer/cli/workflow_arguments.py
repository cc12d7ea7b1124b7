"""The words of `rowlease workflow` and `rowlease approvals`: actions, options and what their help says."""

from __future__ import annotations

import argparse

_Commands = argparse._SubParsersAction  # noqa: SLF001 - the only name argparse has for it


def add(commands: _Commands[argparse.ArgumentParser]) -> None:
    """Add both commands."""
    _workflow(commands)
    _approvals(commands)


def _workflow(commands: _Commands[argparse.ArgumentParser]) -> None:
    workflow = _command(commands, "workflow", "check, store, start, list, show, cancel and retry workflows")
    actions = workflow.add_subparsers(title="actions", dest="action", metavar="ACTION")
    workflow.set_defaults(action="list", json=False, workflow=None, status=None, limit=20)

    listed = _command(actions, "list", "list instances, the newest first, with what they wait for (the default)")
    listed.add_argument("--workflow", metavar="NAME", help="only instances of this workflow")
    statuses = ("running", "completed", "failed", "cancelled")
    listed.add_argument("--status", choices=statuses, metavar="STATUS", help=f"one of {', '.join(statuses)}")
    listed.add_argument("--limit", type=_positive, default=20, metavar="N", help="at most so many (20)")
    _json(listed)

    check = _command(actions, "check", "say everything that is wrong with a workflow, without a database")
    check.add_argument("file", metavar="FILE", help="YAML or JSON file")
    check.add_argument("--diagram", action="store_true", help="print it as a mermaid diagram")

    store = _command(actions, "store", "store a workflow, so that it can be started by its name")
    store.add_argument("file", metavar="FILE", help="YAML or JSON file")
    _json(store)

    _json(_command(actions, "stored", "list the stored workflows with their versions"))
    for name, summary in (("enable", "let a workflow start instances again"), ("disable", "let it start no more")):
        switch = _command(actions, name, summary)
        switch.add_argument("name", metavar="NAME", help="name of the workflow")
        switch.add_argument("--version", type=_positive, metavar="N", help="this version only (all)")
        _json(switch)

    start = _command(actions, "start", "start an instance and move it until it waits")
    start.add_argument("workflow", metavar="WORKFLOW", help="a YAML or JSON file, or the name of a stored workflow")
    start.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable: JSON, else a text; repeatable"
    )
    start.add_argument(
        "--file", action="append", default=[], metavar="NAME=PATH", help="a workbook for an import; repeatable"
    )
    start.add_argument("--key", metavar="TEXT", help="a name of your own; the same one is one instance")
    _json(start)

    for name, summary in (
        ("show", "show an instance with its history"),
        ("why", "say what an instance waits for, until when, and who may act"),
        ("retry", "set a failed instance running from where it failed"),
    ):
        action = _command(actions, name, summary)
        _instance(action)
        _json(action)
        if name == "show":
            action.add_argument("--diagram", action="store_true", help="print it as a mermaid diagram, tokens marked")
    cancel = _command(actions, "cancel", "cancel a running instance; work done stays")
    _instance(cancel)
    cancel.add_argument("--by", metavar="NAME", help="who cancels it, for the history")
    _json(cancel)


def _approvals(commands: _Commands[argparse.ArgumentParser]) -> None:
    approvals = _command(commands, "approvals", "list the questions of workflows, and answer them")
    actions = approvals.add_subparsers(title="actions", dest="action", metavar="ACTION")
    approvals.set_defaults(action="list", json=False, who=None, all=False)

    listed = _command(actions, "list", "list open questions, the oldest first (the default)")
    listed.add_argument("--who", metavar="NAME", help="only those that this person may answer")
    listed.add_argument("--all", action="store_true", help="also those that are over")
    _json(listed)

    answer = _command(actions, "answer", "answer a question; its workflow goes on")
    answer.add_argument("approval", type=_positive, metavar="APPROVAL", help="number, see `rowlease approvals`")
    answer.add_argument("choice", metavar="CHOICE", help="one of its choices")
    answer.add_argument("--by", required=True, metavar="NAME", help="who answers")
    answer.add_argument("--note", metavar="TEXT", help="why")
    _json(answer)


def _command(commands: _Commands[argparse.ArgumentParser], name: str, summary: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")


def _instance(command: argparse.ArgumentParser) -> None:
    command.add_argument("instance", type=_positive, metavar="INSTANCE", help="number, see `rowlease workflow list`")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, for a program to read")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
