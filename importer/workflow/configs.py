"""What the built-in nodes are told: a model per type, checked when the workflow is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import pydantic

from importer import expressions
from importer.errors import ExpressionError

#: How an import node may end.
IMPORT_OUTCOMES = ("success", "partial_success", "failed", "cancelled")

#: How a task node may end.
TASK_OUTCOMES = ("succeeded", "failed", "cancelled")

#: The outcome of an approval that nobody answered in time.
TIMED_OUT = "timed_out"

#: The longest delay: a century is a mistyped unit.
LONGEST = timedelta(days=36_500)

_MODEL = pydantic.ConfigDict(extra="forbid", frozen=True)


def _template(text: str) -> str:
    try:
        expressions.check_template(text)
    except ExpressionError as error:
        raise ValueError(str(error)) from error
    return text


def _expression(text: str) -> str:
    try:
        expressions.check(text)
    except ExpressionError as error:
        raise ValueError(str(error)) from error
    return text


def _variable(name: str) -> str:
    if not name.isidentifier() or name.startswith("_"):
        raise ValueError(f"{name!r} is no name of a variable: letters, digits and underscores")
    return name


Template = Annotated[str, pydantic.AfterValidator(_template)]
Expression = Annotated[str, pydantic.AfterValidator(_expression)]
Variable = Annotated[str, pydantic.AfterValidator(_variable)]
Amount = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
Choice = Annotated[str, pydantic.Field(min_length=1, max_length=200, strict=True)]


class Nothing(pydantic.BaseModel):
    """A node that is told nothing (fork, end)."""

    model_config = _MODEL


class Delay(pydantic.BaseModel):
    """A length of time; the parts add up."""

    model_config = _MODEL

    minutes: Amount = 0
    hours: Amount = 0
    days: Amount = 0

    @property
    def length(self) -> timedelta:
        """The whole length."""
        return timedelta(minutes=self.minutes, hours=self.hours, days=self.days)

    @pydantic.model_validator(mode="after")
    def _is_some(self) -> Delay:
        if self.minutes / 1440 + self.hours / 24 + self.days > LONGEST.days:
            raise ValueError("a delay is at most a hundred years")
        return self


class Timer(Delay):
    """Waits for a length of time, or until a moment from a variable."""

    #: A moment as ISO 8601 with its zone, or a day (its beginning in UTC).
    until: Template | None = None

    @pydantic.model_validator(mode="after")
    def _one_way(self) -> Timer:
        if (self.until is None) == (not self.length):
            raise ValueError("say either minutes, hours, days (more than 0), or until")
        return self

    def due_at(self, now: datetime, variables: Mapping[str, Any]) -> datetime:
        """Return when it is due. Raises: ExpressionError."""
        if self.until is None:
            return now + self.length
        said = expressions.render(self.until, variables)
        try:
            moment = datetime.fromisoformat(said) if isinstance(said, str) else None
        except ValueError:
            moment = None
        if moment is not None and len(said) == 10:
            day = date.fromisoformat(said)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        if moment is None or moment.tzinfo is None:
            raise ExpressionError(self.until, f"{said!r} is no moment with its zone, such as 2026-03-01T08:00:00+01:00")
        return moment.astimezone(UTC)


class Approval(pydantic.BaseModel):
    """Asks people; the first answer counts."""

    model_config = _MODEL

    #: Who may answer; nobody named: anybody.
    who: tuple[Template, ...] = ()
    question: Template
    choices: Annotated[tuple[Choice, ...], pydantic.Field(min_length=1, max_length=20)] = ("approve", "reject")
    limit: Delay | None = None
    #: The variable that gets choice, by, note and at.
    into: Variable = "answer"

    @pydantic.field_validator("who", mode="before")
    @classmethod
    def _one_or_many(cls, said: object) -> object:
        return [said] if isinstance(said, str) else said

    @pydantic.field_validator("choices")
    @classmethod
    def _no_clash(cls, said: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(said)) < len(said):
            raise ValueError("a choice is named twice")
        if TIMED_OUT in said:
            raise ValueError(f"{TIMED_OUT} is what an unanswered approval ends with, and no choice")
        return said

    @pydantic.model_validator(mode="after")
    def _some_limit(self) -> Approval:
        if self.limit is not None and not self.limit.length:
            raise ValueError("limit: say minutes, hours or days, more than 0")
        return self

    def outcomes(self) -> tuple[str, ...]:
        """Say how it may end."""
        return (*self.choices, TIMED_OUT) if self.limit is not None else self.choices

    def asked(self, variables: Mapping[str, Any]) -> tuple[list[str], str]:
        """Return who is asked, and the question. Raises: ExpressionError."""
        people: list[str] = []
        for each in self.who:
            said = expressions.render(each, variables)
            people += [expressions.as_text(one) for one in (said if isinstance(said, list) else [said])]
        return people, expressions.as_text(expressions.render(self.question, variables))


class Import(pydantic.BaseModel):
    """Submits a workbook for import (or names an import job) and waits for the end of the job."""

    model_config = _MODEL

    #: A path, or a variable that names a file given at the start.
    file: Template | None = None
    #: Name of a stored form.
    form: Template | None = None
    #: An import job that exists, instead of file and form.
    job: Template | int | None = None
    sheet: Template | None = None
    force: bool = False
    replace: bool = False
    create_table: bool = False
    priority: Annotated[int, pydantic.Field(ge=0, le=3)] = 2
    #: The variable that gets job, status, total_rows, success_rows, failed_rows, skipped_rows, reason and error.
    into: Variable = "result"

    @pydantic.model_validator(mode="after")
    def _one_way(self) -> Import:
        if (self.job is None) == (self.file is None or self.form is None):
            raise ValueError("say either file and form, or job")
        return self


class Task(pydantic.BaseModel):
    """Enqueues a durable task and waits for the end of its run."""

    model_config = _MODEL

    #: Name of the task; its newest version that is known where the token comes.
    task: Template
    #: Its input, with templates at any depth.
    input: Any = None
    priority: Annotated[int, pydantic.Field(ge=0, le=3)] = 2
    #: The variable that gets run, status, result and error.
    into: Variable = "result"

    @pydantic.field_validator("input")
    @classmethod
    def _templates(cls, said: Any) -> Any:  # noqa: ANN401 - JSON
        for text in _texts(said):
            _template(text)
        return said


class Log(pydantic.BaseModel):
    """Writes a line into the history."""

    model_config = _MODEL

    message: Template


class Condition(pydantic.BaseModel):
    """Ends as true or false."""

    model_config = _MODEL

    expression: Expression


class Join(pydantic.BaseModel):
    """Waits for all tokens of its fork."""

    model_config = _MODEL

    fork: str


class Transform(pydantic.BaseModel):
    """Makes a variable of others, in this order: value, parse, pick, rename, template."""

    model_config = _MODEL

    #: What to begin with; in `template` it is the variable `value`.
    value: Any = None
    #: The value is a text of JSON.
    parse: bool = False
    #: A path within the value: `items[0].name`.
    pick: str | None = None
    #: New names for the keys of a mapping, or of each mapping of a list; keys not named stay.
    rename: dict[str, str] | None = None
    #: What the variable becomes, with templates at any depth.
    template: Any = None
    into: Variable

    @pydantic.model_validator(mode="after")
    def _does_something(self) -> Transform:
        if self.value is None and self.template is None:
            raise ValueError("say value or template")
        for text in _texts([self.value, self.template]):
            _template(text)
        if self.pick is not None:
            _template("{{" + _picked(self.pick) + "}}")
        return self

    def apply(self, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Return the value. Raises: ExpressionError."""
        value = expressions.render_all(self.value, variables)
        if self.parse:
            value = _parsed(value)
        if self.pick is not None:
            value = expressions.find(_picked(self.pick), {"value": value}, within=self.pick)
        if self.rename is not None:
            value = _renamed(value, self.rename)
        if self.template is not None:
            value = expressions.render_all(self.template, {**variables, "value": value})
        return value


def _picked(path: str) -> str:
    return f"value{path}" if path.startswith("[") else f"value.{path}"


def _parsed(value: object) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(value, str):
        raise ExpressionError("parse", "the value is no text")
    try:
        return json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ExpressionError("parse", f"the value is no JSON: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _renamed(value: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        raise ExpressionError("rename", "the value is no mapping, and no list of mappings")
    for name in names:
        if name not in value:
            raise ExpressionError("rename", f"there is no key {name}", variable=name)
    return {names.get(key, key): inner for key, inner in value.items()}


def _texts(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for inner in value.values() for text in _texts(inner)]
        case list() | tuple():
            return [text for inner in value for text in _texts(inner)]
        case _:
            return []
