"""The child that is forked, locked down and attested in a pause, before there is a program for it.

Owned by the supervisor's selector thread. The child is an attempt in flight like any other, that nobody waits for; the
run that comes next adopts it, if it is to be limited as the run before it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from workers.sandbox.supervisor.attempt import Attempt
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Stop
from workers.sandbox.supervisor.pool import Warm
from workers.sandbox.supervisor.streams import Streams

AHEAD_SECONDS: Final = 0.04
"""Nothing has run for so long: the next child is made before anybody asks for it."""

_log: Final = logging.getLogger(__name__)


class Ahead:
    """At most one child that waits for its program.

    Args:
        flying: Every attempt in flight by serial, with its warm process; the watch's own.
        stop: Called when a child is not to be had any more.
        wanted: False: none is made.
    """

    def __init__(
        self,
        flying: dict[int, tuple[Attempt, Warm]],
        streams: Streams,
        stop: Callable[[Attempt, Stop], None],
        *,
        wanted: bool,
    ) -> None:
        self._flying, self._streams, self._stop, self._wanted = flying, streams, stop, wanted
        self.made: Attempt | None = None
        self._like = Job(files={}, entry="")
        """The last that was started: the next one will want limits like these."""
        self._landed_at = 0.0
        self._failed = False
        """The last did not get as far as to be adopted; there is no other until something else has run."""

    def is_due(self, zygote: Warm | None) -> bool:
        """Return whether a child is to be made now or soon: nothing runs, and the warm process has loaded all."""
        if not self._wanted or self._failed or self._flying or zygote is None or zygote.ready is None:
            return False
        return not zygote.ready.warms_on and not zygote.worn

    @property
    def all_wait(self) -> bool:
        """Nothing is in flight but what waits for its program: no clock runs."""
        return not self._flying or (len(self._flying) == 1 and self.made is not None and self.made.parked)

    def wanted_on(self, zygote: Warm | None, now: float) -> Attempt | None:
        """Return the attempt to start now, if it is time. Give up one whose warm process is to go."""
        made = self.made
        if made is not None and made.serial in self._flying and self._flying[made.serial][1] is not zygote:
            self._stop(made, "canceled")
        if not self.is_due(zygote) or now - self._landed_at < AHEAD_SECONDS:
            return None
        self.made = Attempt(replace(self._like, files={}, arguments=(), stdin=None), gpu=False, ahead=True)
        return self.made

    def adopted_by(self, attempt: Attempt, zygote: Warm) -> bool:
        """Start a run in the child that waits; False if none waits, or none like it, and the run needs another."""
        self._like, self._failed = attempt.job, False
        made, self.made = self.made, None
        if made is None:
            return False
        serial = made.serial
        try:
            fits = self._flying[serial][1] is zygote and made.stop is None and made.would_do(attempt)
            if fits:
                attempt.adopt(made, time.monotonic())
        except OSError:  # no room for the program
            fits = False
        if not fits:
            self._stop(made, "canceled")
            return False
        zygote.attempts[serial] = attempt
        self._flying[serial] = attempt, zygote
        self._streams.hand_over(attempt)
        return True

    def note_landing(self, attempt: Attempt) -> None:
        """Note that an attempt is no longer in flight. If one made ahead ended by itself, stop making them."""
        self._landed_at = time.monotonic()
        if not attempt.ahead:
            return
        if attempt is self.made:
            self.made = None
        if attempt.stop != "canceled" and (attempt.ended is not None or not attempt.parked):
            self._failed = True
            _log.warning("no child is made ahead until the next run: %s", attempt.broken or "it ended")
