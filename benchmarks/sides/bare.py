"""Bare: fastexcel reads the sheet, one COPY loads it. No check, no recovery, and no less can be done in Python."""

import io
import json
import os
import sys
from pathlib import Path

import fastexcel
import polars as pl
import psycopg
from psycopg import sql


def main(workbook: str, form: str) -> None:
    """Load the workbook's first sheet into the form's table, which is there."""
    facts = json.loads(Path(form).read_text())
    frame = fastexcel.read_excel(workbook).load_sheet(0).to_polars()
    # It reads every number as a float; COPY takes no 12.0 for an integer
    whole = [n for n, column in enumerate(facts["columns"]) if column["type"] == "integer"]
    frame = frame.with_columns(frame.to_series(n).cast(pl.Int64) for n in whole)
    names = [column["name"] for column in facts["columns"]]
    copy_in = sql.SQL("copy {} ({}) from stdin (format csv)").format(
        sql.Identifier(facts["table"]), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection, connection.cursor().copy(copy_in) as copy:
        for piece in frame.iter_slices(50_000):
            text = io.BytesIO()
            piece.write_csv(text, include_header=False)
            encoded = text.getbuffer()
            for start in range(0, len(encoded), 262_144):
                copy.write(encoded[start : start + 262_144])


if __name__ == "__main__":
    main(*sys.argv[1:])
