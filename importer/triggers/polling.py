"""Asking an address: what changed since the last time, and who asked to be left alone."""

from __future__ import annotations

import datetime as dt
import email.utils
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer import expressions
from importer.errors import RequestError
from importer.http_request import Answer, request, shown
from importer.settings import Settings, secret
from importer.triggers.definition import ApiPoll

#: What a host that asks to be left alone and does not say for how long gets.
PARKED = dt.timedelta(minutes=1)
#: The longest that a host can ask for.
LONGEST_PARKED = dt.timedelta(days=1)

_SECRET = re.compile(r"\{\{\s*secret\.(\w+)\s*\}\}")


class HostParkedError(RequestError):
    """The host asked to be left alone (429, 503); no attempt is counted."""

    def __init__(self, host: str, delay: dt.timedelta) -> None:
        super().__init__(host)
        self.host = host
        self.delay = delay


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a poll saw."""

    #: What is remembered until the next.
    state: Mapping[str, Any]
    #: status, headers, body, hash, previous_hash; null when nothing is to fire.
    variables: Mapping[str, Any] | None


def host_of(poll: ApiPoll) -> str:
    """Name the host of an address, with its port."""
    return shown(poll.url).split("/")[2]


def ask(poll: ApiPoll, state: Mapping[str, Any], *, settings: Settings) -> Seen:
    """Ask an address once.

    Raises:
        HostParkedError: 429 or 503.
        RequestError: no answer, or one that is an error.
        RequestRefusedError: the address may not be asked.
        SettingsError: a secret is not set.
    """
    headers = {name: _SECRET.sub(lambda m: secret(m[1]), value) for name, value in poll.headers.items()}
    if not poll.always:
        if "etag" in state:
            headers["If-None-Match"] = state["etag"]
        if "last_modified" in state:
            headers["If-Modified-Since"] = state["last_modified"]
    with request(
        poll.url, headers=headers, within=poll.timeout, most_bytes=poll.most_bytes, private=settings.private_addresses
    ) as answer:
        if answer.status in {429, 503}:
            raise HostParkedError(host_of(poll), _retry_after(answer))
        if answer.status == 304:
            return Seen(state=state, variables=None)
        if answer.status >= 400:
            raise RequestError(f"{shown(poll.url)}: answered {answer.status}")
        body = answer.body()
    return _judged(poll, state, answer, body)


def _judged(poll: ApiPoll, state: Mapping[str, Any], answer: Answer, body: bytes) -> Seen:
    value = _value(answer, body)
    found = hashlib.sha256(body if poll.pick is None else _picked(poll.pick, value)).hexdigest()
    previous = state.get("hash")
    kept: dict[str, Any] = {"hash": found, "changes": int(state.get("changes", 0)) + (found != previous)}
    for name, header in (("etag", "etag"), ("last_modified", "last-modified")):
        if header in answer.headers:
            kept[name] = answer.headers[header]
    if found == previous and not poll.always:
        return Seen(state=kept, variables=None)
    headers = {name: text for name, text in answer.headers.items() if name != "set-cookie"}
    variables = {
        "status": answer.status, "headers": headers, "body": value, "hash": found, "previous_hash": previous,
    }  # fmt: skip
    return Seen(state=kept, variables=variables)


def slot_of(poll: ApiPoll, seen: Seen, now: dt.datetime) -> str:
    """Name the slot: the change by its number and hash, or with `always` the poll by its moment."""
    if poll.always:
        return f"poll of {now.isoformat()}"
    return f"change {seen.state['changes']}: {seen.state['hash']}"


def _value(answer: Answer, body: bytes) -> Any:  # noqa: ANN401 - JSON, or a text
    text = body.decode(errors="replace").replace("\0", "\ufffd")
    if "json" in answer.headers.get("content-type", ""):
        try:
            return json.loads(text)
        except ValueError as error:
            raise RequestError(f"{shown(answer.url)}: the answer calls itself JSON and is none") from error
    return text


def _picked(path: str, value: object) -> bytes:
    part = expressions.find(path, {"body": value})
    return json.dumps(part, sort_keys=True, ensure_ascii=False).encode()


def _retry_after(answer: Answer) -> dt.timedelta:
    """Read Retry-After: seconds, or a date (RFC 9110, section 10.2.3), which is compared with the server's own date."""
    said = answer.headers.get("retry-after", "").strip()
    if said.isdigit():
        delay = dt.timedelta(seconds=min(int(said), int(LONGEST_PARKED.total_seconds())))
    else:
        try:
            until = email.utils.parsedate_to_datetime(said)
            now = email.utils.parsedate_to_datetime(answer.headers.get("date", ""))
            delay = until - now
        except (ValueError, TypeError):
            delay = PARKED
    return min(max(delay, dt.timedelta(seconds=1)), LONGEST_PARKED)
