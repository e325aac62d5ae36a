"""A worker process as the database and its own tasks know it: its name, sandbox, leases, and what it offers."""

from __future__ import annotations

import logging
import os
import platform
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from store import runs, workers
from store.session import Database
from store.spans import Spans
from workers.feed import Feeds
from workers.lease import Keeper
from workers.sandbox.job import Job
from workers.sandbox.levels import up_to
from workers.sandbox.probe import prove
from workers.sandbox.supervisor import Supervisor

BEAT_SECONDS: Final = 5.0
PROBE_SECONDS: Final = 600.0
"""Between two attacks on our own sandbox; the kernel under it can be reconfigured at any time."""
WARM_SECONDS: Final = 30.0
"""How long a task waits for a sandbox that boots; then the wake-up is dropped, and the reaper sends another."""

_log: Final = logging.getLogger(__name__)

_CANARY: Final = """\
import sys, torch
x = torch.arange(3.0, requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [0.0, 2.0, 4.0]
devices = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if "cuda" in sys.argv else []
print(torch.__version__, *devices, sep="\\n")
"""


class Node:
    """One worker process.

    Args:
        queue: The queue of runs it serves; slots: runs at once.
        publish: Sends a wake-up for a queue.
        spans: Takes what is told of attempts; None: nobody does.
    """

    def __init__(
        self,
        database: Database,
        supervisor: Supervisor,
        *,
        queue: runs.Queue,
        slots: int,
        lease_seconds: float,
        publish: Callable[[str], None],
        spans: Spans | None = None,
    ) -> None:
        self.database, self.supervisor = database, supervisor
        self.queue: Final = queue
        self.slots, self._lease_seconds = slots, lease_seconds
        self._publish = publish
        self.spans: Final = spans or Spans(None, "")
        self.id = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.keeper = Keeper(database, self._beat)
        self.feeds = Feeds(database)
        self.draining = threading.Event()
        self._beat_at = 0.0
        self._offers: tuple[str, ...] = ()
        self._levels: Final[tuple[runs.Level, ...]] = up_to(supervisor.confinement.level)
        self._probe: dict[str, Any] = {}
        self._wrong: str | None = None
        """Why the last look at the sandbox was not good; None: it was, or none has ended."""

    def start(self) -> None:
        """Try the sandbox, in a thread, then begin to offer it; keep leases from now on."""
        self.keeper.start()
        self.feeds.start()
        threading.Thread(target=self._prove, name="canary", daemon=True).start()

    def close(self) -> None:
        """Take this worker's row away."""
        self.feeds.stop()
        self.keeper.close()
        self.spans.close()
        try:
            with self.database.begin() as transaction:
                workers.leave(transaction, self.id)
        except Exception as error:  # noqa: BLE001 - the reaper drops silent workers too
            if not self.database.away(error):
                _log.warning("the worker's row was not removed: %s", type(error).__name__)

    def claim(self, queue: runs.Queue) -> runs.Claim | None:
        """The next run; None: nothing waits, this worker drains, or it cannot run anything now."""
        if self.draining.is_set() or not self.supervisor.wait_warm(WARM_SECONDS) or not self._offers:
            return None
        return runs.claim(
            self.database,
            self.id,
            queue=queue,
            lease_seconds=self._lease_seconds,
            levels=self._levels,
            devices=self._offers,
        )

    def wake(self, queue: str) -> None:
        """Say "look at this queue"; a broker that is away is the reaper's to make up for."""
        try:
            self._publish(queue)
        except Exception as error:  # noqa: BLE001 - whatever a broker raises, the run waits in the database
            _log.warning("wake-up not published: %s", type(error).__name__)

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
        while not self.draining.is_set():
            known = self._known_answer()
            holds = known is not None and self._holds()
            if known is not None and holds:
                self._offer(known[0], known[1:])
            else:
                self._offers = ()
                self._beat_at = 0.0
            self.draining.wait(PROBE_SECONDS if holds and self._offers else 5.0)

    def _known_answer(self) -> list[str] | None:
        """What the canary said: torch's version and its devices; None: it did not end well."""
        arguments = ("cuda",) if self.queue == "gpu" else ()
        outcome = self.supervisor.run(Job(files={"canary.py": _CANARY}, entry="canary.py", arguments=arguments))
        said = outcome.facts.stdout.decode("utf-8", "replace").splitlines()
        if outcome.status == "succeeded" and said:
            return said
        self._complain(outcome.facts.broken or f"a program of one line ended {outcome.status} {outcome.reason}")
        return None

    def _complain(self, why: str) -> None:
        """Say what is wrong with the sandbox, once for as long as it is."""
        if why not in (self._wrong, self.supervisor.failure):  # that of the warm process was said where it was seen
            _log.error("the sandbox does not work: %s", why)
        self._wrong = why

    def _holds(self) -> bool:
        """Every canary of the level is contained; level `none` claims nothing."""
        if self.supervisor.confinement.level == "none":
            return True
        proof = prove(self.supervisor)
        for breach in proof.breaches:
            _log.error("isolation %s does not hold: %s", self.supervisor.confinement.level, breach)
        if not proof.holds:
            self._wrong = f"isolation {self.supervisor.confinement.level} does not hold: {'; '.join(proof.breaches)}"
        self.supervisor.probe_id = proof.probe_id
        return proof.holds

    def _offer(self, torch: str, devices: list[str]) -> None:
        first = not self._offers
        self._probe = {
            "torch": torch,
            "devices": devices,
            "wall_clock": time.time(),
            "probe_id": self.supervisor.probe_id,
            "cgroup": self.supervisor.confinement.cgroups,
            "no_cgroup": self.supervisor.confinement.no_cgroups,
        }
        if self.queue == "cpu" or devices:
            self._offers = ("cpu",) if self.queue == "cpu" else ("cuda", *devices)
            self._wrong = None
        else:
            self._complain("no CUDA device can be used: this worker takes no run of the gpu queue")
        self._beat_at = 0.0
        if first:
            self.wake(self.queue)

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
            levels=self._levels if works else (),
            devices=self._offers if works else (),
            versions={"python": platform.python_version(), "torch": self._probe.get("torch", "")},
            slots=self.slots,
            busy=self.keeper.held,
            draining=self.draining.is_set(),
            probe={**self._probe, "sandbox": state, "why": wrong},
        )
        with self.database.begin() as transaction:
            workers.beat(transaction, node)
        self._beat_at = now
