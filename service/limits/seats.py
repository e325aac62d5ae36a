"""What is shared by all who ask: threads that wait for a run's end, and seats, of which nobody gets all.

A tenant has at most three quarters of each, and a key at most three quarters of its tenant's: another tenant, and
another key of the same one, finds a place. Without a key there is one person, who may have all.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from flask import request

from service.auth.caller import caller
from service.limits import turns
from service.problems.errors import RETRY_SECONDS, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from service.auth.caller import Caller
    from store.runs.reading.wait import Hub

MOST_SECONDS: Final = 30

_WAIT: Final = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?\s*(?:[,;]|$)", re.IGNORECASE)


def asked_seconds() -> int | None:
    """N of `Prefer: wait=N` (RFC 7240), at most 30; None without one. A preference that cannot be read is ignored."""
    for header in request.headers.getlist("Prefer"):
        if found := _WAIT.search(header):
            return min(int(found[1]), MOST_SECONDS)
    return None


def share(most: int) -> int:
    """How many of so many one tenant may have, or how many of a tenant's one key: three quarters, and at least one."""
    return max(1, most * 3 // 4)


class Shares:
    """Who has how many of something. Not locked: its owner is."""

    def __init__(self) -> None:
        self._taken: Counter[int | tuple[int, str]] = Counter()

    def full(self, asking: Caller | None, most: int) -> str | None:
        """Why this caller may have no more of `most`, as a sentence begins; None: one more is within its share."""
        if asking is None or asking.sharing is None:
            return None
        tenant = share(most)
        key = share(tenant)
        if self._taken[asking.tenant_id] >= tenant:
            return f"This tenant has {tenant:,} of {most:,}"
        if self._taken[asking.tenant_id, asking.actor] >= key:
            return f"This key has {key:,} of {most:,}"
        return None

    def add(self, asking: Caller | None, count: int) -> None:
        """Add to the number of seats that the caller has; `count` may be negative."""
        if asking is not None:
            for place in (asking.tenant_id, (asking.tenant_id, asking.actor)):
                self._taken[place] += count
                if not self._taken[place]:
                    del self._taken[place]


class Waiters:
    """At most half of the server's threads wait; beyond that an answer comes at once, as the run stands.

    Attributes:
        waiting: How many requests wait now.
    """

    def __init__(self, hub: Hub, *, threads: int) -> None:
        self._hub = hub
        self._most = max(1, threads // 2)
        self._shares = Shares()
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

    def wait_until(self, over: Callable[[], bool], seconds: int) -> bool:
        """Wait until `over` returns true, checked at each change of a run or audit. Return whether a place was free."""
        with self.place() as free:
            if free:
                self._hub.wait_until(over, seconds)
        return free

    @contextmanager
    def place(self) -> Generator[bool]:
        """Take a place to wait while in the context; yield False if all are taken, or all of this caller's."""
        asking = caller()
        with self._counting:
            free = self.waiting < self._most and self._shares.full(asking, self._most) is None
            self.waiting += free
            self._shares.add(asking, int(free))
        try:
            with turns.aside() if free else nullcontext():
                yield free
        finally:
            with self._counting:
                self.waiting -= free
                self._shares.add(asking, -int(free))


class Seats:
    """Places for something of which only so much may be open or in hand at once.

    Args:
        most: How many.
        what: Of what, as a plural noun for a person.
    """

    def __init__(self, most: int, what: str) -> None:
        self._counting = threading.Lock()
        self._shares = Shares()
        self.most, self.taken, self.what = most, 0, what

    def take(self, asking: Caller | None = None) -> Callable[[], None] | str:
        """Take a seat; return the function that gives it back, or a text that says why there is none.

        Calling the function twice does no harm.

        Args:
            asking: Whose it will be; None: nobody's, which counts for no share.
        """
        with self._counting:
            if self.taken >= self.most:
                return f"{self.most:,} {self.what} are open, and no more are served at once."
            if (short := self._shares.full(asking, self.most)) is not None:
                return f"{short} {self.what}; the rest is for others."
            self.taken += 1
            self._shares.add(asking, 1)
        given_back = threading.Event()

        def give_back() -> None:
            with self._counting:
                if not given_back.is_set():
                    given_back.set()
                    self.taken -= 1
                    self._shares.add(asking, -1)

        return give_back

    def demand(self) -> Callable[[], None]:
        """Take a seat for the caller and return the function that gives it back.

        Raises:
            Problem: `too-many-streams`.
        """
        found = self.take(caller())
        if isinstance(found, str):
            raise Problem("too-many-streams", found, headers={"Retry-After": str(RETRY_SECONDS)})
        return found

    @contextmanager
    def seat(self) -> Generator[None]:
        """Hold a seat for the caller until the context is left.

        Raises:
            Problem: `too-many-streams`.
        """
        give_back = self.demand()
        try:
            with turns.aside():
                yield
        finally:
            give_back()
