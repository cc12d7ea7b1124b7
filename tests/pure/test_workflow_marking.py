"""The marking: in any order, tokens never wait for each other, a join goes on once, and nothing is left behind."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import importer as im
from importer.workflow.marking import MOST_TOKENS, Marking, Token
from importer.workflow.node_types import DONE
from tests.workflows import flow, node


class Drawing:
    """Draws forks within forks; a branch may end, go on to its join, or jump to the join of a fork further out."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.ids = itertools.count()
        self.nodes: list[dict[str, Any]] = []
        self.ways: list[tuple[str, str]] = []

    def add(self, type_: str, **config: object) -> str:
        """Add a node."""
        id_ = f"n{next(self.ids)}"
        self.nodes.append(node(id_, type_, **config))
        return id_

    def branch(self, source: str, joins: list[str], depth: int) -> None:
        """Draw what comes after a node, to the end of its branch."""
        for _ in range(self.dice.randrange(3)):
            step = self.add("timer", hours=1)
            self.ways.append((source, step))
            source = step
            if depth and self.dice.random() < 0.5:
                fork = self.add("fork")
                join = self.add("join", fork=fork)
                self.ways.append((source, fork))
                for _ in range(self.dice.randrange(1, 4)):
                    first = self.add("timer", hours=1)
                    self.ways.append((fork, first))
                    self.branch(first, [*joins, join], depth - 1)
                if not any(target == join for _, target in self.ways):
                    self.nodes = [each for each in self.nodes if each["id"] != join]
                    return
                source = join
        if joins and self.dice.random() < 0.8:
            self.ways.append((source, self.dice.choice(joins)))
        else:
            self.ways.append((source, self.add("end")))


def drawn(seed: int) -> im.Workflow:
    """Draw a workflow, and leave out what cannot be reached (behind a join that everything jumps over)."""
    drawing = Drawing(random.Random(seed))
    first = drawing.add("timer", hours=1)
    drawing.branch(first, [], 3)
    reached, more = {first}, True
    while more:
        found = reached | {target for source, target in drawing.ways if source in reached}
        reached, more = found, found != reached
    return flow(
        *(each for each in drawing.nodes if each["id"] in reached),
        ways=[way for way in drawing.ways if way[0] in reached],
    )


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_tokens_never_wait_for_each_other(seed: int, order: int) -> None:
    """Ended in any order, some wait can always be ended until no token is left; a passing of a fork is joined once."""
    workflow = drawn(seed)
    dice = random.Random(order)
    marking = Marking()
    marking.place(workflow.start)
    joined: Counter[tuple[str, int]] = Counter()

    for _ in range(10_000):
        while (ready := marking.ready(workflow.joins)) is not None:
            fork, last = ready
            joined[next(step for step in last.scope if step[0] == fork)] += 1
            marking.join(fork, last, workflow.follow(workflow.node(last.node), DONE, {}))
        if not marking.tokens:
            break
        movable = [token for token in marking.tokens.values() if workflow.node(token.node).type != "join"]
        assert movable, f"all tokens wait for each other: {marking.tokens}"
        token = dice.choice(movable)
        of = workflow.node(token.node)
        targets = {} if of.type == "end" else workflow.follow(of, DONE, {})
        leaving = marking.leave(token, targets, fork=of.type == "fork")
        assert len(leaving.created) == len(targets)

    assert not marking.tokens
    assert set(joined.values()) <= {1}


def test_a_branch_that_left_for_an_outer_join_is_not_waited_for() -> None:
    """One token jumped to the join of the outer fork; the inner join goes on with the other."""
    scope = (("outer", 1), ("inner", 2))
    marking = Marking.of(
        [Token(number=3, node="outer_join", scope=scope), Token(number=4, node="inner_join", scope=scope)],
        next_number=5,
    )

    ready = marking.ready({"outer_join": "outer", "inner_join": "inner"})

    assert ready == ("inner", Token(number=4, node="inner_join", scope=scope))
    leaving = marking.join("inner", ready[1], {0: "outer_join"})
    assert leaving.created == ((0, Token(number=5, node="outer_join", scope=(("outer", 1),))),)
    assert marking.ready({"outer_join": "outer", "inner_join": "inner"}) == ("outer", leaving.created[0][1])


def test_two_passings_of_one_fork_are_two() -> None:
    """Tokens of another passing of the same fork are not waited for."""
    marking = Marking.of(
        [Token(number=3, node="join", scope=(("fork", 1),)), Token(number=4, node="step", scope=(("fork", 2),))],
        next_number=5,
    )

    assert marking.ready({"join": "fork"}) == ("fork", Token(number=3, node="join", scope=(("fork", 1),)))


def test_tokens_are_bounded() -> None:
    """Forks that multiply tokens come to an end."""
    marking = Marking()
    token = marking.place("fork")

    with pytest.raises(ValueError, match=r"more than 1,000 tokens"):
        marking.leave(token, dict.fromkeys(range(MOST_TOKENS + 1), "a"), fork=True)
