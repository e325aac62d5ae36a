"""Waiting for the end of a run inside a request: bounded, so that waiters never take all of the server's threads."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from flask import request

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from store.wait import Hub

MOST_SECONDS: Final = 30

_WAIT: Final = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?\s*(?:[,;]|$)", re.IGNORECASE)


def asked_seconds() -> int | None:
    """N of `Prefer: wait=N` (RFC 7240), at most 30; None without one. A preference that cannot be read is ignored."""
    for header in request.headers.getlist("Prefer"):
        if found := _WAIT.search(header):
            return min(int(found[1]), MOST_SECONDS)
    return None


class Waiters:
    """At most half of the server's threads wait; beyond that an answer comes at once, as the run stands.

    Attributes:
        waiting: How many requests wait now.
    """

    def __init__(self, hub: Hub, *, threads: int) -> None:
        self._hub = hub
        self._most = max(1, threads // 2)
        self._counting = threading.Lock()
        self.waiting = 0

    def wait(self, public_id: str, seconds: int, tenant_id: int) -> bool:
        """Wait until the run has ended.

        Args:
            public_id: The run's.
            seconds: The longest wait.
            tenant_id: Whose run it is.

        Returns:
            Whether a place to wait was free; the caller reads the run afresh either way.
        """
        with self.place() as free:
            if free:
                self._hub.wait(public_id, seconds, tenant_id=tenant_id)
        return free

    def until(self, over: Callable[[], bool], seconds: int) -> bool:
        """Wait until something is over; it looks whenever a run or an audit changes. Whether a place was free."""
        with self.place() as free:
            if free:
                self._hub.until(over, seconds)
        return free

    @contextmanager
    def place(self) -> Generator[bool]:
        """A place to wait; False: all are taken."""
        with self._counting:
            free = self.waiting < self._most
            self.waiting += free
        try:
            yield free
        finally:
            with self._counting:
                self.waiting -= free


class Seats:
    """At most so many streams at once: each holds a thread for as long as its client stays."""

    def __init__(self, most: int) -> None:
        self._counting = threading.Lock()
        self.most, self.taken = most, 0

    def take(self) -> Callable[[], None] | None:
        """A seat, as the function that gives it back; calling that twice does no harm. None: all are taken."""
        with self._counting:
            if self.taken >= self.most:
                return None
            self.taken += 1
        given_back = threading.Event()

        def give_back() -> None:
            with self._counting:
                if not given_back.is_set():
                    given_back.set()
                    self.taken -= 1

        return give_back
