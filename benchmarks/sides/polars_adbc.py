"""polars: ``read_excel`` with its calamine engine, ``write_database`` through ADBC."""

import json
import os
import sys
from pathlib import Path

import polars as pl


def main(workbook: str, form: str) -> None:
    """Load the workbook's first sheet into a new table."""
    frame = pl.read_excel(workbook, engine="calamine")
    table = json.loads(Path(form).read_text())["table"]
    frame.write_database(table, os.environ["DATABASE_URL"], engine="adbc", if_table_exists="fail")


if __name__ == "__main__":
    main(*sys.argv[1:])
