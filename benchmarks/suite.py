"""What is measured: the sides, the benchmarks made of them, and the marks they are held to."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

#: Rows per batch that no workbook here reaches: the whole import is one transaction with one COPY.
_ONE_BATCH: Final = "100000000"
#: Set for each side of ours, so that the plain reader is measured where a scanner was built.
PURE: Final = {"ROWLEASE_SCANNER": "off"}


@dataclass(frozen=True, kw_only=True)
class Side:
    """Somebody who reads or loads a workbook: a module of benchmarks.sides, run as a process."""

    #: Name on the command line and in the table of results.
    name: str
    #: Module in benchmarks.sides.
    module: str
    #: Runs with the project's interpreter and finds its tables, else with the peers'.
    ours: bool = False
    #: "load" fills the form's table; "read" only prints how many rows it read.
    does: Literal["load", "read"] = "load"
    #: Finds the empty target table; a side without makes its own.
    table: bool = False
    #: Needs the compiled scanner.
    scanner: bool = False
    #: A program that must be there.
    program: str | None = None
    #: Set for the process.
    environment: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> str:
        """Return what this side lacks here, empty when it can run."""
        return f"{self.program} is not installed" if self.program and not shutil.which(self.program) else ""


@dataclass(frozen=True, order=True)
class Case:
    """One line of a benchmark: a side and the workbook it is given."""

    side: str
    workbook: str


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Cases that take turns and are compared with each other."""

    #: Name on the command line.
    name: str
    #: What is measured, one line.
    title: str
    #: Run in this order, and backwards every other round.
    cases: tuple[Case, ...]
    #: The case that counts as 1 in the table.
    baseline: Case


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A ratio or an amount that ours must reach."""

    #: What is measured.
    name: str
    #: The benchmark it is taken from.
    benchmark: str
    #: What is compared.
    quantity: Literal["wall_s", "peak_mb", "load_s", "check_share"]
    #: The case of ours, with the plain reader.
    case: Case
    #: What it is divided by; None: the amount itself.
    over: Case | None = None
    #: Divided by the same side of ours when the scanner is measured.
    over_ours: bool = False
    #: Most allowed with the plain reader.
    pure_must: float
    #: Most allowed with the scanner.
    scanner_must: float
    #: Aimed at.
    reach: float


def _sides() -> dict[str, Side]:
    one_batch = {"ROWLEASE_IMPORTS_BATCH_ROWS": _ONE_BATCH}
    sides = [
        Side(name="ours", module="ours", ours=True, environment=PURE),
        Side(name="ours+scanner", module="ours", ours=True, scanner=True),
        Side(name="ours, loading", module="load_ours", ours=True, environment=PURE),
        Side(name="ours, loading at once", module="load_ours", ours=True, environment={**PURE, **one_batch}),
        Side(name="ours, reading", module="read_ours", ours=True, does="read", environment=PURE),
        Side(name="ours, reading+scanner", module="read_ours", ours=True, does="read", scanner=True),
        Side(name="ours, checking", module="check_ours", ours=True, does="read", environment=PURE),
        Side(name="ours, checking+scanner", module="check_ours", ours=True, does="read", scanner=True),
        Side(name="bare", module="bare", table=True),
        Side(name="fastexcel, reading", module="read_fastexcel", does="read"),
        Side(name="polars + adbc", module="polars_adbc"),
        Side(name="pandas + to_sql", module="pandas_sql"),
        Side(name="dlt", module="dlt_polars"),
        Side(name="xlsx2csv + psql", module="xlsx2csv_copy", table=True, program="psql"),
        Side(name="ogr2ogr", module="ogr2ogr_copy", program="ogr2ogr"),
    ]
    return {side.name: side for side in sides}


def _cases(workbook: str, *sides: str) -> tuple[Case, ...]:
    """Return a case per side; each side of ours also with the scanner."""
    names = [name for side in sides for name in ([side, f"{side}+scanner"] if side.startswith("ours") else [side])]
    return tuple(Case(name, workbook) for name in names)


def _benchmarks() -> dict[str, Benchmark]:
    quick_peers = ("bare", "polars + adbc", "pandas + to_sql", "ogr2ogr")
    all_peers = (*quick_peers, "dlt", "xlsx2csv + psql")
    benchmarks = [
        Benchmark(
            name="load-100k",
            title="100,000 rows of 12 columns, from the file to the table",
            cases=_cases("mixed-100k", "ours", *all_peers),
            baseline=Case("bare", "mixed-100k"),
        ),
        Benchmark(
            name="load-wide",
            title="20,000 rows of 150 columns, from the file to the table",
            cases=_cases("wide-20k", "ours", *all_peers),
            baseline=Case("bare", "wide-20k"),
        ),
        Benchmark(
            # dlt and xlsx2csv would take most of the suite's time here; their ratio stands at 100k
            name="load-1m",
            title="1,000,000 rows of 12 columns with a note that is unique per row, from the file to the table",
            cases=_cases("mixed-1m", "ours", *quick_peers),
            baseline=Case("bare", "mixed-1m"),
        ),
        Benchmark(
            name="read-1m",
            title="Only reading 1,000,000 rows of 12 columns",
            cases=_cases("mixed-1m", "ours, reading", "fastexcel, reading"),
            baseline=Case("fastexcel, reading", "mixed-1m"),
        ),
        Benchmark(
            name="bad-cells",
            title="300,000 rows of 12 columns: 2 % of all cells bad, and none",
            cases=_cases("clean-300k", "ours") + _cases("bad-300k", "ours"),
            baseline=Case("ours", "clean-300k"),
        ),
        Benchmark(
            name="inline",
            title="Inline strings, 12 columns: 1,000,000 and 100,000 rows",
            cases=_cases("inline-1m", "ours", "bare") + _cases("inline-100k", "ours"),
            baseline=Case("bare", "inline-1m"),
        ),
        Benchmark(
            name="memory",
            title="Memory over size: 50,000 and 200,000 rows of 12 columns",
            cases=_cases("mixed-50k", "ours") + _cases("mixed-200k", "ours", "bare"),
            baseline=Case("ours", "mixed-50k"),
        ),
        Benchmark(
            name="batches",
            title="Only loading 300,000 rows of 12 columns: a commit for each batch, and one COPY in one commit",
            cases=(Case("ours, loading", "clean-300k"), Case("ours, loading at once", "clean-300k")),
            baseline=Case("ours, loading at once", "clean-300k"),
        ),
        Benchmark(
            name="checking",
            title="What checking the rules takes of the processor time: 300,000 rows of 12 columns",
            cases=_cases("clean-300k", "ours, checking"),
            baseline=Case("ours, checking", "clean-300k"),
        ),
    ]
    return {benchmark.name: benchmark for benchmark in benchmarks}


#: All sides by name.
SIDES: Final[Mapping[str, Side]] = _sides()
#: All benchmarks by name.
BENCHMARKS: Final[Mapping[str, Benchmark]] = _benchmarks()
#: What ours is held to, in the order of the table.
MARKS: Final = (
    Mark(
        name="1M x 12 end to end, times bare",
        benchmark="load-1m",
        quantity="wall_s",
        case=Case("ours", "mixed-1m"),
        over=Case("bare", "mixed-1m"),
        pure_must=1.0,
        scanner_must=0.6,
        reach=0.45,
    ),
    Mark(
        name="100k x 12 end to end, times bare",
        benchmark="load-100k",
        quantity="wall_s",
        case=Case("ours", "mixed-100k"),
        over=Case("bare", "mixed-100k"),
        pure_must=1.1,
        scanner_must=0.75,
        reach=0.6,
    ),
    Mark(
        name="20k x 150 end to end, times bare",
        benchmark="load-wide",
        quantity="wall_s",
        case=Case("ours", "wide-20k"),
        over=Case("bare", "wide-20k"),
        pure_must=1.4,
        scanner_must=0.85,
        reach=0.6,
    ),
    Mark(
        name="Only reading 1M x 12, times fastexcel",
        benchmark="read-1m",
        quantity="wall_s",
        case=Case("ours, reading", "mixed-1m"),
        over=Case("fastexcel, reading", "mixed-1m"),
        pure_must=1.4,
        scanner_must=0.7,
        reach=0.5,
    ),
    Mark(
        name="300k x 12 with 2 % bad cells, times without",
        benchmark="bad-cells",
        quantity="wall_s",
        case=Case("ours", "bad-300k"),
        over=Case("ours", "clean-300k"),
        over_ours=True,
        pure_must=1.15,
        scanner_must=1.15,
        reach=1.05,
    ),
    Mark(
        name="Peak memory, 1M x 12 with unique notes, MB",
        benchmark="load-1m",
        quantity="peak_mb",
        case=Case("ours", "mixed-1m"),
        pure_must=400,
        scanner_must=300,
        reach=160,
    ),
    Mark(
        name="Peak memory, inline strings, 1M times 100k",
        benchmark="inline",
        quantity="peak_mb",
        case=Case("ours", "inline-1m"),
        over=Case("ours", "inline-100k"),
        over_ours=True,
        pure_must=1.3,
        scanner_must=1.3,
        reach=1.1,
    ),
    Mark(
        name="Loading with a commit per batch, times one COPY",
        benchmark="batches",
        quantity="load_s",
        case=Case("ours, loading", "clean-300k"),
        over=Case("ours, loading at once", "clean-300k"),
        pure_must=1.12,
        scanner_must=1.12,
        reach=1.08,
    ),
    Mark(
        name="Checking, share of the processor time",
        benchmark="checking",
        quantity="check_share",
        case=Case("ours, checking", "clean-300k"),
        pure_must=0.15,
        scanner_must=0.15,
        reach=0.05,
    ),
)
