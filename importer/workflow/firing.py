"""One firing: one transaction that moves tokens of one instance until every one of them waits.

```
begin ─ lock the instance ─ lock its tokens ─ renew the timer or message by its fence
      ─ leave the node that ended ─► enter the next ─► instant: run it, leave it ─┐
              ▲                          └ timer, approval, import: write what    │
              └──────────────────────────────── it waits for              ◄───────┘
      ─ joins that may go on ─ no token left: completed ─ write ─ end the timer or message ─ commit
```

What is computed is kept here and written by one statement at the end, so that a crash at any point leaves all or
nothing. Only the submission of an import happens on the way, in the same transaction, for its job decides whether the
token waits. Everything in a firing has the same moment, the database's clock when the instance was locked.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from importer import outbox_message, timer_job
from importer.db import Connection, Jsonb, errors, statements
from importer.errors import ImporterError, NodeError, NodeTypeMissingError
from importer.settings import Settings
from importer.workflow import imports, node_types, tasks
from importer.workflow.configs import Approval, Timer
from importer.workflow.definition import Workflow
from importer.workflow.elements import Node
from importer.workflow.marking import Leaving, Marking, Token
from importer.workflow.node_types import DONE, NodeContext

ST = statements("workflow")

#: What the ends of instances are announced under.
TOPIC = "workflow_ended"

#: The most nodes that one firing may pass: a cycle whose waits are all over would never end.
MOST_STEPS = 1000

#: The most bytes of an instance's variables, as JSON.
MOST_VARIABLES_BYTES = 256_000

#: Named moments of a firing, at which a test may end the process.
At = Callable[[str], None]


@dataclass(kw_only=True)
class Passed:
    """A token that left its node in this firing."""

    token: Token
    outcome: str
    detail: Mapping[str, Any]
    #: How long it stood there.
    duration: dt.timedelta


@dataclass(kw_only=True)
class Written:
    """What a firing has to write."""

    #: Tokens made here, by number: the token, its source and connection.
    made: dict[int, tuple[Token, int | None, int | None]] = field(default_factory=dict)
    #: Tokens that left their node here, by number.
    passed: dict[int, Passed] = field(default_factory=dict)
    #: Lines of history in order: token, node, what, duration, detail.
    events: list[tuple[int | None, str | None, str, dt.timedelta | None, Mapping[str, Any]]] = field(
        default_factory=list
    )
    #: What is written after the tokens are: timers, approvals, waits.
    waits: list[Callable[[], None]] = field(default_factory=list)


class Firing:
    """A locked instance and what becomes of it. Made by `open_firing` inside the caller's transaction."""

    def __init__(self, conn: Connection, row: Mapping[str, Any], *, settings: Settings) -> None:
        self.conn = conn
        self.settings = settings
        self.instance = int(row["id"])
        self.status = str(row["status"])
        #: The moment that the whole firing counts as.
        self.now: dt.datetime = row["now"]
        self.workflow = workflow_of(conn, row["name"], row["digest"])
        self.variables: dict[str, Any] = row["variables"]
        self.marking = Marking(next_number=int(row["next_token"]))
        self._entered: dict[int, dt.datetime] = {}
        self._changed = False
        self._written = Written()
        self._steps = 0

    def lock_tokens(self) -> None:
        """Lock the active tokens, and know where they stand."""
        rows = self.conn.execute(ST["lock_tokens"], {"id": self.instance}).fetchall()
        tokens = [
            Token(number=row["number"], node=row["node"], scope=tuple((fork, at) for fork, at in row["scope"]))
            for row in rows
        ]
        self.marking = Marking.of(tokens, next_number=self.marking.next_number)
        self._entered = {row["number"]: row["entered_at"] for row in rows}

    def is_active(self, token: int) -> bool:
        """Whether the instance runs and the token stands on its node."""
        return self.status == "running" and token in self.marking.tokens

    def node_of(self, token: int) -> Node:
        """Return the node on which an active token stands."""
        return self.workflow.node(self.marking.tokens[token].node)

    def begin(self) -> None:
        """Put the first token on the start, and go on until every token waits."""
        self.event("started", detail={"variables": dict(self.variables)})
        token = self.marking.place(self.workflow.start)
        self._written.made[token.number] = (token, None, None)
        self._run(deque([token]))

    def go(
        self,
        token: int,
        outcome: str,
        *,
        values: Mapping[str, Any] | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """End the node on which a token waits, and go on until every token waits.

        Raises:
            NodeError: a node on the way could not do its work. NodeTypeMissingError: nobody here knows its type.
        """
        mark = self.marking.tokens[token]
        self._set(mark.node, values or {})
        self._run(deque(self._leave(mark, outcome, detail or {}, started=None)))

    def restore(self, token: Token) -> Token:
        """Put a token of the same place where a cancelled one stood; what it waits for is the caller's."""
        new = self.marking.place(token.node, token.scope)
        self._written.made[new.number] = (new, None, None)
        return new

    def event(
        self,
        what: str,
        *,
        token: Token | None = None,
        duration: dt.timedelta | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a line to the history."""
        at = (None, None) if token is None else (token.number, token.node)
        self._written.events.append((*at, what, duration, detail or {}))

    def after_tokens(self, write: Callable[[], None]) -> None:
        """Have something written once the tokens are."""
        self._written.waits.append(write)

    def write(self) -> None:
        """Write everything, in the caller's transaction."""
        if self.status == "running" and not self.marking.tokens:
            self.status = "completed"
            self.event("completed")
        written = self._written
        left = [each for number, each in written.passed.items() if number not in written.made]
        made = [(*entry, written.passed.get(number)) for number, entry in written.made.items()]
        row = self.conn.execute(
            ST["write"],
            {
                "id": self.instance,
                "now": self.now,
                "left_numbers": [each.token.number for each in left],
                "left_outcomes": [each.outcome for each in left],
                "new_numbers": [token.number for token, _, _, _ in made],
                "new_nodes": [token.node for token, _, _, _ in made],
                "new_scopes": [Jsonb([list(step) for step in token.scope]) for token, _, _, _ in made],
                "new_sources": [source for _, source, _, _ in made],
                "new_connections": [connection for _, _, connection, _ in made],
                "new_outcomes": [None if passed is None else passed.outcome for _, _, _, passed in made],
                "event_tokens": [each[0] for each in written.events],
                "event_nodes": [each[1] for each in written.events],
                "event_whats": [each[2] for each in written.events],
                "event_durations": [each[3] for each in written.events],
                "event_details": [Jsonb(dict(each[4])) for each in written.events],
                "variables": Jsonb(self.variables) if self._changed else None,
                "next_token": self.marking.next_number,
                "status": self.status,
            },
        ).fetchone()
        assert row is not None, "the instance is locked"
        assert row["left_count"] == len(left), "the tokens are locked"
        for wait in written.waits:
            wait()
        if self.status == "completed":
            announce_end(self)

    def _run(self, entered: deque[Token]) -> None:
        while True:
            while entered:
                entered.extend(self._enter(entered.popleft()))
            ready = self.marking.ready(self.workflow.joins)
            if ready is None:
                return
            fork, last = ready
            node = self.workflow.node(last.node)
            with _blamed(self.instance, node):
                targets = self.workflow.follow(node, DONE, self.variables)
                leaving = self.marking.join(fork, last, targets)
            entered.extend(self._left(leaving, DONE, {"joined": len(leaving.consumed)}, started=None))

    def _enter(self, token: Token) -> list[Token]:
        """A token comes to a node: it goes on at once, or something is written that it waits for."""
        node = self.workflow.node(token.node)
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NodeError(
                self.instance, node.id, f"one firing passes at most {MOST_STEPS:,} nodes; a cycle never waits"
            )
        started = time.perf_counter()
        with _blamed(self.instance, node):
            kind = node.kind
            match kind.waits:
                case "timer":
                    return self._timer(token, node, started)
                case "approval":
                    return self._approval(token, node)
                case "import":
                    return self._import(token, node, started)
                case "task":
                    return self._task(token, node)
                case "join":
                    self.event("waits", token=token, detail={"for": "join", "fork": node.config["fork"]})
                    return []
                case None:
                    context = NodeContext(
                        variables=self.variables,
                        instance=self.instance,
                        node=node.id,
                        key=f"workflow:{self.instance}:{token.number}",
                    )
                    assert kind.run is not None
                    outcome, values = kind.run(node.model, context)
                    if node.type == "log":
                        return self._leave(token, outcome, values, started=started)
                    self._set(node.id, values)
                    return self._leave(token, outcome, {"set": sorted(values)} if values else {}, started=started)

    def _timer(self, token: Token, node: Node, started: float) -> list[Token]:
        assert isinstance(node.model, Timer)
        due_at = node.model.due_at(self.now, self.variables)
        if due_at <= self.now:
            return self._leave(token, DONE, {"due": "already"}, started=started)
        self.event("waits", token=token, detail={"for": "timer", "until": due_at.isoformat()})
        self.set_timer(token, due_at)
        return []

    def _approval(self, token: Token, node: Node) -> list[Token]:
        config = node.model
        assert isinstance(config, Approval)
        who, question = config.asked(self.variables)
        until = None if config.limit is None else self.now + config.limit.length
        self.ask(token, who=who, question=question, choices=config.choices, until=until)
        return []

    def _import(self, token: Token, node: Node, started: float) -> list[Token]:
        held = imports.submit(self.conn, node.model, self.variables, settings=self.settings)
        if held.ended:
            said = imports.result(self.conn, held.job_id, node.model)
            self._set(node.id, said.values)
            return self._leave(token, said.outcome, {"job": held.job_id, "ended": "already"}, started=started)
        self.event("waits", token=token, detail={"for": "import", "job": held.job_id})
        self.wait_for_job(token, held.job_id, fence=held.fence, own=held.own)
        return []

    def _task(self, token: Token, node: Node) -> list[Token]:
        run = tasks.enqueue(
            self.conn,
            node.model,
            self.variables,
            node=node.id,
            place=(self.instance, token.number),
            settings=self.settings,
        )
        self.event("waits", token=token, detail={"for": "task", "run": run})
        return []

    def set_timer(self, token: Token, due_at: dt.datetime) -> None:
        """Have a timer written for a token; waiting workers are told when it is due before they would look."""
        timers = self.settings.timers
        self.after_tokens(
            lambda: timer_job.put(
                self.conn,
                instance_id=self.instance,
                token=token.number,
                node=token.node,
                due_at=due_at,
                max_attempts=timers.max_attempts,
                wake=due_at - self.now <= timers.poll,
            )
        )

    def ask(
        self, token: Token, *, who: list[str], question: str, choices: tuple[str, ...], until: dt.datetime | None
    ) -> None:
        """Have an approval written for a token, with the timer of its limit."""
        limit = {} if until is None else {"until": until.isoformat()}
        self.event("waits", token=token, detail={"for": "approval", "who": who, "question": question, **limit})
        params = {
            "id": self.instance,
            "token": token.number,
            "node": token.node,
            "who": who,
            "question": question,
            "choices": list(choices),
            "now": self.now,
            "due_at": until,
        }
        self.after_tokens(partial(execute, self.conn, "ask", params))
        if until is not None:
            self.set_timer(token, until)

    def wait_for_job(self, token: Token, job_id: int, *, fence: int, own: bool) -> None:
        """Have it written that a token waits for the end of an import job."""
        params = {"id": self.instance, "token": token.number, "job_id": job_id, "job_fence": fence, "own": own}
        self.after_tokens(partial(execute, self.conn, "wait_for_job", params))

    def _leave(self, token: Token, outcome: str, detail: Mapping[str, Any], *, started: float | None) -> list[Token]:
        node = self.workflow.node(token.node)
        with _blamed(self.instance, node):
            targets = self.workflow.follow(node, outcome, self.variables)
            leaving = self.marking.leave(token, targets, fork=node.type == "fork")
        return self._left(leaving, outcome, detail, started=started)

    def _left(self, leaving: Leaving, outcome: str, detail: Mapping[str, Any], *, started: float | None) -> list[Token]:
        for token in leaving.consumed:
            if started is not None:
                duration = dt.timedelta(seconds=time.perf_counter() - started)
            else:
                duration = self.now - self._entered.get(token.number, self.now)
            passed = Passed(token=token, outcome=outcome, detail=detail, duration=duration)
            self._written.passed[token.number] = passed
            self.event("passed", token=token, duration=duration, detail={"outcome": outcome, **detail})
        source = leaving.consumed[-1].number
        for connection, token in leaving.created:
            self._written.made[token.number] = (token, source, connection)
        return [token for _, token in leaving.created]

    def _set(self, node: str, values: Mapping[str, Any]) -> None:
        """Let values join the variables, as JSON and bounded."""
        if not values:
            return
        try:
            merged = json.loads(json.dumps({**self.variables, **values}, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise NodeError(self.instance, node, f"its result is no JSON: {error}") from error
        problem = variables_problem(merged)
        if problem:
            raise NodeError(self.instance, node, problem)
        self.variables, self._changed = merged, True


def announce_end(firing: Firing) -> None:
    """Write the outbox message about the end of an instance in the transaction that ends it."""
    payload = {
        "instance_id": firing.instance,
        "workflow": firing.workflow.name,
        "status": firing.status,
        "variables": firing.variables,
    }
    outbox_message.put(firing.conn, topic=TOPIC, key=f"workflow_instance:{firing.instance}", payload=payload)


def open_firing(
    conn: Connection,
    statement: str,
    id: int,  # noqa: A002 - the column's name
    *,
    settings: Settings,
) -> tuple[Firing, Mapping[str, Any]] | None:
    """Lock an instance and its tokens in the caller's transaction; with the row that was found. None: there is none."""
    row = conn.execute(ST[statement], {"id": id}).fetchone()
    if row is None:
        return None
    firing = Firing(conn, row, settings=settings)
    firing.lock_tokens()
    return firing, row


def variables_problem(variables: Mapping[str, Any]) -> str | None:
    """Say what is wrong with variables of JSON: too large, or a text PostgreSQL cannot hold."""
    text = json.dumps(variables, ensure_ascii=True)
    if len(text) > MOST_VARIABLES_BYTES:
        return f"the variables would be larger than {MOST_VARIABLES_BYTES:,} bytes of JSON"
    if "\\u0000" in text or _holds_half_pair(variables):
        return "a text holds a character that PostgreSQL cannot hold (NUL, or half of a pair)"
    return None


def _holds_half_pair(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def workflow_of(conn: Connection, name: str, digest: str) -> Workflow:
    """Return a stored workflow; kept in memory by its digest, and by the types that are known."""
    key = (name, digest, node_types.changes())
    found = _KEPT.get(key)
    if found is None:
        row = conn.execute(ST["definition"], {"name": name, "digest": digest}).fetchone()
        assert row is not None  # the foreign key
        found = _KEPT[key] = Workflow.stored(row["definition"])
        while len(_KEPT) > MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
    return found


#: Workflows that are kept in memory, and how many.
MOST_KEPT = 100
_KEPT: dict[tuple[str, str, int], Workflow] = {}


def execute(conn: Connection, statement: str, params: Mapping[str, Any]) -> None:
    """Run a statement of this room whose result nobody needs."""
    conn.execute(ST[statement], params)


class _blamed:  # noqa: N801 - used like a function
    """Says which node an error came from; lost leases, a missing type and the database's own errors pass."""

    def __init__(self, instance: int, node: Node) -> None:
        self._instance = instance
        self._node = node

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Wrap what is the node's fault."""
        if not isinstance(error, Exception) or isinstance(error, NodeError | NodeTypeMissingError | errors.Error):
            return
        said = str(error) if isinstance(error, ImporterError) else f"{type(error).__name__}: {error}"
        raise NodeError(self._instance, self._node.id, said) from error
