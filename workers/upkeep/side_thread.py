"""A duty of the reaper that may take long, in a separate thread: leases and deliveries do not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

LAST_SECONDS: Final = 5.0
"""For a round that is under way when the reaper stops; whoever leads next does what it has not written by then."""


class SideThread:
    """Goes round while this process leads, until the reaper stops.

    Args:
        name: Of the thread.
        duty: One round; it tells how many seconds to rest afterwards.
        stop: Set when the reaper stops.
        leads: Set while this process is the leader.
    """

    def __init__(self, name: str, duty: Callable[[], float], stop: threading.Event, leads: threading.Event) -> None:
        self._name, self._duty, self._stop, self._leads = name, duty, stop, leads
        self._thread: threading.Thread | None = None

    def see_to(self) -> None:
        """Start the thread, also after something that no fence holds has ended it."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._go_round, name=self._name, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Wait for the round that is under way, for a short while."""
        if self._thread is not None:
            self._thread.join(LAST_SECONDS)

    def _go_round(self) -> None:
        rest = 0.0
        while not self._stop.wait(rest):
            rest = self._duty() if self._leads.is_set() else 1.0
