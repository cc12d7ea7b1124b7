"""What must hold of a graph before any token is put on it: pure, and all problems at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from importer.errors import NodeTypeMissingError
from importer.workflow.elements import Connection, Node
from importer.workflow.node_types import DONE

#: The most ways of being within forks that are looked through.
_MOST_STATES = 20_000


def problems_of(start: str, nodes: Sequence[Node], connections: Sequence[Connection]) -> list[str]:
    """Say what is wrong with the graph: dead ends, missing ways, unreachable nodes, forks and joins, endless cycles."""
    by_id = {node.id: node for node in nodes}
    ways: dict[str, list[Connection]] = {node.id: [] for node in nodes}
    for connection in connections:
        ways[connection.source].append(connection)
    problems = [problem for node in nodes for problem in _ways_out(node, ways[node.id])]
    targets = {source: [way.target for way in out] for source, out in ways.items()}
    if start in by_id:
        reached = _reached(start, targets)
        problems += [f"node {node.id}: it cannot be reached from the start" for node in nodes if node.id not in reached]
    problems += _join_problems(by_id)
    for cycle in _instant_cycles(nodes, targets):
        path = " -> ".join([*cycle, cycle[0]])
        problems.append(f"the cycle {path} never waits: a timer, approval, import or task is wanted")
    joined = all(isinstance(node.config.get("fork"), str) for node in nodes if node.type == "join")
    if start in by_id and joined and not problems:
        problems += _scope_problems(start, by_id, targets)
    return problems


def _ways_out(node: Node, ways: Sequence[Connection]) -> list[str]:
    """Whatever a node ends with, there is a way, and only one (of a fork: as many as are drawn)."""
    if node.type == "end":
        return [f"node {node.id}: an end has no connections"] if ways else []
    if not ways:
        return [f"node {node.id}: it leads nowhere; a workflow ends on a node of type end"]
    free = [way for way in ways if way.when is None]
    if node.type == "fork":
        return [] if free else [f"node {node.id}: one connection of a fork is to be without when"]
    problems = []
    if len(free) > 1:
        problems.append(f"node {node.id}: {len(free)} connections without when; only a fork goes several ways at once")
    said = [way.when for way in ways if way.is_outcome]
    problems += [
        f"node {node.id}: two connections for the outcome {outcome}"
        for outcome in dict.fromkeys(said)
        if said.count(outcome) > 1
    ]
    if not free:
        try:
            outcomes: tuple[str, ...] = node.kind.outcomes(node.model)
        except NodeTypeMissingError:
            return problems
        missing = [outcome for outcome in outcomes if outcome not in said]
        if missing == [DONE]:
            problems.append(f"node {node.id}: no connection is taken when no condition holds; add one without when")
        elif missing:
            said_so = ", ".join(missing)
            problems.append(f"node {node.id}: no connection for the outcome {said_so}, and none without when")
    return problems


def _reached(start: str, targets: Mapping[str, Iterable[str]]) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for target in targets[todo.pop()]:
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def _join_problems(by_id: Mapping[str, Node]) -> list[str]:
    problems = []
    for node in by_id.values():
        fork = node.config.get("fork")
        if node.type != "join" or not isinstance(fork, str):
            continue  # a join without a fork is said by its config
        if fork not in by_id:
            problems.append(f"node {node.id}: there is no fork {fork!r} to join")
        elif by_id[fork].type != "fork":
            problems.append(f"node {node.id}: it is to join {fork}, which is no fork but a {by_id[fork].type}")
    forks = [node.config.get("fork") for node in by_id.values() if node.type == "join"]
    problems += [f"node {fork}: it is joined twice" for fork in dict.fromkeys(forks) if fork and forks.count(fork) > 1]
    return problems


def _instant_cycles(nodes: Sequence[Node], targets: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Cycles of nodes that do not wait, one for each knot of them."""
    instant = {node.id for node in nodes if not _waits(node)}
    cycles: list[list[str]] = []
    done: set[str] = set()
    for first in (node.id for node in nodes if node.id in instant):
        path: list[str] = []
        on_path: set[str] = set()
        todo: list[tuple[str, int]] = [(first, 0)] if first not in done else []
        while todo:
            at, way = todo.pop()
            if way == 0:
                path.append(at)
                on_path.add(at)
            steps = [target for target in targets[at] if target in instant]
            if way == len(steps):
                path.pop()
                on_path.discard(at)
                done.add(at)
                continue
            todo.append((at, way + 1))
            step = steps[way]
            if step in on_path:
                cycles.append(path[path.index(step) :])
            elif step not in done:
                todo.append((step, 0))
    return cycles


def _waits(node: Node) -> bool:
    """A join waits for others, but not for time: alone it ends no cycle."""
    try:
        return node.kind.waits in {"timer", "approval", "import", "task"}
    except NodeTypeMissingError:
        return True  # an unknown type is a problem of its own


def _scope_problems(start: str, by_id: Mapping[str, Node], targets: Mapping[str, Sequence[str]]) -> list[str]:
    """Walk every way of being within forks: a join is reached only through its fork, no fork again within itself."""
    problems: list[str] = []
    seen: set[tuple[str, tuple[str, ...]]] = set()
    todo: list[tuple[str, tuple[str, ...]]] = [(start, ())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > _MOST_STATES:
            return [*problems, "its forks are entangled too much to be checked"]
        id_, scope = state
        node = by_id[id_]
        if node.type == "fork":
            if id_ in scope:
                problems.append(f"node {id_}: this fork can be entered again before it was joined")
                continue
            scope = (*scope, id_)
        elif node.type == "join":
            fork = str(node.config["fork"])
            if fork not in scope:
                problems.append(f"node {id_}: this join can be reached without passing its fork {fork}")
                continue
            scope = scope[: scope.index(fork)]
        todo += [(target, scope) for target in targets[id_]]
    return list(dict.fromkeys(problems))
