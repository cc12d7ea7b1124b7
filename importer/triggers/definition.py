"""What a trigger is: when it looks, what it asks, what it starts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pydantic
from cronsim import CronSim, CronSimError

from importer import expressions
from importer.errors import ExpressionError, TriggerError

Type = Literal["schedule", "api_poll", "completed", "event", "file"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _interval(text: object) -> dt.timedelta:
    """Read `15m`, `2h`, `1d` or a number of seconds."""
    if isinstance(text, dt.timedelta):
        found = text
    elif isinstance(text, int | float) and not isinstance(text, bool):
        found = dt.timedelta(seconds=text)
    elif isinstance(text, str) and (match := re.fullmatch(r"\s*(\d{1,6})\s*([smhd])\s*", text)):
        found = dt.timedelta(**{_UNITS[match[2]]: int(match[1])})
    else:
        raise ValueError("write a number and a unit: 30s, 15m, 2h, 1d")
    if found < dt.timedelta(seconds=1):
        raise ValueError("it is shorter than a second")
    return found


Interval = Annotated[
    dt.timedelta,
    pydantic.BeforeValidator(_interval),
    pydantic.PlainSerializer(lambda value: f"{int(value.total_seconds())}s", return_type=str),
]


class _Config(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Schedule(_Config):
    """Every so often, or by cron in a time zone."""

    every: Interval | None = None
    cron: str | None = None
    zone: str = "UTC"
    #: After an outage: fire nothing that was missed, or once.
    catch_up: Literal["none", "one"] = "none"
    #: How late a slot may be and still count as in time.
    grace: Interval = dt.timedelta(minutes=1)

    @pydantic.model_validator(mode="after")
    def _one_of_both(self) -> Schedule:
        if (self.every is None) == (self.cron is None):
            raise ValueError("a schedule has either `every` or `cron`")
        try:
            zone = ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{self.zone!r} is no time zone; write a name like Europe/Berlin") from None
        if self.cron is not None:
            try:
                CronSim(self.cron, dt.datetime(2026, 1, 1, tzinfo=zone))
            except CronSimError as error:
                raise ValueError(f"{self.cron!r} is no cron expression: {error}") from None
        return self


class ApiPoll(_Config):
    """An address that is asked again and again; fires when what it gives has changed."""

    url: str = pydantic.Field(pattern=r"^https?://[^\s@]+$")
    #: A value may name secrets of the environment: `Bearer {{secret.API_TOKEN}}`.
    headers: dict[str, str] = {}
    every: Interval = dt.timedelta(minutes=5)
    #: The part whose change counts, by its path in the body: `body.items`.
    pick: str | None = None
    #: Fires at every answer, changed or not.
    always: bool = False
    timeout: Interval = dt.timedelta(seconds=30)
    most_bytes: int = pydantic.Field(default=1_000_000, gt=0, le=10_000_000)


class Completed(_Config):
    """The end of a workflow, an import or a task."""

    kind: Literal["workflow", "import", "task"]
    #: Of which: the workflow, the form, the task.
    name: str
    #: With which status; empty: any.
    status: list[str] = []


class Event(_Config):
    """Something that is said by `fire`."""

    event: str


class File(_Config):
    """New workbooks of the inbox, which become imports; fires for each."""

    every: Interval = dt.timedelta(seconds=30)
    #: Only of these forms; empty: of all.
    forms: list[str] = []


class Target(_Config):
    """What a firing starts; nothing when it is only to be counted."""

    workflow: str | None = None
    task: str | None = None
    form: str | None = None
    #: Of a form: the workbook, by its name in the inbox or its hash in the store; a template.
    file: str | None = None
    #: Variables or input, of which each text is a template; None: what the trigger saw.
    input: Any = None
    priority: int = pydantic.Field(default=2, ge=0, le=3)

    @pydantic.model_validator(mode="after")
    def _one(self) -> Target:
        if sum(each is not None for each in (self.workflow, self.task, self.form)) != 1:
            raise ValueError("a target is one of workflow, task, form")
        if (self.form is None) != (self.file is None):
            raise ValueError("a form needs a file, and only a form")
        return self

    @property
    def started(self) -> tuple[str, str]:
        """Kind and name of what it starts, as `Completed` names its end."""
        if self.workflow is not None:
            return "workflow", self.workflow
        return ("task", self.task) if self.task is not None else ("import", str(self.form))


CONFIGS: Mapping[str, type[_Config]] = {
    "schedule": Schedule,
    "api_poll": ApiPoll,
    "completed": Completed,
    "event": Event,
    "file": File,
}


class Definition(pydantic.BaseModel):
    """A trigger as it is written: in Python, in a YAML file, on the command line."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    name: str = pydantic.Field(min_length=1)
    type: Type
    config: dict[str, Any]
    condition: str | None = None
    target: Target | None = None
    #: Not fired for so long is an alert.
    expected_within: Interval | None = None
    #: Errors in a row after which it is switched off.
    max_attempts: int = pydantic.Field(default=5, gt=0)

    @property
    def checked(self) -> _Config:
        """The config of its type."""
        return CONFIGS[self.type].model_validate(self.config)


def read(written: object) -> Definition:
    """Read a trigger.

    Raises:
        TriggerError: it is no valid trigger; all problems at once.
    """
    name = str(written.get("name", "")) if isinstance(written, Mapping) else ""
    try:
        found = Definition.model_validate(written)
        config = found.checked
        if found.condition is not None:
            expressions.check(found.condition)
    except pydantic.ValidationError as error:
        said = error.errors(include_url=False, include_context=False, include_input=False)
        raise TriggerError(
            name, "; ".join(f"{'.'.join(map(str, each['loc'])) or 'trigger'}: {each['msg']}" for each in said)
        ) from error
    except ExpressionError as error:
        raise TriggerError(name, f"condition: {error}") from error
    return found.model_copy(update={"config": config.model_dump(mode="json", exclude_defaults=True)})
