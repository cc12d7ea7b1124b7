"""What a task is: a function with a name, a version, a model of its input, and how it is tried again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from importer.errors import TaskInputError, TaskNotFoundError
from importer.settings import Rhythm

#: What a task runs: it takes a `Context`.
Function: TypeAlias = Callable[[Any], Any]

#: The longest input, result or payload, as JSON.
LONGEST_JSON = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How a task is tried again after an error or a crash."""

    #: Attempts in all, the first included.
    attempts: int = 5
    #: Delay after the first error.
    first: timedelta = timedelta(seconds=30)
    #: The longest delay.
    longest: timedelta = timedelta(minutes=5)
    #: By what the delay grows with each error.
    factor: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what is no policy."""
        if self.attempts < 1 or self.factor < 1 or not timedelta(0) <= self.first <= self.longest:
            raise ValueError("a retry policy has at least one attempt, a factor of at least 1, and first <= longest")

    def delay(self, attempt: int) -> timedelta:
        """Give the delay after the error of this attempt (from 1)."""
        grown_s = self.first.total_seconds() * self.factor ** min(attempt - 1, 60)
        return timedelta(seconds=min(grown_s, self.longest.total_seconds()))


@dataclass(frozen=True, kw_only=True)
class Task:
    """A durable function: `task(ctx)` runs it, `enqueue(task, input)` lets a worker run it."""

    #: Within a version a task keeps its name and what its steps mean.
    name: str
    #: New runs take the newest; a run keeps the version it was enqueued with.
    version: int
    function: Function = field(repr=False)
    #: Anything pydantic can validate; runs whose input does not fit are refused when they are enqueued.
    input: Any = field(default=Any, repr=False)
    #: None: attempts and first delay are those of the settings.
    retry: Retry | None = None
    #: `together`: ends of tiny runs are written many at once, so that a crash may repeat at most the last such batch;
    #: `each`: each is written by itself.
    finish: Literal["together", "each"] = "together"
    adapter: TypeAdapter[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a name or version that cannot be stored."""
        if not self.name or self.version < 1:
            raise ValueError(f"a task has a name and a version from 1 on, not {self.name!r} and {self.version!r}")
        object.__setattr__(self, "adapter", TypeAdapter(self.input))

    def policy(self, rhythm: Rhythm) -> Retry:
        """Give its retry policy, or the one of the settings."""
        if self.retry is not None:
            return self.retry
        longest = max(Retry.longest, rhythm.retry_delay)
        return Retry(attempts=rhythm.max_attempts, first=rhythm.retry_delay, longest=longest)

    def __call__(self, ctx: Any) -> Any:  # noqa: ANN401 - a `Context`; what a task returns is its own business
        """Run the function itself."""
        return self.function(ctx)

    def input_json(self, value: object) -> str:
        """Validate an input and give it as JSON.

        Raises:
            TaskInputError: it is not what the task asks for.
        """
        try:
            text = to_json(self.adapter.validate_python(value), inf_nan_mode="strings").decode()
        except (ValidationError, PydanticSerializationError) as error:
            raise TaskInputError(f"task {self.name} version {self.version}: {_reason(error)}") from error
        return storable_json(text, f"the input of task {self.name}")

    def read_input(self, text: str) -> Any:  # noqa: ANN401 - the type is the model's
        """Read an input back from its JSON.

        Raises:
            TaskInputError: it was enqueued for a model of another shape.
        """
        try:
            return self.adapter.validate_json(text)
        except ValidationError as error:
            raise TaskInputError(f"task {self.name} version {self.version}: {_reason(error)}") from error


#: The tasks of this process by name and version. Decorators have nowhere else to put what they find; a worker that is
#: handed its tasks does not look here.
_REGISTERED: dict[tuple[str, int], Task] = {}


def task(
    *,
    name: str,
    version: int = 1,
    input: Any = Any,  # noqa: A002, ANN401 - the word of the front door; anything pydantic can validate
    retry: Retry | None = None,
    finish: Literal["together", "each"] = "together",
) -> Callable[[Function], Task]:
    """Make a function a durable task that workers of this process can run.

        @im.task(name="notify", version=2, input=Notice, retry=im.Retry(attempts=3))
        def notify(ctx):
            receipt = ctx.once("send", lambda operation: mail(ctx.input, operation))
            return {"receipt": receipt}

    Raises:
        ValueError: another function has this name and version already.
    """

    def register(function: Function) -> Task:
        made = Task(name=name, version=version, function=function, input=input, retry=retry, finish=finish)
        known = _REGISTERED.get((name, version))
        if known is not None and _place(known.function) != _place(function):
            raise ValueError(f"task {name} version {version} is another function already: {_place(known.function)}")
        _REGISTERED[name, version] = made
        return made

    return register


def registered() -> tuple[Task, ...]:
    """Give the tasks of this process, by name and version."""
    return tuple(_REGISTERED[key] for key in sorted(_REGISTERED))


def newest(name: str, tasks: Iterable[Task] | None = None) -> Task:
    """Give the newest version of a task that is known here.

    Raises:
        TaskNotFoundError: none has this name; the modules that define tasks must be imported first.
    """
    found = [each for each in (registered() if tasks is None else tasks) if each.name == name]
    if not found:
        names = ", ".join(sorted({each.name for each in registered()})) or "none"
        raise TaskNotFoundError(f"no task {name!r} is known here (known: {names}); import the module that defines it")
    return max(found, key=lambda each: each.version)


def as_json(value: object, what: str) -> str | None:
    """Give what a task or a step returned as JSON; null for None.

    Raises:
        TaskInputError: it has no form in JSON, or is too long.
    """
    if value is None:
        return None
    try:
        return storable_json(to_json(value, inf_nan_mode="strings").decode(), what)
    except PydanticSerializationError as error:
        raise TaskInputError(f"{what} cannot be kept as JSON: {error}") from error


def from_json(text: str | None) -> Any:  # noqa: ANN401 - a value of JSON
    """Read JSON; None for null."""
    return None if text is None else json.loads(text)


def storable_json(text: str, what: str) -> str:
    """Refuse JSON that PostgreSQL cannot keep or that is too long. Raises: TaskInputError."""
    if len(text) > LONGEST_JSON:
        raise TaskInputError(f"{what} is {len(text):,} characters of JSON; at most {LONGEST_JSON:,} are kept")
    if "\\u0000" in text:
        raise TaskInputError(f"{what} has the character NUL, which PostgreSQL cannot keep")
    return text


def differences(was: object, now: object) -> list[str]:
    """Say field by field how two inputs differ."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        names = list(dict.fromkeys([*was, *now]))
        return [
            f"{name} was {was.get(name, 'absent')!r}, is now {now.get(name, 'absent')!r}"
            for name in names
            if was.get(name, was) != now.get(name, now)
        ]
    return [] if was == now else [f"it was {was!r}, is now {now!r}"]


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'input'}: {each['msg']}" for each in found)


def _place(function: Function) -> str:
    return f"{function.__module__}.{function.__qualname__}"
