"""The types of nodes: what each is told, how it may end, and what it does when a token comes.

A type is *instant* (it ends in the transaction that brings the token) or it *waits* (a timer, a person, an import moves
the token on). `timer approval import task transform log condition fork join end` are built in; `register` adds instant
ones:

```python
class Notify(pydantic.BaseModel):
    to: str
    text: str

@importer.node_type("notify", config=Notify)
def notify(config: Notify, context: importer.NodeContext) -> dict[str, object] | None:
    ...                                   # config's texts are filled; what is returned joins the variables
```

A function runs inside the transaction of its firing: it may run again after a crash, so an effect outside of the
database may happen twice. It is to be quick; what takes long, or must happen once, is a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pydantic

from importer import expressions
from importer.errors import ExpressionError, NodeTypeMissingError
from importer.workflow import configs

Config = TypeVar("Config", bound=pydantic.BaseModel)

#: What the outcome of a node is called when it has only one.
DONE = "done"


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """What the function of a node is told besides its config."""

    #: The variables of the instance; changing them changes nothing.
    variables: Mapping[str, Any]
    #: Number of the instance, id of the node.
    instance: int
    node: str
    #: The same whenever this very step runs again: a name for what it does outside.
    key: str


@dataclass(frozen=True, kw_only=True)
class NodeType:
    """A type of node."""

    name: str
    config: type[pydantic.BaseModel]
    #: How a node of this config may end.
    outcomes: Callable[[Any], tuple[str, ...]]
    #: What it does when a token comes, for instant types; returns new variables, or (outcome, new variables).
    run: Callable[[Any, NodeContext], Any] | None = None
    #: What it waits for: a timer, a person, an import, a task, other tokens (join).
    waits: Literal["timer", "approval", "import", "task", "join"] | None = None


def _one(_config: object) -> tuple[str, ...]:
    return (DONE,)


def _log(config: configs.Log, context: NodeContext) -> tuple[str, dict[str, Any]]:
    message = expressions.render(config.message, context.variables)
    return DONE, {"message": message if isinstance(message, str) else expressions.as_text(message)}


def _condition(config: configs.Condition, context: NodeContext) -> tuple[str, dict[str, Any]]:
    return ("true" if expressions.judge(config.expression, context.variables) else "false"), {}


def _transform(config: configs.Transform, context: NodeContext) -> tuple[str, dict[str, Any]]:
    return DONE, {config.into: config.apply(context.variables)}


def _nothing(_config: object, _context: NodeContext) -> tuple[str, dict[str, Any]]:
    return DONE, {}


_BUILT_IN = (
    NodeType(name="timer", config=configs.Timer, outcomes=_one, waits="timer"),
    NodeType(name="approval", config=configs.Approval, outcomes=configs.Approval.outcomes, waits="approval"),
    NodeType(name="import", config=configs.Import, outcomes=lambda _config: configs.IMPORT_OUTCOMES, waits="import"),
    NodeType(name="task", config=configs.Task, outcomes=lambda _config: configs.TASK_OUTCOMES, waits="task"),
    NodeType(name="transform", config=configs.Transform, outcomes=_one, run=_transform),
    NodeType(name="log", config=configs.Log, outcomes=_one, run=_log),
    NodeType(name="condition", config=configs.Condition, outcomes=lambda _config: ("true", "false"), run=_condition),
    NodeType(name="fork", config=configs.Nothing, outcomes=_one, run=_nothing),
    NodeType(name="join", config=configs.Join, outcomes=_one, waits="join"),
    NodeType(name="end", config=configs.Nothing, outcomes=lambda _config: (), run=_nothing),
)

_TYPES: dict[str, NodeType] = {each.name: each for each in _BUILT_IN}

_CHANGES: list[str] = []

#: Types whose names users cannot take.
BUILT_IN = frozenset(_TYPES)


def register(
    name: str, *, config: type[Config], outcomes: tuple[str, ...] = (DONE,)
) -> Callable[[Callable[[Config, NodeContext], Any]], Callable[[Config, NodeContext], Any]]:
    """Add a type of node, known in this process: a function of its config and a `NodeContext`.

    It returns the variables to set (a mapping, or None), or with several `outcomes` a pair of outcome and variables.
    Texts of the config are templates, filled before the function sees them. The same name again replaces the type.

    Raises `ValueError` on the name of a built-in type, or no outcome.
    """
    if name in BUILT_IN or not name.isidentifier():
        raise ValueError(f"{name!r} is built in, or no plain word")
    if not outcomes:
        raise ValueError("a type of node ends somehow: outcomes must not be empty")

    def add(function: Callable[[Config, NodeContext], Any]) -> Callable[[Config, NodeContext], Any]:
        def run(written: Config, context: NodeContext) -> tuple[str, dict[str, Any]]:
            filled = config.model_validate(expressions.render_all(written.model_dump(mode="json"), context.variables))
            said = function(filled, context)
            outcome, values = said if isinstance(said, tuple) else (outcomes[0], said)
            if outcome not in outcomes:
                raise ValueError(f"the outcome {outcome!r} is none of {', '.join(outcomes)}")
            return outcome, dict(values or {})

        _TYPES[name] = NodeType(name=name, config=config, outcomes=lambda _config: outcomes, run=run)
        _CHANGES.append(name)
        return function

    return add


def forget(name: str) -> None:
    """Take a user's type away again."""
    if name not in BUILT_IN:
        _TYPES.pop(name, None)
        _CHANGES.append(name)


def changes() -> int:
    """Count how often types were added or taken away: what was read with another count may know other types."""
    return len(_CHANGES)


def known() -> tuple[str, ...]:
    """Name the types that are known here."""
    return tuple(_TYPES)


def node_type(name: str, *, node: str = "") -> NodeType:
    """Return a type. Raises: NodeTypeMissingError."""
    try:
        return _TYPES[name]
    except KeyError:
        raise NodeTypeMissingError(node, name) from None


def read_config(kind: NodeType, config: object) -> tuple[pydantic.BaseModel | None, list[str]]:
    """Read the config of a node: the model, and what is wrong with it in words (`field: what`)."""
    try:
        return kind.config.model_validate(config), []
    except pydantic.ValidationError as error:
        problems = []
        for each in error.errors(include_url=False, include_context=False):
            where = ".".join(map(str, each["loc"]))
            said = each["msg"].removeprefix("Value error, ")
            problems.append(f"{where}: {said}" if where else said)
        return None, problems
    except ExpressionError as error:
        return None, [str(error)]
