"""What the demo prints: acts, lines, and a bar that moves where somebody watches."""

from __future__ import annotations

import sys
from typing import TextIO

from importer.display import number

_BAR_WIDTH = 40
_NAME_WIDTH = 22


class Screen:
    """Prints to a stream; bars move in a terminal and are printed once, at their end, anywhere else."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stdout if stream is None else stream
        self._moves = self.stream.isatty()
        self._acts = 0

    def act(self, title: str) -> None:
        """Begin the next act."""
        self._acts += 1
        self.say(f"\n{self._acts}. {title}\n" if self._acts > 1 else f"{self._acts}. {title}\n")

    def say(self, line: str = "") -> None:
        """Print a line."""
        print(line, file=self.stream, flush=True)

    def point(self, line: str) -> None:
        """Print a line that belongs to the act."""
        self.say(f"   {line}")

    def fact(self, name: str, value: str, remark: str = "") -> None:
        """Print a name and its value, values under each other to the right."""
        self.point(f"{name:<{_NAME_WIDTH}}{value:>14}{'  ' if remark else ''}{remark}".rstrip())

    def move(self, rows: int, total: int) -> None:
        """Move the bar, where there is one to move."""
        if self._moves:
            print(f"\r   {_bar(rows, total)}", end="", file=self.stream, flush=True)

    def halt(self, rows: int, total: int, remark: str) -> None:
        """Leave the bar where it got to, and say why."""
        back = "\r" if self._moves else ""
        print(f"{back}   {_bar(rows, total)}  {remark}", file=self.stream, flush=True)


def _bar(rows: int, total: int) -> str:
    done = _BAR_WIDTH * rows // total if total else _BAR_WIDTH
    return f"{'█' * done}{'░' * (_BAR_WIDTH - done)} {number(rows):>7} of {number(total)} rows"
