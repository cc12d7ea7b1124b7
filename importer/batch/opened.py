"""Opening a workbook as the settings say: what it may ask for, and which scanner reads it."""

from __future__ import annotations

import dataclasses
import os

from importer.errors import SettingsError
from importer.excel import Limits, Workbook, open_workbook
from importer.forms import Form
from importer.settings import Settings


def opened(path: str | os.PathLike[str], settings: Settings, form: Form, *, name: str | None = None) -> Workbook:
    """Open a workbook as settings and form say; use it in a `with`. `name`: what its sender calls it.

    Raises:
        WorkbookError: it is no workbook that can be read.
        SettingsError: a setting names a limit that there is not.
    """
    return open_workbook(
        os.fspath(path),
        name=name,
        limits=limits_of(settings),
        compiled=settings.compiled_scanner,
        encoding=form.encoding,
        delimiter=form.delimiter,
    )


def limits_of(settings: Settings) -> Limits:
    """Give the limits, the defaults but for what is set."""
    known = {limit.name for limit in dataclasses.fields(Limits)}
    for name in settings.limits:
        if name not in known:
            raise SettingsError(
                f"ROWLEASE_LIMIT_{name.upper()}", f"there is no such limit; there are {', '.join(sorted(known))}"
            )
    return dataclasses.replace(Limits(), **settings.limits)
