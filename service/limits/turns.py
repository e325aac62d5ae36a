"""Whose request a thread takes next, and how many of one tenant are at work at the same time.

    reads came as a1 a2 a3 a4 b1, a tenant may have 2 at work
    ->  a1 b1 are at work; a2 begins when both are answered, or after 25 ms; then a3 waits for a1 or a2

1. Tenants take turns; of one tenant the request that came first is first.
2. While another tenant asks, or has asked within ten seconds, a tenant has at most `most` reads at work, and half as
   many writes, which take turns at SQLite: Python runs one thread at a time, so each more of one tenant makes every
   other's slower. They go one after the other where they are short (`service.limits.steps`). One that asks alone leaves
   a quarter of the threads free, for whoever comes.
3. Frames and ends of recorders' runs are counted apart: a tenant's other requests do not delay its training jobs.
   Health checks are not counted, and are first.
4. A request that waits for a run's end, or for its client to read, is not at work; nor is one that has one of the few
   seats of `service.limits.seats`, which bound what takes long.
5. One that was held back for 30 s is refused when its turn comes: its client has given up, or soon will.

Whose a request is, is known as in `service.limits.request_bodies`; all of which it is not known take turns as one.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from waitress.utilities import Error

from service.limits.request_bodies import credentials
from service.limits.steps import STEP_SECONDS, Lane, Pulse, Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from waitress.channel import HTTPChannel
    from waitress.task import ThreadedTaskDispatcher

    class Waiting(HTTPChannel):
        """A connection, `service.server.connections.Channel`: its request waits for a thread, or does not."""

        waits: bool

    from service.limits.request_bodies import Senders

MOST_AT_WORK: Final = 2
"""Reads of one tenant, while others ask (`bench/results/fairness.md`)."""

ASKING_SECONDS: Final = 10.0
"""How long a tenant counts as asking after its last request."""

LONGEST_SECONDS: Final = 30.0
"""For which a request may be held back."""

HEALTH: Final = frozenset({"/healthz", "/readyz"})
"""Asked by health checks that hold no key; they tell nothing about anyone's runs."""

OF_MACHINES: Final = HEALTH | {"/metrics"}
"""Asked every few seconds, whether anybody works or not."""

_RECORDING: Final = re.compile(r"/v1/runs/[^/]+/(?:frames/[0-9]+|end)")


class HeldTooLong(Error):
    """The requests of this tenant did not become fewer within 30 s."""

    code = 503
    reason = "Service Unavailable"
    problem = "too-many-at-work"


_CHECKS: Final = Lane("health", None)
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_current = threading.local()
"""`work`: what this thread has in hand; None while it waits for something."""


class Work:
    """One request on its way through a thread; the task that waitress's dispatcher runs."""

    def __init__(self, turns: Turns, channel: Waiting, lane: Lane, since: float) -> None:
        self._turns, self._channel = turns, channel
        self.lane, self.since, self.held_back = lane, since, False
        self.began_at = since

    def begins(self, at: float) -> None:
        """Note that the request no longer waits."""
        self.began_at = at
        self._channel.waits = False

    def service(self) -> None:
        """Answer it."""
        _current.work = self
        try:
            if self._turns.is_too_late(self):
                request: Any = self._channel.requests[0]
                request.error = HeldTooLong("this tenant had all at work that it may have for 30 s")
            self._channel.service()
        finally:
            _current.work = None
            self._turns.leave(self.lane, goes_on=True, began_at=self.began_at)

    def cancel(self) -> None:
        """Cancel the request because the server stops: it gets no answer."""
        self._channel.cancel()

    @contextmanager
    def aside(self) -> Generator[None]:
        """Not at work, until the context is left."""
        _current.work = None
        self._turns.leave(self.lane, goes_on=False)
        try:
            yield
        finally:
            self._turns.enter(self.lane)
            _current.work = self


@contextmanager
def aside() -> Generator[None]:
    """Do not count what this thread does as work on its request, until the context is left."""
    work: Work | None = getattr(_current, "work", None)
    if work is None:
        yield
        return
    with work.aside():
        yield


class Turns:
    """Requests that wait for a thread, in place of the queue of waitress's dispatcher and under its lock.

    Args:
        senders: Who is known.
        dispatcher: Whose threads take the requests.
        most: Reads of one tenant at work, while others ask; writes are half as many, and one at least.
        alone: Reads, and writes, of one tenant at work, while nobody else asks.
        step: As of `Steps`.
        clock: Seconds that only grow.

    Attributes:
        held_back: Requests so far that waited because their tenant had its share at work.
        refused: Those of them that waited too long.
    """

    def __init__(
        self,
        senders: Senders,
        dispatcher: ThreadedTaskDispatcher,
        *,
        most: int,
        alone: int,
        step: float = STEP_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._senders, self._most, self._alone, self._clock = senders, most, alone, clock
        self._waiting: dict[Lane, deque[Work]] = {}
        self._at_work: Counter[Lane] = Counter()
        self._asked_at: dict[int | None, float] = {}
        """When each tenant asked last, the latest at the end."""
        self._steps = Steps(step, clock)
        self._pulse = Pulse(self._look_again)
        self._stopping = False
        self.held_back = self.refused = 0
        self._free: threading.Condition = dispatcher.queue_cv
        with self._free:
            dispatcher.queue = self  # type: ignore[assignment] what the dispatcher uses of a deque is here

    def __len__(self) -> int:
        """Count the requests that wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def waiting(self) -> int:
        """The same, for who does not hold the dispatcher's lock."""
        with self._free:
            return len(self)

    def __bool__(self) -> bool:
        """One of them may begin."""
        return any(self._room(lane) > 0 for lane in self._waiting)

    def append(self, channel: Waiting) -> None:
        """Let the first request of this connection wait."""
        request: Any = channel.requests[0]
        path: str = getattr(request, "path", "")  # a request that could not be read has none
        lane = self._lane(getattr(request, "command", "GET"), path, request.headers)
        work = Work(self, channel, lane, self._clock())
        if path not in OF_MACHINES:
            self._asked_at.pop(lane.tenant, None)
            self._asked_at[lane.tenant] = work.since
            while next(iter(self._asked_at.values())) < work.since - ASKING_SECONDS:
                silent = next(iter(self._asked_at))
                del self._asked_at[silent]
                self._steps.forget(silent)
        its = self._waiting.setdefault(lane, deque())
        work.held_back = self._free_of(lane) <= len(its)
        self.held_back += work.held_back
        its.append(work)
        channel.waits = True
        if self._room(lane) < len(its):
            self._pulse.start()

    def popleft(self) -> Work:
        """Take the next request that may begin; its tenant is the last to have another."""
        lane = _CHECKS if _CHECKS in self._waiting else next(lane for lane in self._waiting if self._room(lane) > 0)
        its = self._waiting.pop(lane)
        found = its.popleft()
        found.begins(self._clock())
        if its:
            self._waiting[lane] = its
        self._at_work[lane] += 1
        self._steps.record_begin(lane)
        if self._waiting:
            self._pulse.start()
        return found

    def stop(self) -> None:
        """Hold nothing back any more: what still waits is to be canceled."""
        with self._free:
            self._stopping = True
            self._pulse.stop()

    def enter(self, lane: Lane) -> None:
        """Count a request of this lane as at work again."""
        with self._free:
            self._at_work[lane] += 1

    def leave(self, lane: Lane, *, goes_on: bool, began_at: float | None = None) -> None:
        """Count a request of this lane as no longer at work.

        Args:
            lane: Its.
            began_at: When it began, if it has ended now.
            goes_on: The thread that calls takes a request next; one that does not leaves that to another.
        """
        with self._free:
            self._at_work[lane] -= 1
            if began_at is not None:
                self._steps.record_end(lane, began_at)
            if not self._at_work[lane]:
                del self._at_work[lane]
            ready = sum(min(len(its), max(0, self._room(tenant_id))) for tenant_id, its in self._waiting.items())
            if ready > goes_on:
                self._free.notify()

    def is_too_late(self, work: Work) -> bool:
        """Return whether the request was held back for too long; then count it as refused."""
        if not work.held_back or self._clock() - work.since <= LONGEST_SECONDS:
            return False
        with self._free:
            self.refused += 1
        return True

    def _lane(self, method: str, path: str, headers: Mapping[str, str]) -> Lane:
        if path in HEALTH:
            return _CHECKS
        tenant = self._senders.tenant(credentials(headers.get("AUTHORIZATION"), headers.get("COOKIE")))
        if _RECORDING.fullmatch(path):
            return Lane("recording", tenant)
        return Lane("reads" if method in _READS else "writes", tenant)

    def _room(self, lane: Lane) -> int:
        """How many more of this lane may begin now."""
        room = self._free_of(lane)
        if lane == _CHECKS or self._stopping or room <= 0 or not self._others_ask(lane.tenant):
            return room
        at_work = [number for number in self._at_work if number != _CHECKS]
        return int(self._steps.may_begin(lane, at_work, self._waiting))

    def _free_of(self, lane: Lane) -> int:
        """How many more of this lane may be at work."""
        if lane == _CHECKS or self._stopping:
            return len(self._waiting.get(lane, ())) + 1
        most = max(1, self._most // 2) if lane.name == "writes" else self._most
        return (most if self._others_ask(lane.tenant) else self._alone) - self._at_work[lane]

    def _look_again(self) -> bool:
        with self._free:
            if self:
                self._free.notify()
            return bool(self._waiting)

    def _others_ask(self, tenant: int | None) -> bool:
        if any(lane.tenant != tenant for lane in self._at_work if lane != _CHECKS):
            return True
        since = self._clock() - ASKING_SECONDS
        return any(other != tenant and at >= since for other, at in islice(reversed(self._asked_at.items()), 2))
