"""The zygotes of one supervisor: one that forks, one that boots to replace it, and those whose last runs end.

Owned by the supervisor's selector thread. A zygote is replaced after `MAX_FORKS`, when it has grown, when it refuses to
fork, or when it is lost; the next one is warm before the old one goes, unless it is lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from workers.sandbox.process.messages import Ready
from workers.sandbox.remote.boot import Link, exit_text
from workers.sandbox.supervisor.attempt import Attempt

MAX_FORKS: Final = 500
MAX_GROWTH_BYTES: Final = 64 << 20
BOOT_SECONDS: Final = 60.0
END_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.5
"""Between two boots of which the first failed; twice as long after each that fails in a row."""

MOST_PAUSE_SECONDS: Final = 60.0
"""A boot takes a core for seconds; a driver or an executor that comes back is noticed within this."""

AGAIN_SECONDS: Final = 20.0
"""How long a run that lost its warm process waits for one that starts: an executor that is started again takes some."""

_log: Final = logging.getLogger(__name__)


class Warm:
    """One zygote, booting or warm.

    Attributes:
        ready: What it said when warm; None while it boots.
        attempts: Runs in flight on it, by serial.
        worn: To be replaced; it still forks until the next one is warm.
        unready: Why it cannot become warm, in its own words; None: it did not say.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.booted_at = time.monotonic()
        self.ready: Ready | None = None
        self.attempts: dict[int, Attempt] = {}
        self.forks = 0
        self.worn = False
        self.unready: str | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of its devices."""
        return () if self.ready is None else self.ready.devices

    def wear(self, rss_bytes: int) -> None:
        """Notice how much a fork and a run have left behind."""
        grown = self.ready is not None and rss_bytes - self.ready.rss_bytes > MAX_GROWTH_BYTES
        self.worn |= grown or self.forks >= MAX_FORKS


class Pool:
    """Keeps one warm zygote at hand.

    Args:
        boot: Starts one; OSError if it cannot.
        watch, unwatch: Called with a zygote whose socket is to be listened to, or no longer.
        one_shot: Each is good for one run, and no two runs are in flight at one time: they have a device.
    """

    def __init__(
        self,
        boot: Callable[[], Link],
        watch: Callable[[Warm], None],
        unwatch: Callable[[Warm], None],
        *,
        one_shot: bool = False,
    ) -> None:
        self._one_shot = one_shot
        self._boot, self._watch, self._unwatch = boot, watch, unwatch
        self.current: Warm | None = None
        self._coming: Warm | None = None
        self._leaving: list[Warm] = []
        self._ending: list[tuple[Link, float]] = []
        """Links that are closed, and until when their processes may take."""
        self._not_before = 0.0
        self._in_vain = 0
        """Boots in a row that no run was started on: each failed, or was lost before."""
        self.failure: str | None = None
        """Why the last boot failed; None since one was good."""
        self.losses = 0
        """How many warm processes ended without being asked to, or did not start."""

    @property
    def settled(self) -> bool:
        """One is warm, none comes or goes: nothing is to be done until somebody reports."""
        return self.current is not None and self._coming is None and not self._leaving and not self._ending

    @property
    def free(self) -> Warm | None:
        """The one that a run can be started on now; None: it has to wait."""
        taken = self._one_shot and any(old.attempts for old in self._leaving)
        if self.current is not None and self.current.link.guest is not None:
            taken |= bool(self.current.attempts)  # one at a time: what its sentry uses is that run's
        return None if taken else self.current

    def note_fork(self, zygote: Warm) -> None:
        """Count a run that was started on the zygote. A one-shot zygote must not fork again."""
        zygote.forks += 1
        self._in_vain = 0
        if self._one_shot:
            self.unfit(zygote)

    def tend(self, now: float) -> None:
        """Boot, replace and retire as needed; called on every turn of the selector thread."""
        if self._coming is not None and now - self._coming.booted_at > BOOT_SECONDS:
            self.drop_zygote(self._coming)
        wanted = self.current is None or self.current.worn
        if wanted and self._coming is None and now >= self._not_before:
            self._start(now)
        for old in [old for old in self._leaving if not old.attempts]:
            self._leaving.remove(old)
            self._end(old)
        for link, until in list(self._ending):
            if now > until:
                link.kill()
            if link.has_ended():
                self._ending.remove((link, until))

    def is_warm(self, zygote: Warm, ready: Ready) -> None:
        """Put a zygote that has booted in charge. One that is only warmer than before is measured again."""
        if self.failure is not None:
            _log.warning("a warm process has started: runs can be started again")
        known, zygote.ready, self.failure = zygote.ready is not None, ready, None
        if known:
            return
        self._coming = None
        if self.current is not None:
            self._leaving.append(self.current)
        self.current = zygote

    def unfit(self, zygote: Warm) -> None:
        """Stop a zygote from forking; its other runs go on."""
        if zygote is self.current:
            self.current = None
            self._leaving.append(zygote)

    def drop_zygote(self, zygote: Warm) -> None:
        """Kill a zygote that is gone, or is to be given up."""
        zygote.link.kill()
        self._end(zygote)
        self.losses += zygote in (self._coming, self.current)
        if zygote is self._coming:
            self._coming = None
            own = f"({exit_text(zygote.link)}); its own message is on stderr"
            self._note_failure(
                f"the warm process did not start{f': {zygote.unready}' if zygote.unready else f' {own}'}"
            )
        elif zygote is self.current:
            self.current = None
            if not zygote.forks:
                self._wait_longer()
        elif zygote in self._leaving:
            self._leaving.remove(zygote)

    def close(self) -> None:
        """End them all, and wait for that."""
        for zygote in [*self._leaving, self._coming, self.current]:
            if zygote is not None:
                self._end(zygote)
        for link, _ in self._ending:
            link.wait(END_SECONDS)
        self.current = self._coming = None
        self._leaving, self._ending = [], []

    def _end(self, zygote: Warm) -> None:
        self._unwatch(zygote)
        zygote.link.retire()
        self._ending.append((zygote.link, time.monotonic() + END_SECONDS))

    def _start(self, now: float) -> None:
        try:
            self._coming = Warm(self._boot())
        except OSError as error:
            self.losses += 1
            self._note_failure(f"no warm process could be started: {error}")
            return
        self._coming.booted_at = now
        self._watch(self._coming)

    def _note_failure(self, why: str) -> None:
        """Wait before the next boot; what was said already is not said again."""
        self._wait_longer()
        if why != self.failure:
            _log.error("%s (it is tried again, in pauses that grow to %.0f s)", why, MOST_PAUSE_SECONDS)
        self.failure = why

    def _wait_longer(self) -> None:
        self._not_before = time.monotonic() + min(MOST_PAUSE_SECONDS, PAUSE_SECONDS * 2.0 ** min(self._in_vain, 10))
        self._in_vain += 1
