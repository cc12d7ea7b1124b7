"""A workflow as a mermaid diagram: JupyterLab and code hosts draw it from text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from importer.workflow.elements import Connection, Node

_SHAPES = {
    "timer": '(["{}"])',
    "approval": '[/"{}"/]',
    "import": '[("{}")]',
    "condition": '{{"{}"}}',
    "fork": '{{{{"{}"}}}}',
    "join": '{{{{"{}"}}}}',
    "end": '((("{}")))',
}


_BOX = '["{}"]'


def diagram(
    start: str,
    nodes: Sequence[Node],
    connections: Sequence[Connection],
    marked: Mapping[str, Mapping[str, int]] | None = None,
    *,
    failed: str | None = None,
) -> str:
    """Return a fenced block of mermaid; `marked`: node -> token status -> how many.

    Nodes with tokens are dark and count them, nodes that tokens have passed are green, the node that failed is red.
    """
    ids = {node.id: f"n{number}" for number, node in enumerate(nodes)}
    lines = ["```mermaid", "flowchart TD", f"  start(( )) --> {ids[start]}"]
    for node in nodes:
        tokens = (marked or {}).get(node.id, {}).get("active", 0)
        label = _quoted(node.name) + (f"<br/><small>{node.type}</small>" if node.name != node.type else "")
        label += f" ●{tokens if tokens > 1 else ''}" if tokens else ""
        lines.append(f"  {ids[node.id]}{_SHAPES.get(node.type, _BOX).format(label)}")
    for way in connections:
        arrow = "-->" if way.when is None else f'-->|"{_quoted(way.when)}"|'
        lines.append(f"  {ids[way.source]} {arrow} {ids[way.target]}")
    if marked is not None:
        lines += _classes(ids, marked, failed)
    return "\n".join([*lines, "```"])


def _classes(ids: Mapping[str, str], marked: Mapping[str, Mapping[str, int]], failed: str | None) -> list[str]:
    lines = [
        "  classDef waits fill:#1f4e79,color:#ffffff,stroke:#1f4e79",
        "  classDef passed fill:#d5ead8,color:#123318,stroke:#5b8c62",
        "  classDef failed fill:#f6d5d5,color:#5c1010,stroke:#b03030",
    ]
    for node, tokens in marked.items():
        if node in ids and node != failed:
            lines.append(f"  class {ids[node]} {'waits' if tokens.get('active') else 'passed'}")
    if failed is not None and failed in ids:
        lines.append(f"  class {ids[failed]} failed")
    return lines


def _quoted(text: str) -> str:
    """A text that mermaid shows as it is, whatever is in it."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    return "".join(letter if letter.isalnum() or letter in " .,:…-_/()+=" else f"#{ord(letter)};" for letter in shown)
