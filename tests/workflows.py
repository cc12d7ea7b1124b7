"""Workflows for tests, in few words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import importer as im
from importer.db import Database

MoveClock = Callable[..., None]


def flow(*nodes: dict[str, Any], ways: Sequence[tuple[str, ...]], name: str = "test") -> im.Workflow:
    """Make a workflow of nodes and (source, target[, when]); the first node is the start."""
    return im.Workflow.from_dict(
        {
            "name": name,
            "start": nodes[0]["id"],
            "nodes": list(nodes),
            "connections": [dict(zip(("source", "target", "when"), way, strict=False)) for way in ways],
        }
    )


def node(id_: str, type_: str, **config: object) -> dict[str, Any]:
    """Make a node."""
    return {"id": id_, "type": type_, "config": config}


def one_timer(**delay: float) -> im.Workflow:
    """Make a workflow that waits once; an hour unless said otherwise."""
    return flow(node("wait", "timer", **(delay or {"hours": 1})), node("end", "end"), ways=[("wait", "end")])


def passed(instance: im.Instance) -> list[str]:
    """Return the nodes whose tokens were consumed, in order."""
    return [str(step.node) for step in instance.history if step.what == "passed"]


@contextmanager
def later(db: Database, move_clock: MoveClock, **ahead: float) -> Iterator[Database]:
    """Open the database with its clock so far ahead."""
    move_clock(timedelta(**ahead))
    with Database(db.conninfo, db.settings) as then:
        yield then
