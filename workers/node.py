"""A worker process as the database and its own tasks know it: its name, sandbox, leases, and what it offers."""

from __future__ import annotations

import logging
import os
import platform
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from store.admin import workers
from store.admin.worker_tally import COUNTS
from store.database.missing_module import describe_class
from store.database.session import Database
from store.runs import lifecycle
from store.telemetry.spans import Spans
from workers.admission import Admission
from workers.lease import Keeper
from workers.live_feed import Feeds
from workers.machine_memory import machine_bytes, memory_for_runs
from workers.sandbox.levels.canary import run_canary
from workers.sandbox.levels.names import up_to
from workers.sandbox.supervisor.supervisor import Supervisor

BEAT_SECONDS: Final = 5.0
PROBE_SECONDS: Final = 600.0
"""Between two attacks on our own sandbox; the kernel under it can be reconfigured at any time."""
SOON_SECONDS: Final = 2.0
LATE_SECONDS: Final = 60.0
"""What did not hold, or could not be given, is looked at again after the first, then twice as late, up to the other."""

BOOT_SECONDS: Final = 60.0
LEAVE_SECONDS: Final = 5.0
WARM_SECONDS: Final = 30.0
"""How long a task waits for a sandbox that boots; then the wake-up is dropped, and the reaper sends another."""

_log: Final = logging.getLogger(__name__)


class Node:
    """One worker process.

    Args:
        queue: The queue of runs it serves; slots: runs at once.
        publish: Sends a wake-up for a queue.
        better: A supervisor at a higher level than this one, if the machine can give that by now.
        spans: Takes the spans of attempts; None: no spans are sent.
    """

    def __init__(
        self,
        database: Database,
        supervisor: Supervisor,
        *,
        queue: lifecycle.Queue,
        slots: int,
        lease_seconds: float,
        publish: Callable[[str], None],
        better: Callable[[Supervisor], Supervisor | None] = lambda _: None,
        spans: Spans | None = None,
    ) -> None:
        self.database, self.supervisor = database, supervisor
        self._better = better
        self._lent: Counter[Supervisor] = Counter()
        self._swapping = threading.Lock()
        self.queue: Final = queue
        self.slots, self._lease_seconds = slots, lease_seconds
        self._publish = publish
        there = supervisor.confinement.memory_bytes
        self.admission = Admission(there or memory_for_runs(machine_bytes()))
        """Of runs, by the memory of the machine, or of the executor's container; the settings may set another."""
        self.spans: Final = spans or Spans(None, "")
        self.id = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.keeper = Keeper(database, self._beat)
        self.feeds = Feeds(database)
        self._counted_before: Counter[str] = Counter()
        """What supervisors have counted that were replaced."""
        self.draining = threading.Event()
        self._beat_at = 0.0
        self._offers: tuple[str, ...] = ()
        self._probe: dict[str, Any] = {}
        self._wrong: str | None = None
        """Why the last look at the sandbox was not good; None: it was, or none has ended."""
        self._not_better: str | None = None
        """Why a higher level that could be given did not hold; runs get the one that they have."""
        self._missed: tuple[str, ...] = ()
        """What was said last of the levels that are not given."""
        self._swapped = False
        """The supervisor is another than the one that was handed over, and ours to close."""
        self._prover = threading.Thread(target=self._prove, name="canary", daemon=True)

    def start(self) -> None:
        """Try the sandbox, in a thread, then begin to offer it; keep leases from now on."""
        self.keeper.start()
        self.feeds.start()
        self._prover.start()

    def close(self) -> None:
        """Take this worker's row away."""
        self.draining.set()
        self.feeds.stop()
        self._prover.join(LEAVE_SECONDS) if self._prover.ident is not None else None
        with self._swapping:
            self.supervisor.close() if self._swapped else None
        self.keeper.close()
        self.spans.close()
        try:
            with self.database.begin() as transaction:
                workers.leave(transaction, self.id)
        except Exception as error:  # noqa: BLE001 - the reaper drops silent workers too
            if not self.database.away(error):
                _log.warning("the worker's row was not removed: %s", type(error).__name__)

    def claim(self, queue: lifecycle.Queue) -> lifecycle.Claim | None:
        """Claim the next run; None: nothing waits, this worker drains, or it cannot run anything now."""
        if self.draining.is_set() or not self.supervisor.wait_warm(WARM_SECONDS) or not self._offers:
            return None
        return self.admission.claim(
            partial(
                lifecycle.claim,
                self.database,
                self.id,
                queue=queue,
                lease_seconds=self._lease_seconds,
                levels=up_to(self.supervisor.confinement.level),
                devices=self._offers,
            )
        )

    @contextmanager
    def sandbox(self) -> Iterator[Supervisor]:
        """Yield the supervisor for one run. One that was replaced meanwhile is closed when its last run has ended."""
        with self._swapping:
            supervisor = self.supervisor
            self._lent[supervisor] += 1
        try:
            yield supervisor
        finally:
            with self._swapping:
                self._lent[supervisor] -= 1
                over = supervisor is not self.supervisor and not self._lent[supervisor]
            if over:
                supervisor.close()

    def wake(self, queue: str) -> None:
        """Say "look at this queue"; a broker that is away is the reaper's to make up for."""
        try:
            self._publish(queue)
        except Exception as error:  # noqa: BLE001 - whatever a broker raises, the run waits in the database
            _log.warning("wake-up not published: %s", describe_class(error))

    def drain(self, seconds: float) -> None:
        """Take no more runs; give those in hand so long, then hand them back. A second call does it at once."""
        if self.draining.is_set():
            self.keeper.end_all("released")
            return
        self.draining.set()
        self._beat_at = 0.0
        timer = threading.Timer(seconds, self.keeper.end_all, ["released"])
        timer.daemon = True
        timer.start()

    def _prove(self) -> None:
        """Offer devices while a program gives its known answer and the level holds; look again and again."""
        proved_at: float | None = None
        pause = SOON_SECONDS
        while not self.draining.is_set():
            try:
                self._take_better()
                now = time.monotonic()
                if proved_at is None or now - proved_at >= PROBE_SECONDS:
                    proved_at = now if self._proved() else None
            except Exception as error:  # noqa: BLE001 - this thread looks again, whatever was in the way: nobody else does
                _log.exception("the sandbox could not be looked at: %s", type(error).__name__)
            settled = proved_at is not None and not self.supervisor.missed
            self.draining.wait(PROBE_SECONDS if settled else pause)
            pause = SOON_SECONDS if settled else min(LATE_SECONDS, pause * 2)

    def _proved(self) -> bool:
        """Attack our own sandbox, and offer what holds; nothing, where something does not."""
        found = run_canary(self.supervisor, self.queue)
        if isinstance(found, str):
            self._complain(found)
            self._offers = ()
            self._beat_at = 0.0
            return False
        self._offer(found[0], found[1:])
        return bool(self._offers)

    def _take_better(self) -> None:
        """Go over to a higher level where the machine can give one by now, once it holds."""
        if (better := self._better(self.supervisor)) is None:
            return
        level = better.confinement.level
        better.wait_warm(BOOT_SECONDS)
        found = run_canary(better, self.queue)
        if isinstance(found, str):
            if found != self._not_better:
                _log.warning("isolation %s was tried and is not given: %s (it is tried again)", level, found)
            self._not_better = found
            self._beat_at = 0.0
            better.close()
            return
        self._not_better = None
        with self._swapping:
            old, self.supervisor, self._swapped = self.supervisor, better, True
            self._counted_before += old.counts
            idle = not self._lent[old]
        _log.warning("isolation %s is available now: every run gets it", level)
        self._offer(found[0], found[1:])
        if idle:
            old.close()

    def _complain(self, why: str) -> None:
        """Say what is wrong with the sandbox, once for as long as it is."""
        if why not in (self._wrong, self.supervisor.failure):  # that of the warm process was said where it was seen
            _log.error(
                "the sandbox does not work: %s (it is tried again, in pauses that grow to %.0f s)", why, LATE_SECONDS
            )
        self._wrong = why

    def _offer(self, torch: str, devices: list[str]) -> None:
        first = not self._offers
        self._probe = {
            "torch": torch,
            "devices": devices,
            "wall_clock": time.time(),
            "probe_id": self.supervisor.probe_id,
            "cgroup": self.supervisor.confinement.cgroups,
            "no_cgroup": self.supervisor.confinement.no_cgroups,
            "memory_bytes": self.admission.memory_bytes,
        }
        if missed := self.supervisor.missed:
            if missed != self._missed:
                _log.warning(
                    "runs execute at isolation level %s: %s", self.supervisor.confinement.level, "; ".join(missed)
                )
            self._missed = missed
        if self.queue == "cpu" or devices:
            self._offers = ("cpu",) if self.queue == "cpu" else ("cuda", *devices)
            self._wrong = None
        else:
            self._complain("no CUDA device can be used: this worker takes no run of the gpu queue")
        self._beat_at = 0.0
        if first:
            self.wake(self.queue)

    def _counts(self) -> dict[str, int]:
        """Count what `store.admin.worker_tally` adds up, from the start of this worker on."""
        with self._swapping:
            found = self._counted_before + self.supervisor.counts
        return {name: found[name] for name in COUNTS}

    def _list_missing(self) -> list[str]:
        return [*self.supervisor.missed, *([self._not_better] if self._not_better is not None else [])]

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at < BEAT_SECONDS and self._beat_at:
            return
        wrong = self.supervisor.failure or self._wrong
        works = bool(self._offers) and wrong is None
        state = "ready" if works else "starting" if wrong is None else "broken"
        node = workers.WorkerNode(
            id=self.id,
            queues=(self.queue,),
            levels=up_to(self.supervisor.confinement.level) if works else (),
            devices=self._offers if works else (),
            versions={"python": platform.python_version(), "torch": self._probe.get("torch", "")},
            slots=self.slots,
            busy=self.keeper.held_runs,
            draining=self.draining.is_set(),
            probe=self._probe
            | {"sandbox": state, "why": wrong, "missed": self._list_missing(), "counts": self._counts()},
        )
        with self.database.begin() as transaction:
            workers.beat(transaction, node)
        self._beat_at = now
