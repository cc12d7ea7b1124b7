"""Ours: the whole import as `importer` does it, with checks, a job, and a commit for each batch."""

import sys

import importer as im


def main(workbook: str, form: str) -> None:
    """Import the workbook into the form's table, which the import makes."""
    db = im.connect()
    im.import_workbook(workbook, im.Form.from_file(form), db=db)


if __name__ == "__main__":
    main(*sys.argv[1:])
