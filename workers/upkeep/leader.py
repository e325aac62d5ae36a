"""One reaper among several: an advisory lock on PostgreSQL, a lock file in the home otherwise."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any, Final

from store.database.session import Database

LOCK: Final = 0x6261636B70726F62
"""The advisory lock's number: "backprob" in ASCII."""


class Leadership:
    """Held by at most one process; the database or the kernel takes it back when that dies."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database, self._home = database, home
        self._connection: Any = None
        self._file: Any = None

    def mine(self) -> bool:
        """Return whether this process is the leader; it asks the database each time.

        Raises:
            Exception: of the driver: the database is away. Whoever it was, nobody leads through that connection now.
        """
        return self._file_lock() if self._database.sqlite else self._advisory_lock()

    def close(self) -> None:
        """Let it go."""
        for held in (self._connection, self._file):
            if held is not None:
                held.close()
        self._connection = self._file = None

    def _file_lock(self) -> bool:
        if self._file is not None:
            return True
        file = (self._home / "reaper.lock").open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def _advisory_lock(self) -> bool:
        try:
            if self._connection is not None:
                self._connection.execute("SELECT 1")
                return True
            connection = self._database.listen()
        except Exception:
            self.close()
            raise
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if row is not None and row[0]:
            self._connection = connection
            return True
        connection.close()
        return False
