"""What is done with forms: `forms list|show|store|enable|disable`."""

from __future__ import annotations

import argparse

import yaml

import importer as im
from importer import import_job
from importer.cli.output import print_either, print_json, print_table
from importer.cli.workbooks import FormNotFoundError, find_form
from importer.errors import FormError


def run(arguments: argparse.Namespace) -> int:
    """Do one action on forms."""
    match arguments.action:
        case "show":
            return _show(arguments)
        case "store":
            return _store(arguments)
        case "enable" | "disable":
            return _enable(arguments)
        case _:
            return _list(arguments)


def _list(arguments: argparse.Namespace) -> int:
    with im.connect() as db, db.connection() as conn:
        stored = import_job.forms(conn)
    if arguments.json:
        print_json(stored)
        return 0
    rows = [
        (
            row["name"], row["version"], "yes" if row["enabled"] else "no", row["definition"]["table"],
            len(row["definition"]["columns"]), row["created_at"], row["definition"].get("description", ""),
        )
        for row in stored
    ]  # fmt: skip
    headers = ("Form", "Version", "Enabled", "Table", "Columns", "Stored", "Description")
    print_table(headers, rows, empty="No form is stored yet; importing with one stores it.")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    try:
        form = find_form(arguments.form, None)
    except FormNotFoundError:
        with im.connect() as db:
            form = find_form(arguments.form, db)
    definition = form.to_dict()
    if arguments.json:
        print_json(definition)
    else:
        print(yaml.safe_dump(definition, sort_keys=False, allow_unicode=True, width=120), end="")
    return 0


def _store(arguments: argparse.Namespace) -> int:
    form = im.Form.from_file(arguments.form)
    with im.connect() as db, db.connection() as conn, conn.transaction():
        version = import_job.store_form(conn, form.to_dict(), name=form.name, digest=form.digest)
    stored = {"name": form.name, "version": version, "digest": form.digest}
    print_either(stored, f"The form {form.name} is stored as version {version}.", as_json=arguments.json)
    return 0


def _enable(arguments: argparse.Namespace) -> int:
    enabled = arguments.action == "enable"
    with im.connect() as db, db.connection() as conn:
        if not import_job.enable_form(conn, arguments.form, enabled=enabled):
            raise FormError(arguments.form, ["no form of this name is stored; see: rowlease forms"])
    changed = {"name": arguments.form, "enabled": enabled}
    line = f"The form {arguments.form} {'takes imports' if enabled else 'takes no more imports'}."
    print_either(changed, line, as_json=arguments.json)
    return 0
