"""Waiting for a condition with a deadline, never for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], *, deadline_s: float = 30.0, every_s: float = 0.02) -> T:
    """Ask until the answer is true and return it; fail when the deadline passes first."""
    end = time.monotonic() + deadline_s
    pause = threading.Event()
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {condition}")
        pause.wait(every_s)
