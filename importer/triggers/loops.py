"""Triggers on ends that would start each other without end are refused before they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from importer.errors import TriggerError
from importer.triggers.definition import CONFIGS, Completed, Definition, Target
from importer.triggers.record import Trigger

#: What ends or is started: its kind and name.
End = tuple[str, str]


def refuse_loop(new: Definition, others: Sequence[Trigger]) -> None:
    """Refuse a trigger on an end whose target leads back to that end, by the targets of other triggers on ends.

    Whether conditions would break the loop is not asked.

    Raises:
        TriggerError: it names the way round.
    """
    if new.type != "completed" or new.target is None:
        return
    source = _source(new.config)
    ways: dict[End, list[End]] = {}
    for start, end in _ways(each for each in others if each.name != new.name):
        ways.setdefault(start, []).append(end)
    path = {new.target.started: [source, new.target.started]}
    ahead = list(path)
    while ahead:
        at = ahead.pop()
        if at == source:
            said = " -> ".join(f"{kind} {name}" for kind, name in path[at])
            raise TriggerError(new.name, f"it would start itself without end: {said}")
        for onward in ways.get(at, []):
            if onward not in path:
                path[onward] = [*path[at], onward]
                ahead.append(onward)


def _ways(others: Iterator[Trigger]) -> Iterator[tuple[End, End]]:
    for each in others:
        if each.target is not None:
            yield _source(each.config), Target.model_validate(each.target).started


def _source(config: object) -> End:
    read = CONFIGS["completed"].model_validate(config)
    assert isinstance(read, Completed)  # the config of its type
    return read.kind, read.name
