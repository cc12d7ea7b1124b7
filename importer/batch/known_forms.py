"""Which forms there are: files of a folder, and the newest stored version of each form that has no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from importer import import_job
from importer.db import Database
from importer.errors import FormError
from importer.forms import Form

#: How a form's file ends.
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, kw_only=True)
class KnownForms:
    """The forms of a folder and of a database; a file comes before a stored version of the same name."""

    #: Forms that take imports, by name.
    enabled: tuple[Form, ...] = ()
    #: Names of stored forms that take no imports at present.
    disabled: tuple[str, ...] = ()
    #: File or stored form that is no valid form -> why.
    broken: Mapping[str, str] = field(default_factory=dict)

    def form(self, name: str) -> Form:
        """The enabled form of this name.

        Raises:
            FormError: there is none; the message names those there are.
        """
        for form in self.enabled:
            if form.name == name:
                return form
        if name in self.disabled:
            raise FormError(name, [f"it is disabled; enable it with: rowlease forms enable {name}"])
        raise FormError(
            name, [f"there is no such form; there are: {', '.join(f.name for f in self.enabled) or 'none'}"]
        )


def known_forms(folder: Path | None = None, *, db: Database | None = None) -> KnownForms:
    """Read the forms of a folder (not of folders in it) and those stored in the database.

    A file that is no form does not hide the others: it is in `broken`, and so is every file of a name that two have.

    Raises:
        DatabaseError: the database does not answer.
    """
    forms: dict[str, tuple[Form, str]] = {}
    broken: dict[str, str] = {}
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES) if folder and folder.is_dir() else []
    for path in paths:
        try:
            form = Form.from_file(path)
        except FormError as error:
            broken[path.name] = str(error)
            continue
        if form.name in forms:
            broken[path.name] = f"the form {form.name} stands in {forms[form.name][1]} already"
            continue
        forms[form.name] = (form, path.name)
    disabled = set()
    for row in _stored(db):
        name = row["name"]
        if not row["enabled"]:
            disabled.add(name)
            forms.pop(name, None)
        elif name not in forms:
            try:
                forms[name] = (Form.from_dict(row["definition"]), "the database")
            except FormError as error:
                broken[name] = str(error)
    return KnownForms(
        enabled=tuple(forms[name][0] for name in sorted(forms)), disabled=tuple(sorted(disabled)), broken=broken
    )


def _stored(db: Database | None) -> list[dict[str, Any]]:
    if db is None:
        return []
    with db.connection() as conn:
        return import_job.forms(conn)
