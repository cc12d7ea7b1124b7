"""The node that makes a variable of others: parse, pick, rename, template; and the moments of a timer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from importer.errors import ExpressionError
from importer.workflow.configs import Timer, Transform

BODY = '{"items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]}'
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"value": "{{body}}", "parse": True, "pick": "items[1].name"}, "b"),
        ({"value": "{{body}}", "parse": True, "pick": "items", "rename": {"n": "count"}},
         [{"name": "a", "count": 1}, {"name": "b", "count": 2}]),
        ({"value": "{{list}}", "pick": "[0]"}, 1),
        ({"template": {"text": "{{who}} has {{list}}", "all": ["{{list}}"]}}, {"text": "Ada has [1]", "all": [[1]]}),
        ({"value": "{{body}}", "parse": True, "pick": "items[0]", "template": "{{value.name}} of {{who}}"}, "a of Ada"),
        ({"value": 5}, 5),
    ],
)  # fmt: skip
def test_transform(config: dict[str, Any], value: object) -> None:
    """In this order: value, parse, pick, rename, template."""
    made = Transform.model_validate({**config, "into": "x"}).apply({"body": BODY, "who": "Ada", "list": [1]})

    assert made == value


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"value": "{{absent}}"}, "there is no variable absent"),
        ({"value": "{", "parse": True}, "the value is no JSON"),
        ({"value": "[NaN]", "parse": True}, "NaN is no number of JSON"),
        ({"value": "[" * 100_000, "parse": True}, "the value is no JSON"),
        ({"value": 1, "parse": True}, "the value is no text"),
        ({"value": "{{body}}", "parse": True, "pick": "items[7]"}, r"there is no variable value.items\[7\]"),
        ({"value": {"a": 1}, "rename": {"b": "c"}}, "there is no key b"),
        ({"value": 1, "rename": {"b": "c"}}, "the value is no mapping"),
    ],
)
def test_a_transform_that_cannot_be(config: dict[str, Any], said: str) -> None:
    """Nothing is guessed: what is missing or misfits is said."""
    with pytest.raises(ExpressionError, match=said):
        Transform.model_validate({**config, "into": "x"}).apply({"body": BODY})


@pytest.mark.parametrize(
    ("config", "due"),
    [
        ({"minutes": 90, "hours": 1, "days": 1}, datetime(2026, 3, 2, 14, 30, tzinfo=UTC)),
        ({"until": "2026-03-05T08:00:00+01:00"}, datetime(2026, 3, 5, 7, tzinfo=UTC)),
        ({"until": "{{when}}"}, datetime(2026, 3, 9, tzinfo=UTC)),
        ({"until": "2020-01-01T00:00:00Z"}, datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_when_a_timer_is_due(config: dict[str, Any], due: datetime) -> None:
    """After a delay, or at a moment with its zone; a day begins in UTC."""
    assert Timer.model_validate(config).due_at(NOW, {"when": "2026-03-09"}) == due


@pytest.mark.parametrize("until", ["2026-03-05T08:00:00", "tomorrow", "{{n}}", "2026-13-01"])
def test_a_moment_that_is_none(until: str) -> None:
    """No zone is guessed."""
    with pytest.raises(ExpressionError, match="is no moment with its zone"):
        Timer.model_validate({"until": until}).due_at(NOW, {"n": 5})
