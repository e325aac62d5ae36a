"""When a tenant's next request begins beside what is at work: one after the other, and after those of who waits less.

    a asks without a pause, b once:  a1 | b1 comes | a1 is answered | b1 is answered | a2 begins

1. Python runs one thread at a time. A request beside which one other is at work all the time takes twice as long; one
   that has only to wait for the end of the other's takes one and a half times.
2. So a tenant begins no second request while its first is at work, and none while a tenant of which nothing waits has
   something at work: a tenant that sends requests without a pause is answered between the requests of
   tenants that pause.
3. Both hold for `STEP_SECONDS` from the beginning of its last one: what takes longer waits for a database or a client,
   or is long, and holds nobody up. However many others ask, a tenant begins forty short ones a second.
4. After one that took longer, others go first for as long as it took, up to `REST_SECONDS`: audits of a hundred items
   hold a SQLite file for 40 ms each.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

STEP_SECONDS: Final = 0.025
REST_SECONDS: Final = 0.25
LOOK_SECONDS: Final = 0.01
"""Between two looks at the clock, while a request waits for it."""


class Lane(NamedTuple):
    """What is counted together. `tenant` None: all of whom it is not known."""

    name: str
    tenant: int | None


class Steps:
    """Until when each tenant lets others go first.

    Args:
        seconds: For which its next one lets others go first.
        clock: Seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._rests_until: dict[tuple[int | None, bool], float] = {}

    def record_begin(self, lane: Lane) -> None:
        """Record that a request of the lane has begun now."""
        self._rest(lane, self._seconds)

    def record_end(self, lane: Lane, began_at: float) -> None:
        """Record that a request of the lane, begun at `began_at`, has ended."""
        took = self._clock() - began_at
        if took > self._seconds > 0:
            self._rest(lane, min(took, REST_SECONDS))

    def _rest(self, lane: Lane, seconds: float) -> None:
        kin = _kin(lane)
        self._rests_until[kin] = max(self._rests_until.get(kin, 0.0), self._clock() + seconds)

    def forget(self, tenant: int | None) -> None:
        """Forget a tenant that has not asked for long."""
        for recording in (False, True):
            self._rests_until.pop((tenant, recording), None)

    def may_begin(self, lane: Lane, at_work: Collection[Lane], waiting: Collection[Lane]) -> bool:
        """Whether its next one goes now, or lets others go first.

        Args:
            lane: Of which one waits.
            at_work: Lanes of which something is at work. waiting: of which something waits.
        """
        if self._clock() >= self._rests_until.get(_kin(lane), 0.0):
            return True
        wanting = {other.tenant for other in waiting}
        return not any(
            _kin(other) == _kin(lane) if other.tenant == lane.tenant else other.tenant not in wanting
            for other in at_work
        )


def _kin(lane: Lane) -> tuple[int | None, bool]:
    """Return what may not run at once: a tenant's reads and writes, and apart from them what its recorders send."""
    return lane.tenant, lane.name == "recording"


class Pulse:
    """Looks again after a short while, in a thread that rests while nothing waits for that.

    Args:
        look: Has begun what may begin by now. Whether something still waits.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._wanted, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Something waits; called under a lock that `look` takes."""
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="turns", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._wanted.set()

    def _beat(self) -> None:
        while self._wanted.wait() and not self._over.wait(LOOK_SECONDS):
            self._wanted.clear()
            if self._look():
                self._wanted.set()
