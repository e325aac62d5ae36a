"""What other threads leave for the selector thread to do, and how they wake it."""

from __future__ import annotations

import collections
import contextlib
import os
import selectors
from collections.abc import Callable


class Notes:
    """A queue of calls, made in the thread of the selector in the order in which they were left."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._left: collections.deque[Callable[[], None]] = collections.deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        selector.register(self._bell, selectors.EVENT_READ, self.take)

    def leave(self, note: Callable[[], None]) -> None:
        """From any thread; nobody takes it after `close`."""
        self._left.append(note)
        with contextlib.suppress(OSError):  # closed
            os.eventfd_write(self._bell, 1)

    def take(self) -> None:
        """Make every call that was left."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._left:
            self._left.popleft()()

    def close(self) -> None:
        """Nobody is woken any more."""
        os.close(self._bell)
