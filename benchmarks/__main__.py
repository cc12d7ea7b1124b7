"""``python -m benchmarks``: run the suite and write its table."""

import argparse
import compileall
import datetime as dt
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.machine import machine_words
from benchmarks.peers import ROOT, peer_versions, peers_python
from benchmarks.process import Cost, SideFailedError, run_process
from benchmarks.recipes import RECIPES
from benchmarks.report import Outcome, Results, Run
from benchmarks.server import Server, open_server
from benchmarks.suite import BENCHMARKS, SIDES, Benchmark, Case
from benchmarks.workbooks import workbook_for

_FOLDER: Final = ROOT / ".tmp" / "bench"
_QUICK_DIVISOR: Final = 10


class Suite:
    """One run of the suite: the server, the interpreters and the options that all runs share."""

    def __init__(self, options: argparse.Namespace, server: Server, peers: str) -> None:
        self._options = options
        self._server = server
        self._peers = peers
        self._divisor = _QUICK_DIVISOR if options.quick else 1
        self._scanner = scanner_is_built()

    def results(self, benchmarks: list[Benchmark]) -> Results:
        """Run the benchmarks and return what they found."""
        if any(SIDES[case.side].ours for benchmark in benchmarks for case in self._cases(benchmark)):
            self._server.make_template()
        outcomes = [outcome for benchmark in benchmarks for outcome in self._outcomes(benchmark)]
        return Results(
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            machine=machine_words(),
            postgresql=self._server.version(),
            rounds=self._options.rounds,
            divisor=self._divisor,
            versions=peer_versions(self._peers),
            outcomes=outcomes,
        )

    def _cases(self, benchmark: Benchmark) -> list[Case]:
        wanted: list[str] = self._options.side or list(SIDES)
        return [
            case for case in benchmark.cases if case.side in wanted and (self._scanner or not SIDES[case.side].scanner)
        ]

    def _outcomes(self, benchmark: Benchmark) -> list[Outcome]:
        """Let the cases take turns; one that fails once does not run again."""
        cases = self._cases(benchmark)
        runs: dict[Case, list[Run]] = {case: [] for case in cases}
        reasons = {case: SIDES[case.side].missing() for case in cases}
        for turn in range(self._options.rounds):
            for case in cases if turn % 2 == 0 else reversed(cases):
                if reasons[case]:
                    continue
                try:
                    run = self._run(case)
                except SideFailedError as error:
                    reasons[case] = f"failed: {error}"
                    _say(f"{benchmark.name}: {case.side}, {case.workbook}: {reasons[case]}")
                    continue
                runs[case].append(run)
                _say(
                    f"{benchmark.name}: {case.side}, {case.workbook}: {run.wall_s:.2f} s, {run.cpu_s:.2f} CPU s,"
                    f" {run.peak_mb:.0f} MB"
                )
        return [
            Outcome(
                benchmark=benchmark.name,
                case=case,
                runs=() if reasons[case] else tuple(runs[case]),
                reason=reasons[case],
            )
            for case in cases
        ]

    def _run(self, case: Case) -> Run:
        side = SIDES[case.side]
        recipe = RECIPES[case.workbook]
        made = workbook_for(recipe, _FOLDER, divisor=self._divisor)
        python = sys.executable if side.ours else self._peers
        command = [python, "-m", f"benchmarks.sides.{side.module}", str(made.path), str(made.form_path)]
        if side.does == "read":
            cost = run_process(command, environment=side.environment)
            _require("rows read", json.loads(cost.output)["rows"], made.rows)
            return _as_run(cost, server_cpu_s=None)
        with self._server.database(recipe, ours=side.ours, table=side.table) as database, _scratch() as scratch:
            before = database.ended_backends_cpu_s()
            environment = {**side.environment, "DATABASE_URL": database.address, "ROWLEASE_DATA_FOLDER": scratch}
            cost = run_process(command, environment=environment)
            after = database.ended_backends_cpu_s()
            _require("rows loaded", database.count(recipe.table), made.accepted_rows if side.ours else made.rows)
            if side.ours:
                _require("faults stored", database.count("rowlease.import_row_faults"), made.faults)
        return _as_run(cost, server_cpu_s=None if before is None or after is None else after - before)


def scanner_is_built() -> bool:
    """Return whether the compiled scanner is there."""
    return importlib.util.find_spec("importer.excel._scanner") is not None


def _as_run(cost: Cost, *, server_cpu_s: float | None) -> Run:
    measured = json.loads(cost.output) if cost.output.startswith("{") else {}
    return Run(
        wall_s=cost.wall_s,
        cpu_s=cost.cpu_s,
        server_cpu_s=server_cpu_s,
        peak_mb=cost.peak_bytes / 1e6,
        check_share=measured.get("check_share"),
        load_s=measured.get("load_s"),
    )


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for what a run stores, on the disk where the workbooks lie."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=_FOLDER)


def _require(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise SideFailedError(f"{what}: {found:,} where {expected:,} are right")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def options_from(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ours and the peers side by side.")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), help="only these benchmarks")
    parser.add_argument("--side", nargs="+", choices=list(SIDES), default=[], help="only these sides")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows; the marks are not judged")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case (3)")
    parser.add_argument("--out", type=Path, default=_FOLDER, help="folder for results.md and results.json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 when a case failed."""
    options = options_from(arguments)
    benchmarks = [BENCHMARKS[name] for name in options.only or BENCHMARKS]
    compileall.compile_dir("importer", quiet=1)  # as an installed package is, and as the peers are
    with open_server(_FOLDER / "server" / "pgdata") as server:
        results = Suite(options, server, peers_python()).results(benchmarks)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(results.to_json())
    (options.out / "results.md").write_text(results.to_markdown())
    print(results.to_markdown())
    return int(any(outcome.reason.startswith("failed") for outcome in results.outcomes))


if __name__ == "__main__":
    sys.exit(main())
