"""Which API keys were used: noted in memory by requests, written to the database by a thread.

A request takes a lock of this process for a dictionary's time and never waits for the database. The thread writes a key
when it is used for the first time, and then at most once a minute.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from store.access import keys
from store.database.session import WriterStuck, is_unavailable

if TYPE_CHECKING:
    from store.database.session import Database

NOTE_SECONDS: Final = 61.0
"""Between two notes of a key: a second more than `keys.touch` asks for, so that no note is too early to be written."""

RETRY_SECONDS: Final = 5.0
"""Before the next try where the database is away."""

CLOSE_SECONDS: Final = 2.0


class KeyUses:
    """The uses of keys in one process. Its thread starts with the first use, after the process's last fork."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._noted: dict[int, float] = {}
        self._waiting: set[int] = set()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def note(self, number: int) -> None:
        """Note that the key with this number was used; return at once."""
        now = time.monotonic()
        with self._changed:
            if self._is_closed or now - self._noted.get(number, -NOTE_SECONDS) < NOTE_SECONDS:
                return
            self._noted[number] = now
            self._waiting.add(number)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="key-uses", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, if the database lets it, and end."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                numbers, self._waiting = self._waiting, set()
                oldest = time.monotonic() - NOTE_SECONDS
                self._noted = {number: at for number, at in self._noted.items() if at > oldest}
            if self._write(numbers):
                continue
            with self._changed:
                self._waiting |= numbers
                if self._changed.wait_for(lambda: self._is_closed, RETRY_SECONDS):
                    return

    def _write(self, numbers: set[int]) -> bool:
        try:
            with self._database.begin() as transaction:
                keys.touch(transaction, numbers)
        except Exception as error:
            if not (is_unavailable(error) or isinstance(error, WriterStuck)):
                raise
            return False
        return True
