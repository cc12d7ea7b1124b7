"""Ours, reading and checking without a database: what part of the processor time do the rules take?

Nothing runs beside it, so the time of the whole process around each call is the time of the call, polars' threads
included. Loading would only make the part smaller.
"""

import json
import sys
import time
from unittest import mock

import polars as pl

import importer as im
from importer.excel import open_workbook
from importer.forms import read_rows
from importer.forms.rules import Rules


def main(workbook: str, form: str) -> None:
    """Read and check the workbook; print its rows and the part of the rules."""
    spent_s = 0.0
    breaches = Rules.breaches

    def timed(rules: Rules, frame: pl.DataFrame) -> pl.DataFrame:
        nonlocal spent_s
        began = time.process_time()
        found = breaches(rules, frame)
        spent_s += time.process_time() - began
        return found

    with mock.patch.object(Rules, "breaches", timed), open_workbook(workbook) as book:
        rows = sum(len(chunk.rows) for chunk in read_rows(book, im.Form.from_file(form)))
    print(json.dumps({"rows": rows, "check_share": spent_s / time.process_time()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
