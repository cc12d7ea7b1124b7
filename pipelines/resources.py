"""The importer as a Dagster resource: where the database, the store and the inbox are, and an open database.

A setting that cannot be used is an `importer.SettingsError` that names its variable, a database that cannot be reached
an `importer.DatabaseError` that names the address without its password.
"""

import dataclasses
import threading
from pathlib import Path
from typing import Any

from dagster import ConfigurableResource
from pydantic import Field

import importer as im


class Importer(ConfigurableResource[Any]):
    """Where imports go to and come from; what is left empty is read from the environment."""

    database_url: str | None = Field(
        default=None,
        description="PostgreSQL, as URL or key=value. Empty: ROWLEASE_DATABASE_URL, DATABASE_URL, PG*, else a server "
        "of your own. Set it by EnvVar, so that its password is not shown.",
    )
    store_folder: str | None = Field(
        default=None,
        description="Folder, or URL of a bucket, of workbooks by content hash. Empty: ROWLEASE_STORE_FOLDER.",
    )
    inbox: str | None = Field(
        default=None, description="Folder, or URL of a bucket, that is watched. Empty: ROWLEASE_INBOX."
    )
    forms_folder: str | None = Field(
        default=None, description="Folder of forms (*.yaml, *.json). Empty: ROWLEASE_FORMS_FOLDER."
    )
    parallel_runs: int = Field(
        default=1, ge=1, description="How many runs of process_imports may work at once; one drains any queue."
    )

    def settings(self) -> im.Settings:
        """The environment's settings with what is set here in their place."""
        given: dict[str, Any] = {}
        if self.database_url:
            given["database_url"] = self.database_url
        if self.store_folder:
            given["store_folder"] = self.store_folder if "://" in self.store_folder else Path(self.store_folder)
        if self.inbox:
            given["inbox"] = self.inbox if "://" in self.inbox else Path(self.inbox)
        if self.forms_folder:
            given["forms_folder"] = Path(self.forms_folder)
        return dataclasses.replace(im.Settings.from_environment(), **given)

    @property
    def db(self) -> im.Database:
        """The database, opened and found migrated once per process."""
        return opened.of(self.settings())

    def forms(self) -> im.KnownForms:
        """The forms as they are now: files first, then what the database holds."""
        return im.known_forms(self.settings().forms_folder, db=self.db)


class Opened:
    """Databases that this process has opened, by their settings.

    Sensors are asked every few seconds: an idle tick shall cost a query, not a connection and a look at the schema. A
    connection that died meanwhile is replaced by `Database` itself.
    """

    def __init__(self) -> None:
        self._open: list[tuple[im.Settings, im.Database]] = []
        self._guard = threading.Lock()

    def of(self, settings: im.Settings) -> im.Database:
        """The database of these settings, opened and found migrated when it is asked for first."""
        with self._guard:
            for known, db in self._open:
                if known == settings:
                    return db
            db = im.connect(settings=settings)
            self._open.append((settings, db))
            return db

    def close(self) -> None:
        """Close them all."""
        with self._guard:
            for _, db in self._open:
                db.close()
            self._open.clear()


#: Those of this process.
opened = Opened()
