"""The trusted side: starts children through a zygote, counts, caps, kills and decides. One thread serves all runs.

1. It imports no torch, unpickles nothing, opens no path that a child can shape.
2. Only what it saw itself is a fact. What the run says of itself is decoded in the thread that waits for the run.
3. It survives end-of-file, garbage and silence on every descriptor.
4. `run` may be called from any number of threads.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Self

from backprobe.record import BadRecord, FrameReader, Record
from store.runs.model import RunError
from workers.sandbox.levels.names import Confinement
from workers.sandbox.levels.oom_kills import count_oom_kills
from workers.sandbox.process import orphans
from workers.sandbox.process.ghosts import with_ghosts
from workers.sandbox.remote.boot import TRUSTED, Link
from workers.sandbox.supervisor.attempt import Again, Attempt
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.limit_text import most_weight, several_refused
from workers.sandbox.supervisor.memory import give_back_memory
from workers.sandbox.supervisor.outcome import Facts, Outcome, Stop, verdict
from workers.sandbox.supervisor.pipe import LiveOutput
from workers.sandbox.supervisor.selector import Watch

CANCEL_POLL_SECONDS: Final = 0.05

BIG_RECORD_BYTES: Final = 1 << 20
"""Decoding more than this leaves tens of megabytes in the allocator's hands: 7 MB of record kept 25 of them."""

_LIMIT_OF: Final[Mapping[str, Stop]] = {"too-many-rows": "record_rows", "record-too-heavy": "record_weight"}
"""By the code of a refusal that is no fault of the stream's form."""

OnRows = Callable[[str, Sequence[Any]], None]

_log: Final = logging.getLogger(__name__)


class Supervisor:
    """Runs programs in children of a warm process.

    Args:
        boot: Starts a zygote: `boot.exec_zygote` here, `executor_client.connect_executor` beside a container.
        confinement: What `boot` gives them; a child that is not found in it does not run.
        isolation: Facts about where children run, stored with each run beside its limits.
        gpu: Runs have devices: one run at a time, in a new process, without a limit on address space.
        ahead: In a pause a child is forked and locked down for whoever comes next.
        count_oom_kills: Counts what the kernel killed in the group that runs without a cgroup of their own are in.
        missed: Why it has no higher level where the settings would take one; empty: it has what they ask for.
    """

    def __init__(
        self,
        boot: Callable[[], Link],
        *,
        confinement: Confinement = TRUSTED,
        isolation: dict[str, Any] | None = None,
        gpu: bool = False,
        ahead: bool = True,
        missed: tuple[str, ...] = (),
        count_oom_kills: Callable[[], int] = count_oom_kills,
    ) -> None:
        orphans.make_undumpable()
        self._gpu = gpu
        self._isolation = isolation or {}
        self.confinement: Final = confinement
        self.missed = missed
        self.probe_id: str | None = None
        """Of the last proof that the level holds; stored with each run. None: none was made."""
        self._oom_kills_of_runs = 0
        """Processes that runs' own cgroups had killed for want of memory."""
        self._count_others = count_oom_kills
        self._others_before = count_oom_kills()
        self._watch = Watch(boot, confinement, one_shot=gpu, ahead=ahead)
        self._thread = threading.Thread(target=self._watch.serve, name="supervisor", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return itself: it is at work already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every child and zygote."""
        self.close()

    @property
    def failure(self) -> str | None:
        """Why no run can start now: the last boot of a warm process failed. None: it did not, or is not over."""
        return self._watch.pool.failure

    @property
    def oom_kills(self) -> int:
        """How many processes the kernel has killed for want of memory where programs run, since this was made."""
        return self._oom_kills_of_runs + max(0, self._count_others() - self._others_before)

    @property
    def warm_losses(self) -> int:
        """How many warm processes ended without being asked to, or did not start."""
        return self._watch.pool.losses

    @property
    def counts(self) -> Counter[str]:
        """Return both by name, as `store.admin.worker_tally` takes them."""
        return Counter(oom_kills=self.oom_kills, warm_losses=self.warm_losses)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of those that the next run would have; empty: none is ready."""
        current = self._watch.pool.current
        return () if current is None else current.devices

    def wait_warm(self, seconds: float) -> bool:
        """Wait until a run would start at once; False: not within so many seconds."""
        return self._watch.warm.wait(seconds)

    def run(
        self,
        job: Job,
        on_rows: OnRows | None = None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        """Run a program to its end; blocks.

        Args:
            job: What to run, and its limits.
            on_rows: Gets the record's rows as they are decoded, in this thread, as `FrameReader` says, and what was
                printed, as `LiveOutput` says; a second header: the run was started once more, and what came before is
                void.
            cancel: Set it to end the run; heard within 50 ms.
        """
        job = with_ghosts(job, self.confinement)
        if (refused := several_refused(job.limits, self.confinement)) is not None:
            return self._not_started(job, refused)
        attempt = Attempt(job, gpu=self._gpu, laid_out=job.on_disk and self.confinement.level == "process")
        ears = _Ears(attempt, on_rows)
        try:
            heard = self._await_end(attempt, ears, cancel)
        except BaseException:
            self._watch.abandon(attempt)
            raise
        canceled = heard.stop == "canceled" or (cancel is not None and cancel.is_set())
        outcome = self._outcome(job, heard, ears, canceled=canceled)
        del ears  # it holds every row a second time, by its key
        if heard.record_bytes > BIG_RECORD_BYTES:
            give_back_memory()
        return outcome

    def _await_end(self, attempt: Attempt, ears: _Ears, cancel: threading.Event | None) -> Facts:
        """Wait for the end of an attempt, decode its record meanwhile; never rely on the other thread for the end."""
        submitted_at = time.monotonic()
        self._watch.submit(attempt)
        while True:
            try:
                heard = attempt.inbox.get(timeout=CANCEL_POLL_SECONDS)
            except queue.Empty:
                heard = None
            if cancel is not None and cancel.is_set():
                self._watch.stop(attempt, "canceled")
            if isinstance(heard, Facts):
                return replace(heard, stop=ears.why_ended(heard.stop))
            ears.output.look(attempt.pipes)
            if heard is not None:
                if (stop := ears.hear(heard)) is not None:
                    self._watch.stop(attempt, stop)
                self._watch.continue_reading(attempt)
            elif (why := self._nobody_watches(submitted_at)) is not None and attempt.inbox.empty():
                _log.error("a run is given up: %s", why)
                attempt.kill_group()
                self._watch.abandon(attempt)
                return replace(attempt.facts(), broken=why)

    def _nobody_watches(self, submitted_at: float) -> str | None:
        if not self._thread.is_alive():
            return "the supervisor's thread has ended"
        return self._watch.describe_stall(submitted_at)

    def close(self) -> None:
        """End every child and zygote; runs in flight end as lost. A second time, nothing."""
        if self._thread.is_alive():
            self._watch.close()
            self._thread.join()

    def _outcome(self, job: Job, facts: Facts, ears: _Ears, *, canceled: bool) -> Outcome:
        record = ears.record()
        self._oom_kills_of_runs += facts.oom_kills
        level = self.confinement.level
        found = verdict(facts, job.limits, record, ears.refused, canceled=canceled, level=level)
        return Outcome(
            status=found.status,
            reason=found.reason,
            told_by=found.told_by,
            facts=facts,
            error=found.error,
            limit_hit=found.limit_hit,
            record=record,
            record_rows=ears.reader.rows,
            isolation=self._isolation_of(job, facts),
        )

    def _not_started(self, job: Job, refused: RunError) -> Outcome:
        return Outcome(
            status="failed",
            reason="processes",
            told_by="supervisor",
            facts=Facts(),
            error=refused,
            limit_hit="processes",
            isolation=self._isolation_of(job, Facts()),
        )

    def _isolation_of(self, job: Job, facts: Facts) -> dict[str, Any]:
        limits, seen = job.limits, facts.seen
        return {
            "level": self.confinement.level,
            "attested": seen is not None,
            "probe_id": self.probe_id,
            **self._isolation,
            "rlimits": {
                "cpu_seconds": limits.cpu_seconds,
                "memory_bytes": None if self._gpu else limits.memory_bytes,
                "file_bytes": 0 if self.confinement.level == "process" else limits.disk_bytes,
            },
            **({"gpu": {"devices": list(facts.devices), "exclusive": True}} if self._gpu else {}),
            "own_session": True,
            "environment": "empty",
            "private_root": self.confinement.private_root,
            "no_cgroup": self.confinement.no_cgroups or None,
            **({} if seen is None else asdict(seen)),
        }


class _Ears:
    """Decodes one run's record in the thread that waits for it."""

    def __init__(self, attempt: Attempt, on_rows: OnRows | None) -> None:
        self._attempt, self._on_rows, self.output = attempt, on_rows, LiveOutput(on_rows)
        self.refused: BadRecord | None = None
        self.stop: Stop | None = None
        """The limit that the record has passed, found here and nowhere else."""
        self.reader = self._fresh()

    def hear(self, heard: bytes | Again) -> Stop | None:
        """Take the next piece; why the child must be ended comes back."""
        if isinstance(heard, Again):
            self.refused, self.stop, self.reader = None, None, self._fresh()
            return None
        self._attempt.record_taken += len(heard)
        if self.refused is not None:
            return None
        try:
            self.reader.feed(heard)
        except BadRecord as error:
            self.refused = _alone(error)
            self.stop = _LIMIT_OF.get(error.code)
            return self.stop or "refused"
        return None

    def why_ended(self, stop: Stop | None) -> Stop | None:
        """Why the child was ended, now that all of its record was heard: it may have ended before it was told.

        Bytes are counted before they are decoded, so garbage that comes fast may pass its limit first. It is garbage.
        """
        if stop == "record_bytes" and self.refused is not None:
            return self.stop or "refused"
        return stop or self.stop

    def record(self) -> Record | None:
        """Return the part of the record that was valid."""
        try:
            return self.reader.record()
        except BadRecord as error:
            self.refused = self.refused or _alone(error)
            return None

    def _fresh(self) -> FrameReader:
        limits = self._attempt.job.limits
        return FrameReader(limits.record_bytes, limits.record_rows, self._on_rows, max_weight=most_weight(limits))


def _alone(error: BadRecord) -> BadRecord:
    """Return the refusal without the frames that it came through: they hold the reader and all of its rows.

    With them, and the refusal kept by one of them, a refused record stayed in memory until a full collection.
    """
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
