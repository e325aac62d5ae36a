"""Recognise a SQLite file that is damaged."""

from __future__ import annotations

import sqlite3
from typing import Final

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE: Final = 0xFF
"""SQLite's extended result codes carry the primary code in their lowest byte."""


def is_damaged(error: BaseException) -> bool:
    """Return True if SQLite reports that its file is malformed or is no database."""
    raised = getattr(error, "orig", None) or error
    code = getattr(raised, "sqlite_errorcode", None)
    return isinstance(raised, sqlite3.Error) and code is not None and code & _PRIMARY_CODE in _DAMAGED


def count_pages(connection: sqlite3.Connection) -> int:
    """Return the pages of a SQLite file. This is the first statement of a connection, so it reads the schema.

    Raises:
        sqlite3.DatabaseError: the file is damaged.
    """
    try:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    except UnicodeDecodeError:  # of SQLite's message, which quotes the damaged schema
        damaged = sqlite3.DatabaseError("malformed database schema")
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged from None
    return pages
