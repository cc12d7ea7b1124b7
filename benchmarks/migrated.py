"""Bring the database that DATABASE_URL names to the project's schema, as a process of its own."""

from importer.db import connect, migrate


def main() -> None:
    """Apply all migrations."""
    with connect(migrated=False) as db:
        migrate(db)


if __name__ == "__main__":
    main()
