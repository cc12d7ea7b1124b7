"""Figures become a table: medians and ratios by benchmark, then the marks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Final

from benchmarks.suite import BENCHMARKS, MARKS, Benchmark, Case, Mark


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run cost."""

    #: Seconds from the start of the process to its end.
    wall_s: float
    #: Processor seconds of the process and its children.
    cpu_s: float
    #: Processor seconds of the server for it; None where they cannot be seen.
    server_cpu_s: float | None
    #: Most resident memory of a process, in millions of bytes.
    peak_mb: float
    #: Checking's part of the processor seconds, where the side measures it.
    check_share: float | None = None
    #: Seconds of loading alone, where the side measures them.
    load_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All runs of one case in one benchmark, or why there are none."""

    #: Name of the benchmark.
    benchmark: str
    #: The side and its workbook.
    case: Case
    #: In the order they ran; empty when it failed or was left out.
    runs: tuple[Run, ...] = ()
    #: Why there are no runs.
    reason: str = ""

    def middle(self, quantity: str) -> float | None:
        """Return the median of a quantity over the runs, None when it is not there."""
        values = [getattr(run, quantity) for run in self.runs]
        return None if not values or None in values else float(median(values))


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything one run of the suite found."""

    #: Day it ran, ISO 8601.
    date: str
    #: Machine in general words.
    machine: str
    #: Version of the server.
    postgresql: str
    #: Runs of each case that worked.
    rounds: int
    #: Rows were divided by this; the marks hold for 1 only.
    divisor: int
    #: Versions of the peers by name.
    versions: Mapping[str, str] = field(default_factory=dict)
    #: In the order of the suite.
    outcomes: Sequence[Outcome] = ()

    def find(self, benchmark: str, case: Case) -> Outcome | None:
        """Return the outcome of a case, None when it is not among them."""
        found = (each for each in self.outcomes if each.benchmark == benchmark and each.case == case)
        return next(found, None)

    def middle(self, benchmark: str, case: Case, quantity: str) -> float | None:
        """Return the median of a case's quantity, None when it is not there."""
        outcome = self.find(benchmark, case)
        return outcome.middle(quantity) if outcome else None

    def to_json(self) -> str:
        """Return all runs, for programs."""
        return json.dumps(asdict(self), indent=1) + "\n"

    def to_markdown(self) -> str:
        """Return the tables, for people."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines = [
            "# Benchmarks",
            "",
            f"{self.date}; {self.machine}; PostgreSQL {self.postgresql}.",
            f"Medians of {self.rounds} whole processes each, which took turns.",
            f"Peers: {versions}." if versions else "",
            "",
        ]
        if self.divisor != 1:
            lines += [f"**A quick run: every workbook has only 1/{self.divisor} of its rows.**", ""]
        for benchmark in BENCHMARKS.values():
            lines += self._benchmark_lines(benchmark)
        if self.divisor == 1:
            lines += self._mark_lines()
        return "\n".join(lines).rstrip() + "\n"

    def _benchmark_lines(self, benchmark: Benchmark) -> list[str]:
        outcomes = [each for each in self.outcomes if each.benchmark == benchmark.name]
        if not outcomes:
            return []
        several = len({each.case.workbook for each in outcomes}) > 1
        base = benchmark.baseline
        lines = [f"## {benchmark.title}", "", *_HEAD]
        for outcome in outcomes:
            name = f"{outcome.case.side}, {outcome.case.workbook}" if several else outcome.case.side
            if not outcome.runs:
                lines.append(f"| {name} | {outcome.reason.replace('|', '/')} | | | | | | |")
                continue
            walls = [run.wall_s for run in outcome.runs]
            cells = [
                name,
                _figure(outcome.middle("wall_s")),
                f"{min(walls):.2f}-{max(walls):.2f}",
                _figure(_ratio(outcome.middle("wall_s"), self.middle(benchmark.name, base, "wall_s"))),
                _figure(outcome.middle("cpu_s")),
                _figure(_ratio(outcome.middle("cpu_s"), self.middle(benchmark.name, base, "cpu_s"))),
                _figure(outcome.middle("server_cpu_s")),
                f"{outcome.middle('peak_mb'):.0f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        return [*lines, ""]

    def _mark_lines(self) -> list[str]:
        lines = ["## Marks", "", "| measure | pure | must | scanner | must | reach for |", "|---|--:|--:|--:|--:|--:|"]
        for mark in MARKS:
            pure, scanner = (self.marked(mark, scanner=scanner) for scanner in (False, True))
            if pure is None and scanner is None:
                continue
            limits = (_limit(mark, pure, mark.pure_must), _limit(mark, scanner, mark.scanner_must))
            lines.append(f"| {mark.name} | {limits[0]} | {limits[1]} | {_amount(mark, mark.reach)} |")
        return [*lines, ""] if len(lines) > _MARK_HEAD else []

    def marked(self, mark: Mark, *, scanner: bool) -> float | None:
        """Return what the mark measures, None when a side of it did not run."""
        suffix = "+scanner" if scanner else ""
        measured = self.middle(mark.benchmark, Case(mark.case.side + suffix, mark.case.workbook), mark.quantity)
        if mark.over is None:
            return measured
        under = Case(mark.over.side + (suffix if mark.over_ours else ""), mark.over.workbook)
        return _ratio(measured, self.middle(mark.benchmark, under, mark.quantity))


_MARK_HEAD: Final = 4
_HEAD: Final = (
    "| side | seconds | from-to | ratio | CPU s | ratio | server CPU s | peak MB |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
)


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _amount(mark: Mark, value: float) -> str:
    if mark.quantity == "check_share":
        return f"{value:.0%}"
    return f"{value:.0f}" if mark.over is None else f"{value:.2f}"


def _limit(mark: Mark, value: float | None, must: float) -> str:
    """Return two cells: what was measured (bold when it misses) and what it must be."""
    if value is None:
        return f"| {_amount(mark, must)}"
    shown = _amount(mark, value)
    return f"{shown if value <= must else f'**{shown}**'} | {_amount(mark, must)}"
