"""xlsx2csv into a pipe, from which psql loads with its own copy command."""

import json
import os
import subprocess
import sys
from pathlib import Path


def main(workbook: str, form: str) -> None:
    """Load the workbook's first sheet into the form's table, which is there."""
    table = json.loads(Path(form).read_text())["table"]
    convert = [sys.executable, "-m", "xlsx2csv", "--dateformat", "%Y-%m-%d", workbook]
    load = ["psql", "-q", "-v", "ON_ERROR_STOP=1", os.environ["DATABASE_URL"]]
    load += ["-c", f"\\copy {table} from pstdin with (format csv, header)"]
    with subprocess.Popen(convert, stdout=subprocess.PIPE) as converting:
        subprocess.run(load, stdin=converting.stdout, check=True)
    if converting.returncode:
        sys.exit(converting.returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
