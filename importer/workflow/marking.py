"""Tokens on a graph, pure: which are consumed and created when a node is left, and when a join may go on.

A token is within the forks it came through and has not yet joined: its *scope*, outermost first, each fork with the
token that was consumed on it. A join of the fork F goes on when every active token within one passing of F stands on
the join, or on the join of a fork further out, by which it has left F. So a branch that ends elsewhere is not waited
for, a fork may skip connections, and loops and nested forks need no counting. Going on consumes the tokens on the join
and makes one, whose scope is that outside of the fork.

With one join a fork (`graph` sees to that) tokens never wait for each other: of those that stand on joins, the one
whose fork is innermost goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: The most tokens that an instance may have at a time.
MOST_TOKENS = 1000


@dataclass(frozen=True, kw_only=True)
class Token:
    """An active token."""

    #: Its number within the instance.
    number: int
    #: The node on which it stands.
    node: str
    #: The forks it is within, outermost first: the fork's node and the token that was consumed on it.
    scope: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """What leaving a node did."""

    #: The tokens that were consumed, the one that left last.
    consumed: tuple[Token, ...]
    #: The tokens that were made, one for each connection that was taken, with the connection.
    created: tuple[tuple[int, Token], ...]


@dataclass(kw_only=True)
class Marking:
    """The active tokens of an instance; the number of the next one."""

    tokens: dict[int, Token] = field(default_factory=dict)
    next_number: int = 1

    @classmethod
    def of(cls, tokens: Iterable[Token], *, next_number: int) -> Marking:
        """Return the marking of these active tokens."""
        return cls(tokens={token.number: token for token in tokens}, next_number=next_number)

    def place(self, node: str, scope: Sequence[tuple[str, int]] = ()) -> Token:
        """Put a new token on a node."""
        token = Token(number=self.next_number, node=node, scope=tuple(scope))
        self.next_number += 1
        self.tokens[token.number] = token
        return token

    def leave(self, token: Token, targets: Mapping[int, str], *, fork: bool = False) -> Leaving:
        """Consume a token and make one for each connection taken (`targets`: connection -> node).

        Raises `ValueError` when there would be more than `MOST_TOKENS`.
        """
        self._consume([token])
        scope = (*token.scope, (token.node, token.number)) if fork else token.scope
        return Leaving(consumed=(token,), created=self._create(targets, scope))

    def join(self, fork: str, last: Token, targets: Mapping[int, str]) -> Leaving:
        """Consume all tokens that stand on the join with `last`, and make one outside of the fork."""
        depth = _depth(fork, last)
        assert depth is not None  # `ready` found it
        together = [token for token in self._within(last.scope[depth]) if token.node == last.node]
        self._consume(together)
        others = [token for token in together if token.number != last.number]
        return Leaving(consumed=(*others, last), created=self._create(targets, last.scope[:depth]))

    def ready(self, joins: Mapping[str, str]) -> tuple[str, Token] | None:
        """Find a join that may go on (`joins`: join -> its fork): the fork, and the newest token on the join."""
        return next(self._ready(joins), None)

    def _ready(self, joins: Mapping[str, str]) -> Iterator[tuple[str, Token]]:
        for token in sorted(self.tokens.values(), key=lambda token: -token.number):
            fork = joins.get(token.node)
            depth = None if fork is None else _depth(fork, token)
            if fork is None or depth is None:
                continue
            if all(
                other.node == token.node or _left(other, depth, joins) for other in self._within(token.scope[depth])
            ):
                yield fork, token

    def _within(self, passing: tuple[str, int]) -> list[Token]:
        """The active tokens within this passing of a fork."""
        return [token for token in self.tokens.values() if passing in token.scope]

    def _consume(self, tokens: Iterable[Token]) -> None:
        for token in list(tokens):
            del self.tokens[token.number]

    def _create(self, targets: Mapping[int, str], scope: Sequence[tuple[str, int]]) -> tuple[tuple[int, Token], ...]:
        if len(self.tokens) + len(targets) > MOST_TOKENS:
            raise ValueError(f"there would be more than {MOST_TOKENS:,} tokens")
        return tuple((connection, self.place(node, scope)) for connection, node in sorted(targets.items()))


def _depth(fork: str, token: Token) -> int | None:
    """Where in its scope the token is within the fork."""
    return next((at for at, (node, _) in enumerate(token.scope) if node == fork), None)


def _left(token: Token, depth: int, joins: Mapping[str, str]) -> bool:
    """Whether the token stands on the join of a fork outside of `depth`."""
    fork = joins.get(token.node)
    outer = None if fork is None else _depth(fork, token)
    return outer is not None and outer < depth
