"""Workflows for tests, in few words."""

from __future__ import annotations

from typing import Any

import importer as im


def flow(*nodes: dict[str, Any], ways: list[tuple[str, ...]], name: str = "test") -> im.Workflow:
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
    return flow(node("wait", "timer", **(delay or {"hours": 1})), node("done", "end"), ways=[("wait", "done")])
