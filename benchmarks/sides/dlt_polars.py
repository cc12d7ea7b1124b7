"""dlt: a resource that yields the polars frame, the pipeline's postgres destination loads it."""

import json
import os
import sys
import tempfile
from pathlib import Path

import dlt
import polars as pl


def main(workbook: str, form: str) -> None:
    """Load the workbook's first sheet into a new table of schema public."""
    table = json.loads(Path(form).read_text())["table"]
    with tempfile.TemporaryDirectory() as folder:
        pipeline = dlt.pipeline(
            "bench",
            pipelines_dir=folder,
            # dlt wants a host in front; where the address names a socket as `?host=`, that one is used all the same
            destination=dlt.destinations.postgres(os.environ["DATABASE_URL"].replace("@/", "@localhost/", 1)),
            dataset_name="public",
        )
        frame = pl.read_excel(workbook, engine="calamine")
        pipeline.run(frame.to_arrow(), table_name=table, write_disposition="append").raise_on_failed_jobs()


if __name__ == "__main__":
    main(*sys.argv[1:])
