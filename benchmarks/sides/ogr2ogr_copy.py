"""ogr2ogr (GDAL): its xlsx driver into its PostgreSQL driver, with COPY and one transaction."""

import json
import os
import sys
from pathlib import Path


def main(workbook: str, form: str) -> None:
    """Become ogr2ogr, which loads the workbook's sheet into a new table."""
    table = json.loads(Path(form).read_text())["table"]
    command = ["ogr2ogr", "-f", "PostgreSQL", f"PG:{os.environ['DATABASE_URL']}", workbook, "-nln", table]
    command += ["--config", "PG_USE_COPY", "YES", "--config", "OGR_XLSX_HEADERS", "FORCE", "-gt", "unlimited"]
    os.execvp(command[0], command)  # noqa: S606 - this process is to become it


if __name__ == "__main__":
    main(*sys.argv[1:])
