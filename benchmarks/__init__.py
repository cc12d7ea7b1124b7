"""Ours and the peers side by side, on files that the suite makes itself.

    make bench                                  everything, three rounds
    make bench ARGS="--quick"                   a tenth of the rows: does it all still run?
    make bench ARGS="--only load-100k bad-cells --rounds 5"

::

    recipes ──> writer ──> .tmp/bench/*.xlsx          made once, the same bytes everywhere
                                │
    suite: benchmark = cases (side, workbook)
                                │
    process: one whole process a run ── server: a database of its own a run
                                │
    report: medians, ratios, marks ──> results.md, results.json

What is promised: the sides of a benchmark take turns, and the order turns round with each round, so that a disk or a
neighbour that is slow for a minute is slow for all of them. A run is a whole process, imports included. Each run starts
from a database of its own after a checkpoint, and when it ends, the rows in its table are counted: a side that did not
load what it should is reported as failed and has no time.

What is not promised: absolute times (compare the ratios of one run of the suite), and that the peers load what they
load *exactly*. They lose error cells, times and row numbers, check nothing and cannot resume; their times are what one
gives up for that.

The peers live in an environment of their own (``.venv-peers``, from ``benchmarks/requirements.lock``), because pandas
makes pandera three times as heavy and is no dependency of ours.
"""
