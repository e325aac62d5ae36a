"""Bring a database to the schema of this code, or say clearly why not."""

from __future__ import annotations


class DatabaseTooNew(Exception):
    """A newer Backprobe has migrated this database; this code must not touch it."""


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at `url` up. A SQLite file is copied first if a migration is due.

    Raises:
        DatabaseTooNew: it is at a revision that this code does not have.
    """
    raise NotImplementedError


def at_head(url: str) -> bool:
    """The database's schema is the one of this code."""
    raise NotImplementedError
