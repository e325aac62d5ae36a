"""Lower case as PostgreSQL has it: the `lower` of SQLite knows ASCII only, and missed `Ärger` in a search."""

from __future__ import annotations

import sqlite3


def to_lower(text: str) -> str:
    """Return the text in lower case, each character by itself, as PostgreSQL does it in a UTF-8 locale.

    `str.lower` looks at the neighbours of a sigma, and makes two characters of U+0130, the only one for which it does.
    """
    return text.lower() if text.isascii() else "".join(character.lower()[0] for character in text)


def replace_lower(connection: sqlite3.Connection) -> None:
    """Let the `lower` of a connection, and with it each search whatever the case, be `to_lower`."""

    def lower(text: str | None) -> str | None:
        return None if text is None else to_lower(text)

    connection.create_function("lower", 1, lower, deterministic=True)
