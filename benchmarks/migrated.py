"""Bring the database that DATABASE_URL names to the project's schema, as a process of its own."""

import importer as im


def main() -> None:
    """Connect once; connecting migrates what is empty."""
    im.connect()


if __name__ == "__main__":
    main()
