"""The only scheduler: every second it takes back what died, and wakes up who sleeps.

Each duty is a short transaction of its own and may fail alone; two reapers do no harm, each statement is fenced by the
run's status, but one of them leads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from store import runs, workers
from store.session import Database
from workers.leader import Leadership
from workers.rejudge import Rejudging

TURN_SECONDS: Final = 1.0
IDLE_WAKE_SECONDS: Final = 30.0
"""Between wake-ups for a queue that no live worker serves: a worker looks by itself when it starts."""

BEAT_FILE: Final = "reaper.beat"
"""In the home: touched after each round, for `backprobe reaper --check`."""

_log: Final = logging.getLogger(__name__)


class Reaper:
    """Does its round every second until it is stopped.

    Args:
        home: Where its lock and beat files are.
        publish: Sends a wake-up for a queue.
    """

    def __init__(self, database: Database, home: Path, publish: Callable[[str], None]) -> None:
        self._database, self._home, self._publish = database, home, publish
        self._leadership = Leadership(database, home)
        self._woken_at: dict[str, float] = {}
        self._silent_looked_at = 0.0
        self._rejudging = Rejudging(database)

    def serve(self, stop: threading.Event) -> None:
        """Work until `stop` is set."""
        while not stop.is_set():
            self._fenced("leading", self._round_if_leader)
            (self._home / BEAT_FILE).touch()
            stop.wait(TURN_SECONDS)
        self._leadership.close()

    def round(self) -> None:
        """Each duty once."""
        self._fenced("expiring leases", self._expire_leases)
        self._fenced("expiring queued runs", self._expire_queued)
        self._fenced("dropping silent workers", self._drop_silent)
        self._fenced("waking workers", self._wake)
        self._fenced("judging again", self._rejudging.turn)

    def _round_if_leader(self) -> None:
        if self._leadership.mine():
            self.round()

    def _fenced(self, what: str, duty: Callable[[], None]) -> None:
        try:
            duty()
        except Exception as error:  # noqa: BLE001 - one duty's failure must not stop the others, nor the next round
            _log.warning("%s failed: %s", what, type(error).__name__)

    def _expire_leases(self) -> None:
        expired = runs.expire_leases(self._database)
        for what, ids in (("requeued", expired.requeued), ("lost", expired.lost), ("canceled", expired.canceled)):
            if ids:
                _log.warning("leases ran out; %s: %s", what, ", ".join(ids))

    def _expire_queued(self) -> None:
        lost = runs.expire_queued(self._database)
        if lost:
            _log.warning("no worker came; lost: %s", ", ".join(lost))

    def _drop_silent(self) -> None:
        now = time.monotonic()
        if now - self._silent_looked_at < workers.SILENT_SECONDS / 6 and self._silent_looked_at:
            return
        self._silent_looked_at = now
        with self._database.begin() as transaction:
            gone = workers.drop_silent(transaction)
        if gone:
            _log.warning("silent workers: %s", ", ".join(gone))

    def _wake(self) -> None:
        """Per queue as many wake-ups as could be answered; at least one if anything waits."""
        with self._database.read() as transaction:
            depths = runs.depths(transaction)
            offers = {depth.queue: workers.offered(transaction, depth.queue) for depth in depths}
        now = time.monotonic()
        for depth in depths:
            offer = offers[depth.queue]
            pause = 0.0 if offer.workers else IDLE_WAKE_SECONDS
            if not depth.claimable or now - self._woken_at.get(depth.queue, -IDLE_WAKE_SECONDS) < pause:
                continue
            self._woken_at[depth.queue] = now
            for _ in range(max(1, min(depth.claimable, offer.idle_slots))):
                self._publish(depth.queue)
