"""Only reading, with fastexcel into a polars frame."""

import json
import sys

import fastexcel


def main(workbook: str, _form: str) -> None:
    """Read the workbook's first sheet and print how many rows came."""
    print(json.dumps({"rows": fastexcel.read_excel(workbook).load_sheet(0).to_polars().height}))


if __name__ == "__main__":
    main(*sys.argv[1:])
