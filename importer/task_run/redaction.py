"""What a task logs, without secrets: by the names of fields, and in addresses."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

#: What stands in the place of a secret.
HIDDEN = "***"

_WORDS = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization|cookie"
    r"|signature|sig|bearer|session[_-]?id"
)
_SECRET_NAME = re.compile(rf"(?:^|[^a-z])(?:{_WORDS})(?:$|[^a-z])|(?:password|secret|token|apikey)$", re.IGNORECASE)
_USER_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+@")
_IN_QUERY = re.compile(r"([?&;][\w.%-]*?=)([^&;#\s\"']+)")
_PAIR = re.compile(
    rf"((?:\b|_)(?:{_WORDS})[\"']?\s*[:=]\s*)((?:bearer|basic)\s+)?(\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)", re.IGNORECASE
)


def redacted(value: Any) -> Any:  # noqa: ANN401 - whatever is logged
    """Give a value with its secrets hidden: fields named like one, and parts of addresses in texts.

    >>> redacted({"user": "ann", "api_key": "k1", "url": "https://ann:pw@example.com/a?sig=9"})
    {'user': 'ann', 'api_key': '***', 'url': 'https://***@example.com/a?sig=***'}
    """
    match value:
        case str():
            return redacted_text(value)
        case Mapping():
            return {key: HIDDEN if is_secret(str(key)) else redacted(inner) for key, inner in value.items()}
        case list() | tuple():
            return type(value)(map(redacted, value)) if type(value) in (list, tuple) else [redacted(v) for v in value]
        case int() | float() | None:
            return value
        case _ if hasattr(value, "model_dump"):
            return redacted(value.model_dump())
        case _:
            return redacted_text(str(value))


def redacted_text(text: str) -> str:
    """Hide users, passwords and query values of addresses in a text, and `password=...`."""
    text = _USER_IN_ADDRESS.sub(f"{HIDDEN}@", text)
    text = _IN_QUERY.sub(lambda m: m[0] if not is_secret(m[1][1:-1]) else m[1] + HIDDEN, text)
    return _PAIR.sub(lambda m: m[1] + HIDDEN, text)


def is_secret(name: str) -> bool:
    """Tell whether a field of this name holds a secret.

    >>> [is_secret(name) for name in ("X-Api-Key", "dbPassword", "passenger", "sigma")]
    [True, True, False, False]
    """
    return _SECRET_NAME.search(name) is not None


class TaskLog(logging.LoggerAdapter[logging.Logger]):
    """The log of a run: each line names the run, and secrets are hidden in it; a traceback is left as it is."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:  # noqa: ANN401
        """Name the run and hide secrets in the text and the extra fields."""
        extra = {**(self.extra or {}), **redacted(dict(kwargs.get("extra") or {}))}
        return f"task run {extra['run_id']}: {redacted_text(str(msg))}", {**kwargs, "extra": extra}

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - as the base
        """Log a line; its arguments are put in with their secrets hidden, then the whole line is looked through."""
        if not self.isEnabledFor(level):
            return
        hidden: Any = redacted(args[0]) if len(args) == 1 and isinstance(args[0], Mapping) else redacted(args)
        text, named = self.process(str(msg) % hidden if args else msg, kwargs)
        self.logger.log(level, "%s", text, **named)
