"""What is done with the database: `migrate`, `db url|start|stop|status`."""

from __future__ import annotations

import argparse

from importer.cli.output import print_either, print_json, print_pairs
from importer.db import EmbeddedServer, connect, pending
from importer.db import migrate as apply_migrations
from importer.display import count
from importer.settings import Settings


def migrate(arguments: argparse.Namespace) -> int:
    """Bring the database to the schema of this version; with `--check` only say what is missing (3)."""
    with connect(migrated=False) as db:
        missing = pending(db) if arguments.check else apply_migrations(db)
        label = db.label
    labels = [migration.label for migration in missing]
    if arguments.json:
        print_json({"pending" if arguments.check else "applied": labels})
    elif arguments.check:
        print(f"{label} lacks {', '.join(labels)}" if labels else f"{label} is at the schema of this version")
    else:
        print(f"{label}: {count(len(labels), 'migration')} applied{': ' if labels else ''}{', '.join(labels)}")
    return 3 if arguments.check and labels else 0


def run(arguments: argparse.Namespace) -> int:
    """Do one action on the database."""
    settings = Settings.from_environment()
    match arguments.action:
        case "url":
            return _url(arguments, settings)
        case "start":
            url = EmbeddedServer(settings.data_folder).start()
            print_either({"url": url}, f"The server runs until `rowlease db stop`: {url}", as_json=arguments.json)
        case "stop":
            stopped = EmbeddedServer(settings.data_folder).stop()
            line = "The server is stopped." if stopped else "The server was not running."
            print_either({"stopped": stopped}, line, as_json=arguments.json)
        case _:
            return _status(arguments, settings)
    return 0


def _url(arguments: argparse.Namespace, settings: Settings) -> int:
    if settings.database_url:
        url = settings.database_url
    elif settings.libpq:
        url = "postgresql://"  # libpq fills in the PG* variables
    else:
        url = EmbeddedServer(settings.data_folder).start()
        connect(settings=settings).close()
    print_either({"url": url}, url, as_json=arguments.json)
    return 0


def _status(arguments: argparse.Namespace, settings: Settings) -> int:
    if settings.database_url or settings.libpq:
        with connect(settings=settings, migrated=False) as db:
            missing = len(pending(db))
            label = db.label
        found = {"label": label, "embedded": False, "running": True, "pending_migrations": missing}
        line = f"{label} answers; {count(missing, 'migration')} to apply" + (": rowlease migrate" if missing else "")
        print_either(found, line, as_json=arguments.json)
        return 0
    server = EmbeddedServer(settings.data_folder).status()
    found = {
        "label": None,
        "embedded": True,
        "running": server.running,
        "folder": str(server.folder),
        "url": server.url,
    }
    if arguments.json:
        print_json(found)
        return 0
    state = (
        ("runs until `rowlease db stop`" if server.kept else "runs")
        if server.running
        else "is not running; it starts when it is needed"
    )
    print(f"The PostgreSQL of your own {state}.")
    print_pairs([("folder", str(server.folder)), *([("address", server.url)] if server.url else [])])
    return 0
