"""Leases of the runs in hand: renewed, listened to for cancels, and given up in time.

1. The keeper's thread talks to the database: a heartbeat every third of the lease, and twice a second whether somebody
   asked for the run's end.
2. The watchdog's thread touches neither database nor broker. It notes when the last good heartbeat *began*, and ends
   the child before the lease can have run out, whatever the reason: database away, keeper stuck, another owner.
3. `Lease.stop` is what the child hears; `Lease.why` says which of the four reasons set it first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Literal

from store.database.session import Database
from store.runs import lifecycle

Why = Literal["canceled", "released", "fenced-out"]

LOOK_SECONDS: Final = 0.4
"""Between two looks whether a run's end was asked for; it is heard within 1 s."""

MARGIN_SECONDS: Final = 3.0
"""Before the lease's end, when the child must be gone: killing takes less."""

_log: Final = logging.getLogger(__name__)


class Lease:
    """One run in hand."""

    def __init__(self, claim: lifecycle.Claim) -> None:
        self.claim = claim
        self.stop = threading.Event()
        self.why: Why | None = None
        self.renewed_at = time.monotonic()
        """When the last heartbeat that succeeded began."""
        self._deciding = threading.Lock()

    def end(self, why: Why) -> None:
        """End the child; the first reason stays, but that nobody owns the run any more is always true."""
        with self._deciding:
            if self.why is None or why == "fenced-out":
                self.why = why
        self.stop.set()

    @property
    def margin_seconds(self) -> float:
        """How long before its end the lease is given up."""
        return min(MARGIN_SECONDS, self.claim.lease_seconds / 3)

    @property
    def safe(self) -> bool:
        """Nobody else can own the run yet."""
        return time.monotonic() - self.renewed_at < self.claim.lease_seconds - self.margin_seconds


class Keeper:
    """Keeps every lease of this process.

    Args:
        beat: Called once per turn of the keeper's thread, about twice a second: the worker's own heartbeat.
    """

    def __init__(self, database: Database, beat: Callable[[], None]) -> None:
        self._database, self._beat = database, beat
        self._leases: dict[int, Lease] = {}
        self._ended: Why | None = None
        """Every child was ended for this reason, and so is each that a claim under way would still start."""
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, name="keeper", daemon=True),
            threading.Thread(target=self._watch, name="watchdog", daemon=True),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop keeping; leases then run out by themselves."""
        self._closed.set()
        for thread in self._threads:
            thread.join(5)

    def hold(self, claim: lifecycle.Claim) -> Lease:
        """Keep a claim until `drop`."""
        lease = Lease(claim)
        self._leases[claim.run_id] = lease
        if claim.cancel_requested:
            lease.end("canceled")
        if self._ended is not None:
            lease.end(self._ended)
        return lease

    def drop(self, lease: Lease) -> None:
        """Forget a lease that was finished or given back."""
        self._leases.pop(lease.claim.run_id, None)

    def end_all(self, why: Why) -> None:
        """End every child, those of runs that are just being claimed too."""
        self._ended = why
        for lease in list(self._leases.values()):
            lease.end(why)

    @property
    def held_runs(self) -> int:
        """Runs in hand."""
        return len(self._leases)

    def _keep(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            for lease in list(self._leases.values()):
                self._renew(lease)
            self._guard_call("the worker's heartbeat", self._beat)

    def _renew(self, lease: Lease) -> None:
        claim, began = lease.claim, time.monotonic()
        if began - lease.renewed_at < claim.lease_seconds / 3:
            self._guard_call("a look for cancels", lambda: self._listen(lease))
            return
        try:
            beat = lifecycle.heartbeat(self._database, claim)
        except lifecycle.FencedOut:
            lease.end("fenced-out")
        except Exception as error:  # noqa: BLE001 - the database is away: try again; the watchdog counts the time
            if not self._database.away(error):
                _log.warning("heartbeat of %s failed: %s", claim.public_id, type(error).__name__)
        else:
            lease.renewed_at = began
            if beat.cancel_requested:
                lease.end("canceled")

    def _listen(self, lease: Lease) -> None:
        claim = lease.claim
        with self._database.read() as transaction:
            row = lifecycle.get(transaction, claim.public_id, tenant_id=claim.tenant_id)
        if row is not None and row.cancel_requested_at is not None:
            lease.end("canceled")

    def _guard_call(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the keeper's thread must live on: leases depend on it
            if not self._database.away(error):
                _log.warning("%s failed: %s", what, type(error).__name__)

    def _watch(self) -> None:
        while not self._closed.wait(0.1):
            for lease in list(self._leases.values()):
                if not lease.safe and lease.why != "fenced-out":
                    _log.warning("lease of %s is about to run out: its child is ended", lease.claim.public_id)
                    lease.end("fenced-out")
