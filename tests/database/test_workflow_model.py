"""Random workflows, moved by two workers in random order, against a tiny model that knows no tokens and no graph.

The model is an expression that is rewritten: what is left to do. A block is a wait, an instant step, a sequence, a
choice, a fork of branches, a loop, or an end; the workflow is drawn from the blocks, the model works on the blocks.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import importer as im
from importer.db import Database
from importer.workflow import timers_due
from tests.workflow_checker import check_all
from tests.workflows import node

# --- blocks, and what is left of them ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wait:
    """Waits for an answer (several choices lead to several blocks) or for a timer (one block after it)."""

    id: str
    after: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Say:
    """Does something at once."""

    id: str


@dataclass(frozen=True)
class Seq:
    """One after another."""

    blocks: tuple[Any, ...]


@dataclass(frozen=True)
class Fork:
    """All at once; what follows waits for those branches that do not end."""

    id: str
    branches: tuple[Any, ...]


@dataclass(frozen=True)
class End:
    """The branch is over."""

    id: str


@dataclass(frozen=True)
class Again:
    """A timer, then a question: again, or on."""

    id: str


#: Nothing is left, and what follows goes on; nothing is left, and nothing follows.
DONE, DEAD = "done", "dead"


def start(block: Any) -> Any:  # noqa: ANN401 - a block, or what is left of one
    """Return what is left of a block as soon as it has begun: waits, sequences and forks of waits, DONE or DEAD."""
    match block:
        case Say():
            return DONE
        case End():
            return DEAD
        case Again(id=id_):
            return Wait(f"{id_}_t", {"done": Wait(f"{id_}_q", {"again": block, "on": Seq(())})})
        case Seq(blocks=()):
            return DONE
        case Seq(blocks=blocks):
            return settle(Seq((start(blocks[0]), *blocks[1:])))
        case Fork(id=id_, branches=branches):
            return settle(Fork(id_, tuple(start(branch) for branch in branches)))
        case _:
            return block


def settle(left: Any) -> Any:  # noqa: ANN401 - as above
    """Let a sequence or fork whose parts have begun go on where it can."""
    match left:
        case Seq(blocks=(first, *rest)) if first == DONE:
            return start(Seq(tuple(rest)))
        case Seq(blocks=(first, *_)) if first == DEAD:
            return DEAD
        case Fork(branches=branches) if all(branch in (DONE, DEAD) for branch in branches):
            return DONE if DONE in branches else DEAD
        case _:
            return left


def waits(left: Any) -> list[Wait]:  # noqa: ANN401 - as above
    """Return the waits that can be ended."""
    match left:
        case Wait():
            return [left]
        case Seq(blocks=(first, *_)):
            return waits(first)
        case Fork(branches=branches):
            return [wait for branch in branches for wait in waits(branch)]
        case _:
            return []


def end(left: Any, id_: str, outcome: str) -> Any:  # noqa: ANN401 - as above
    """Return what is left after a wait has ended."""
    match left:
        case Wait(id=own, after=after) if own == id_:
            return start(after[outcome])
        case Seq(blocks=(first, *rest)):
            return settle(Seq((end(first, id_, outcome), *rest)))
        case Fork(id=fork, branches=branches):
            return settle(Fork(fork, tuple(end(branch, id_, outcome) for branch in branches)))
        case _:
            return left


# --- the same blocks as a workflow ------------------------------------------------------------------------------------


class Drawing:
    """Draws blocks as nodes and connections."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.ways: list[dict[str, str]] = []

    def draw(self, block: Any, ends: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:  # noqa: ANN401
        """Connect `ends` (source, when) to the block; return the ends it leaves open."""
        match block:
            case Say(id=id_):
                return self._enter(ends, node(id_, "log", message=id_))
            case End(id=id_):
                self._enter(ends, node(id_, "end"))
                return []
            case Seq(blocks=blocks):
                for inner in blocks:
                    ends = self.draw(inner, ends)
                return ends
            case Wait(id=id_, after={"done": after}):
                return self.draw(after, self._enter(ends, node(id_, "timer", days=1)))
            case Wait(id=id_, after=after):
                self._enter(ends, node(id_, "approval", question=id_, choices=list(after)))
                return [out for choice, inner in after.items() for out in self.draw(inner, [(id_, choice)])]
            case Again(id=id_):
                self._enter(ends, node(f"{id_}_t", "timer", days=1))
                self._enter([(f"{id_}_t", None)], node(f"{id_}_q", "approval", question=id_, choices=["again", "on"]))
                self.ways.append({"source": f"{id_}_q", "target": f"{id_}_t", "when": "again"})
                return [(f"{id_}_q", "on")]
            case Fork(id=id_, branches=branches):
                self._enter(ends, node(id_, "fork"))
                open_ends = [out for branch in branches for out in self.draw(branch, [(id_, None)])]
                return self._enter(open_ends, node(f"{id_}_j", "join", fork=id_)) if open_ends else []
            case _:
                raise AssertionError(block)

    def _enter(self, ends: list[tuple[str, str | None]], to: dict[str, Any]) -> list[tuple[str, str | None]]:
        self.nodes.append(to)
        self.ways += [
            {"source": source, "target": to["id"], **({} if when is None else {"when": when})} for source, when in ends
        ]
        return [(to["id"], None)]


def drawn(block: Any) -> im.Workflow:  # noqa: ANN401 - a block
    """Return a block as a workflow."""
    drawing = Drawing()
    ends = drawing.draw(Say("first"), [])
    ends = drawing.draw(block, ends)
    if ends:
        drawing.draw(End("last"), ends)
    reached = {way["target"] for way in drawing.ways} | {"first"}
    nodes = [each for each in drawing.nodes if each["id"] in reached]
    return im.Workflow.from_dict({"name": "drawn", "start": "first", "nodes": nodes, "connections": drawing.ways})


def named(shape: Any, numbers: itertools.count[int]) -> Any:  # noqa: ANN401 - a shape, a block
    """Give the blocks of a shape ids of their own; nothing stands behind what never goes on."""
    id_ = f"n{next(numbers)}"
    match shape:
        case "say":
            return Say(id_)
        case "end":
            return End(id_)
        case "again":
            return Again(id_)
        case ("timer", inner):
            return Wait(id_, {"done": named(inner, numbers)})
        case ("ask", *inner):
            return Wait(id_, {f"c{n}": named(each, numbers) for n, each in enumerate(inner)})
        case ("fork", *inner):
            return Fork(id_, tuple(named(each, numbers) for each in inner))
        case ("seq", *inner):
            blocks = []
            for each in inner:
                blocks.append(named(each, numbers))
                if not goes_on(blocks[-1]):
                    break
            return Seq(tuple(blocks))
    raise AssertionError(shape)


def goes_on(block: Any) -> bool:  # noqa: ANN401 - a block
    """Whether anything can follow."""
    match block:
        case End():
            return False
        case Seq(blocks=blocks):
            return all(goes_on(each) for each in blocks)
        case Fork(branches=branches):
            return any(goes_on(each) for each in branches)
        case Wait(after=after):
            return any(goes_on(each) for each in after.values())
        case _:
            return True


SHAPES = st.recursive(
    st.sampled_from(["say", "end", "again"]),
    lambda inner: (
        st.tuples(st.just("timer"), inner)
        | st.tuples(st.just("ask"), inner, inner)
        | st.tuples(st.just("fork"), inner, inner)
        | st.tuples(st.just("fork"), inner, inner, inner)
        | st.tuples(st.just("seq"), inner, inner)
        | st.tuples(st.just("seq"), inner, inner, inner)
    ),
    max_leaves=12,
)


# --- two workers ------------------------------------------------------------------------------------------------------


def fire(db: Database, instance: int, id_: str, outcome: str) -> None:
    """End one wait: answer it, or make its timer due and fire what is due."""
    if outcome != "done":
        approval = next(each for each in im.approvals(instance=instance, db=db) if each.node == id_)
        im.answer(approval, outcome, by="Ada", db=db)
        return
    with db.connection() as conn:
        conn.execute(
            "update rowlease.timer_jobs set due_at = rowlease.clock() - interval '1 second'"
            " where instance_id = %s and node = %s and status = 'pending'",
            [instance, id_],
        )
    while any(wait.node == id_ and wait.kind == "timer" for wait in im.workflow(instance, db=db).waits):
        timers_due(db, f"timer:{uuid.uuid4()}")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_random_workflows_and_interleavings(db: Database, shape: Any, seed: int) -> None:  # noqa: ANN401
    """After each pair of concurrent firings the tokens stand where the model says; in the end both are at the end."""
    dice = random.Random(seed)
    block = named(shape, itertools.count())
    started = im.start(drawn(block), db=db)
    left = start(block)
    found = started

    with ThreadPoolExecutor(2) as workers:
        for _ in range(12):
            at_once = dice.sample(waits(left), min(2, len(waits(left))))
            ended = [(wait.id, dice.choice(sorted(wait.after))) for wait in at_once]
            list(workers.map(lambda each: fire(db, started.id, *each), ended))
            for id_, outcome in ended:
                left = end(left, id_, outcome)
            found = im.workflow(started, db=db)
            standing = Counter(wait.node for wait in found.waits if wait.kind != "join")
            assert standing == Counter(wait.id for wait in waits(left))
            if not waits(left):
                break

    assert found.ended == (left in (DONE, DEAD))
    with db.connection() as conn:
        check_all(conn)
        conn.execute("delete from rowlease.workflow_instances")
