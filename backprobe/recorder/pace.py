"""When something is sent: how long frames are gathered, and how long a service that is away is left alone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

LEAST_SECONDS: Final = 2.0
MOST_SECONDS: Final = 180.0
SHARE: Final = 0.15
"""Frames are gathered for this share of the time since the start, between the two bounds above: 1,000 steps are then at
most some 50 requests for steps of up to 3 s, and a request in three minutes for longer ones."""

SOON_BYTES: Final = 256 << 10
"""That are sent after `LEAST_SECONDS`, however long the job goes on: a step was taken in full."""

RANK_BEGINS_SECONDS: Final = 0.05
MOST_BEGINS_SECONDS: Final = 10.0
RANK_ENDS_SECONDS: Final = 0.02
MOST_ENDS_SECONDS: Final = 1.5
"""By how much each rank of a job sends its first frames, and its last ones, after the rank before it, and at most: what
64 ranks send at the same moment is answered one after the other, so each would wait for all others."""

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
_LATER: Final = 0.5
"""By up to this part later than it asked for a service is asked again."""


class Pace:
    """How long frames are gathered before they are sent.

        waiting      since the start   since the last request
        1 KiB        5 s               2 s        -> sent
        1 KiB        100 s             2 s        -> after 15 s
        300 KiB      100 s             2 s        -> sent

    Args:
        clock: Seconds that only grow: a machine's clock may be set.
        stretch: All of it takes so many times as long, 1 or more: ranks of a job begin together and would all send at
            the same moments.
        later: Seconds by which the first request is later.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, stretch: float = 1.0, later: float = 0.0) -> None:
        self._clock, self._stretch, self._later = clock, stretch, later
        self._began = self._last = clock()

    def due_in(self, waiting_bytes: int) -> float:
        """Seconds until so many bytes are sent; 0: now."""
        return max(0.0, self._last + self._later + self.request_interval(waiting_bytes) - self._clock())

    def request_interval(self, waiting_bytes: int) -> float:
        """Seconds between two requests, where so many bytes wait."""
        if waiting_bytes >= SOON_BYTES:
            return self._stretch * LEAST_SECONDS
        return self._stretch * min(max(SHARE * (self._clock() - self._began), LEAST_SECONDS), MOST_SECONDS)

    def note_sent(self) -> None:
        """Something has been sent, or spooled."""
        self._last, self._later = self._clock(), 0.0


class Stagger(NamedTuple):
    """Seconds by which a rank sends later than the first one of its job."""

    begin: float
    end: float


def stagger(labels: Mapping[str, str]) -> Stagger:
    """Return how long the rank in a run's labels waits; no time for a job of one process."""
    text = labels.get("rank", "")
    rank = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    begin = min(rank * RANK_BEGINS_SECONDS, MOST_BEGINS_SECONDS)
    return Stagger(begin, min(rank * RANK_ENDS_SECONDS, MOST_ENDS_SECONDS))


class Backoff:
    """How long a service is left alone that did not answer or asked for time: 1, 2, 4 ... 60 s, spread by a half.

    Args:
        clock: As in `Pace`.
        spread: A number in [0, 1), by which many recorders do not come back at once.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, spread: Callable[[], float] = random.random
    ) -> None:
        self._clock, self._spread = clock, spread
        self._pause = FIRST_PAUSE_SECONDS
        self._until = clock()

    def seconds_left(self) -> float:
        """Seconds for which nothing may be sent; 0: it may."""
        return max(0.0, self._until - self._clock())

    def lengthen_pause(self, retry_after: float | None = None) -> None:
        """Lengthen the pause after a failed request. `retry_after`: seconds that the service asked for, or None."""
        pause = self._pause * (0.5 + self._spread())
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        asked = min(retry_after or 0.0, 10 * LONGEST_PAUSE_SECONDS)
        asked *= 1.0 + _LATER * self._spread()  # all whom it told the same would come at the same moment
        self._until = self._clock() + max(min(pause, LONGEST_PAUSE_SECONDS), asked)

    def note_answer(self) -> None:
        """Reset the pause: the service has taken something."""
        self._pause, self._until = FIRST_PAUSE_SECONDS, self._clock()
