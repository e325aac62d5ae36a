"""Who writes next to a SQLite file, among the threads of one process.

A plain lock goes to whoever asks first after it is free, which is the thread that had it: one that stores an audit
piece by piece would write them all before another's submit. So a thread that wrote last lets one go first that waits.
"""

from __future__ import annotations

import threading


class Writers:
    """One writer at a time; not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy = False
        self._last = 0
        self._waiting = 0

    def acquire(self, timeout: float) -> bool:
        """Become the writer; False: another was, for so many seconds."""
        me = threading.get_ident()
        with self._changed:
            self._waiting += 1
            try:
                free = self._changed.wait_for(
                    lambda: not self._busy and (self._last != me or self._waiting == 1), timeout
                )
                if free:
                    self._busy, self._last = True, me
                return free
            finally:
                self._waiting -= 1
                if self._waiting == 1 and not self._busy:
                    self._changed.notify_all()  # one that wrote last waits for nobody any more

    def release(self) -> None:
        """Be the writer no more."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
