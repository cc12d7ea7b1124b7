"""A workflow as data: read from a dict, YAML or JSON, with all that is wrong with it said at once."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from importer import expressions
from importer.errors import ExpressionError, NodeTypeMissingError, WorkflowDefinitionError
from importer.workflow import node_types
from importer.workflow.diagram import diagram
from importer.workflow.elements import Connection, Node
from importer.workflow.graph import problems_of

#: The most nodes, and the longest definition as canonical JSON.
MOST_NODES = 500
MOST_BYTES = 1_000_000

_ID = re.compile(r"[A-Za-z_][\w-]{0,99}")
_KEYS = ("name", "description", "start", "nodes", "connections")
_NODE_KEYS = ("id", "type", "name", "config")
_CONNECTION_KEYS = ("source", "target", "when")


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """A workflow that was checked: what happens after what."""

    name: str
    description: str
    #: Id of the node on which the first token is put.
    start: str
    nodes: tuple[Node, ...]
    connections: tuple[Connection, ...]

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any]) -> Workflow:
        """Read a workflow from plain data.

        Raises:
            WorkflowDefinitionError: it is no valid workflow; `problems` lists everything that is wrong.
        """
        return _read(definition, strict=True)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Workflow:
        """Read a workflow from a YAML or JSON file. Raises: WorkflowDefinitionError."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8-sig")
            if file.suffix.lower() == ".json":
                written = json.loads(text, object_pairs_hook=_pairs)
            else:
                written = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader that refuses doubled keys
        except OSError as error:
            raise WorkflowDefinitionError(file.name, [f"the file cannot be read: {error.strerror or error}"]) from error
        except (ValueError, yaml.YAMLError) as error:
            raise WorkflowDefinitionError(
                file.name, [f"the file is neither YAML nor JSON: {' '.join(str(error).split())}"]
            ) from error
        return cls.from_dict(written)

    @classmethod
    def stored(cls, definition: Mapping[str, Any]) -> Workflow:
        """Read a workflow that was checked when it was stored; types that are not known here are left open."""
        return _read(definition, strict=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, from which `from_dict` makes the same workflow."""
        return {
            "name": self.name,
            **({"description": self.description} if self.description else {}),
            "start": self.start,
            "nodes": [
                {
                    "id": node.id,
                    "type": node.type,
                    **({"name": node.name} if node.name != node.id else {}),
                    **({"config": dict(node.config)} if node.config else {}),
                }
                for node in self.nodes
            ],
            "connections": [
                {"source": c.source, "target": c.target, **({} if c.when is None else {"when": c.when})}
                for c in self.connections
            ],
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(_canonical(self.to_dict()).encode()).hexdigest()

    def node(self, id: str) -> Node:  # noqa: A002 - the field's name
        """Return a node by its id; `KeyError` when there is none."""
        return self._by_id[id]

    @cached_property
    def joins(self) -> dict[str, str]:
        """The joins, each with its fork."""
        return {node.id: node.config["fork"] for node in self.nodes if node.type == "join"}

    def follow(self, node: Node, outcome: str, variables: Mapping[str, Any]) -> dict[int, str]:
        """Choose the connections a token takes: position of the connection -> target.

        Of a fork all that hold, of another node the first that holds, else the one without `when`.

        Raises:
            ExpressionError: a condition cannot be judged, or none holds.
        """
        ways = self._ways.get(node.id, [])
        if node.type == "end":
            return {}
        held = {at: way.target for at, way in ways if way.when is not None and _holds(way, outcome, variables)}
        free = {at: way.target for at, way in ways if way.when is None}
        taken = {**free, **held} if node.type == "fork" else dict(list((held or free).items())[:1])
        if not taken:
            raise ExpressionError(node.id, f"no connection of this node is for its outcome {outcome!r}")
        return taken

    @cached_property
    def _by_id(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def _ways(self) -> dict[str, list[tuple[int, Connection]]]:
        ways: dict[str, list[tuple[int, Connection]]] = {}
        for at, connection in enumerate(self.connections):
            ways.setdefault(connection.source, []).append((at, connection))
        return ways

    def diagram(self) -> str:
        """Return it as a fenced block of mermaid, which JupyterLab and code hosts draw."""
        return diagram(self.start, self.nodes, self.connections)

    def _repr_markdown_(self) -> str:
        return self.diagram()


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - overrides
        """Return a mapping without doubled keys."""
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1 and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is written twice", key.start_mark
                )
        return dict(super().construct_mapping(node, deep=deep))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} is written twice")
    return dict(pairs)


def _holds(way: Connection, outcome: str, variables: Mapping[str, Any]) -> bool:
    assert way.when is not None
    return way.when == outcome if way.is_outcome else expressions.judge(way.when, variables)


def _read(definition: object, *, strict: bool) -> Workflow:
    if not isinstance(definition, Mapping):
        raise WorkflowDefinitionError("", ["a workflow is a mapping with name, start, nodes and connections"])
    name = definition.get("name")
    named = name if isinstance(name, str) else ""
    problems = [*_unknown_keys(definition, _KEYS, "the workflow")]
    if not named or len(named) > 200 or not named.isprintable():
        problems.append("name: a text of up to 200 characters is wanted")
    description = definition.get("description") or ""
    if not isinstance(description, str):
        problems.append("description: a text is wanted")
    try:
        if len(_canonical(definition)) > MOST_BYTES:
            problems.append(f"it is longer than {MOST_BYTES:,} characters of JSON")
    except (TypeError, ValueError) as error:
        raise WorkflowDefinitionError(named, [*problems, f"it is no plain data: {error}"]) from error
    nodes = _nodes(definition.get("nodes"), problems, strict=strict)
    connections = _connections(definition.get("connections", []), nodes, problems)
    start = definition.get("start")
    if start not in {node.id for node in nodes}:
        problems.append(f"start: there is no node {start!r}{_nearest(start, [node.id for node in nodes])}")
    if strict:
        problems += problems_of(str(start), nodes, connections)
    if problems:
        raise WorkflowDefinitionError(named, list(dict.fromkeys(problems)))
    return Workflow(
        name=named, description=str(description), start=str(start), nodes=tuple(nodes), connections=tuple(connections)
    )


def _nodes(written: object, problems: list[str], *, strict: bool) -> list[Node]:
    if not isinstance(written, list | tuple) or not written:
        problems.append("nodes: a list of nodes is wanted")
        return []
    if len(written) > MOST_NODES:
        problems.append(f"nodes: there are {len(written)}, and at most {MOST_NODES} are taken")
        return []
    nodes: dict[str, Node] = {}
    for at, each in enumerate(written, start=1):
        if not isinstance(each, Mapping):
            problems.append(f"node {at}: a mapping with id and type is wanted")
            continue
        id_ = each.get("id")
        if not isinstance(id_, str) or not _ID.fullmatch(id_):
            problems.append(f"node {at}: id: a word of letters, digits, _ and - is wanted, not {id_!r}")
            continue
        problems += _unknown_keys(each, _NODE_KEYS, f"node {id_}")
        if id_ in nodes:
            problems.append(f"node {id_}: there are two nodes of this id")
            continue
        nodes[id_] = _node(id_, each, problems, strict=strict)
    return list(nodes.values())


def _node(id_: str, written: Mapping[str, Any], problems: list[str], *, strict: bool) -> Node:
    config = written.get("config") or {}
    type_ = written.get("type")
    name = written.get("name") or id_
    if not isinstance(name, str):
        problems.append(f"node {id_}: name: a text is wanted")
    model = None
    try:
        kind = node_types.node_type(str(type_), node=id_)
    except NodeTypeMissingError:
        if strict:
            known = node_types.known()
            problems.append(
                f"node {id_}: there is no type {type_!r}{_nearest(type_, known)}; known are: {', '.join(known)}"
            )
    else:
        model, wrong = node_types.read_config(kind, config)
        if strict:
            problems += [f"node {id_}: config: {each}" for each in wrong]
    if not isinstance(config, Mapping):
        config = {}
    return Node(id=id_, type=str(type_), name=str(name), config=config, model=model)


def _connections(written: object, nodes: list[Node], problems: list[str]) -> list[Connection]:
    if not isinstance(written, list | tuple):
        problems.append("connections: a list of connections is wanted")
        return []
    by_id = {node.id: node for node in nodes}
    connections: list[Connection] = []
    for at, each in enumerate(written, start=1):
        if not isinstance(each, Mapping):
            problems.append(f"connection {at}: a mapping with source and target is wanted")
            continue
        label = f"connection {each.get('source')} -> {each.get('target')}"
        problems += _unknown_keys(each, _CONNECTION_KEYS, label)
        missing = [end for end in ("source", "target") if each.get(end) not in by_id]
        for end in missing:
            problems.append(f"{label}: {end}: there is no node {each.get(end)!r}{_nearest(each.get(end), by_id)}")
        when = each.get("when")
        if isinstance(when, bool):  # YAML reads true and yes as a truth value
            when = str(when).lower()
        if when is not None and not isinstance(when, str):
            problems.append(f"{label}: when: an outcome or a condition is wanted, not {when!r}")
            continue
        if missing:
            continue
        connection = _connection(by_id[each["source"]], str(each["target"]), when, label, problems)
        if connection in connections:
            problems.append(f"{label}: it is there twice")
        connections.append(connection)
    return connections


def _connection(source: Node, target: str, when: str | None, label: str, problems: list[str]) -> Connection:
    """Read what `when` says: an outcome of the source's type, else a condition."""
    outcomes: tuple[str, ...] | None = None
    with suppress(NodeTypeMissingError):  # said already, or left open
        outcomes = source.kind.outcomes(source.model)
    is_outcome = when is not None and (when in outcomes if outcomes is not None else when.isidentifier())
    if when is not None and not is_outcome and outcomes is not None:
        if re.fullmatch(r"[\w -]+", when):
            ends = ", ".join(outcomes) or "nothing"
            problems.append(
                f"{label}: when: {when!r} is no outcome of {source.id}, which ends as: {ends}"
                f"{_nearest(when, outcomes)}; a variable is written in braces"
            )
        else:
            try:
                expressions.check(when)
            except ExpressionError as error:
                problems.append(f"{label}: when: {error}")
    return Connection(source=source.id, target=target, when=when, is_outcome=is_outcome)


def _unknown_keys(written: Mapping[Any, Any], known: tuple[str, ...], where: str) -> list[str]:
    return [f"{where}: there is no key {key!r}{_nearest(key, known)}" for key in written if key not in known]


def _nearest(word: object, words: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), list(words), n=1)
    return f" (is {close[0]} meant?)" if close else ""


def _canonical(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
