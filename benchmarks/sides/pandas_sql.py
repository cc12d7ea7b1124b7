"""pandas: ``read_excel`` with its calamine engine, ``to_sql`` through SQLAlchemy and psycopg."""

import json
import os
import sys
from pathlib import Path

# mypy: disable-error-code="import-not-found,import-untyped"
# (pandas is there in the peers' environment only)
import pandas as pd
import sqlalchemy as sa


def main(workbook: str, form: str) -> None:
    """Load the workbook's first sheet into a new table."""
    frame = pd.read_excel(workbook, engine="calamine")
    table = json.loads(Path(form).read_text())["table"]
    engine = sa.create_engine(os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:", 1))
    frame.to_sql(table, engine, index=False, chunksize=10_000)


if __name__ == "__main__":
    main(*sys.argv[1:])
