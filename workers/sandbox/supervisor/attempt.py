"""One try at one job: its pipes, counters and clock. Owned by the supervisor's selector thread.

Only `inbox` and the two byte counts of the record cross to the thread that waits: that thread decodes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
from typing import Final

from msgspec import structs

from workers.sandbox.gvisor.runsc import Guest
from workers.sandbox.gvisor.sentry import SENTRY_BYTES, SentryFacts, SentryView
from workers.sandbox.levels.attestation import ChildFacts
from workers.sandbox.levels.cgroups import Used
from workers.sandbox.process.messages import ChildEnded, Fork, close_all
from workers.sandbox.supervisor.job import Job, fill, memory
from workers.sandbox.supervisor.outcome import Facts, Stop
from workers.sandbox.supervisor.pipe import Pipe, StreamName
from workers.sandbox.supervisor.slots import Slot, Slots

TAIL_BYTES: Final = 64 << 10
"""What is kept of stdout and of stderr."""

PIECE_BYTES: Final = 64 << 10
UNDECODED_BYTES: Final = 4 << 20
"""A record that comes faster than it is decoded waits in its pipe."""

LOCKDOWN_SECONDS: Final = 20.0
"""From the order to `locked`; a quiet machine needs a hundredth of one."""

LOOK_SECONDS: Final = 0.05
"""Between two looks at what the processes of a run use together."""

_PROCESS_GROUP: Final = 4
"""PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9."""


class Again:
    """In the inbox: the zygote was lost, the run starts once more; forget the frames so far."""


class Attempt:
    """One run in flight.

    Args:
        job: What runs; gpu: with no limit on address space, for CUDA reserves huge ranges.
        laid_out: Its files are written before it is locked down: then it can write none.
        ahead: Nothing runs yet: a child is made for whoever comes next with limits like these, and `adopted` then.
    """

    def __init__(self, job: Job, *, gpu: bool, ahead: bool = False, laid_out: bool = False) -> None:
        self.job, self.gpu, self.ahead, self.laid_out = job, gpu, ahead, laid_out
        self._program = job.program()
        self.inbox: queue.SimpleQueue[bytes | Again | Facts] = queue.SimpleQueue()
        self.record_taken = 0
        """Bytes that the waiting thread has decoded; only that thread writes it."""
        self.tries = 0
        self.waits_until = 0.0
        """Having lost its warm process, how long it waits for another where one cannot be started at once."""
        self.stop: Stop | None = None
        self.broken: str | None = None
        self.devices: tuple[str, ...] = ()
        """Of the warm process that it runs on, by name."""
        self.abandoned = False
        """Nobody takes from `inbox` any more."""
        self.clear()

    def clear(self) -> None:
        """Forget the last try."""
        self.serial = self.record_sent = 0
        self.pipes: dict[StreamName, Pipe] = {}
        self.sync: socket.socket | None = None
        self.pidfd: int | None = None
        self.proc: int | None = None
        """Its folder of /proc, from which it is attested; at level `gvisor` that of its sentry."""
        self.ended: ChildEnded | None = None
        self.started_at = self.gone_at = self.ended_at = self.heard_at = self.patience_until = self.looked_at = 0.0
        self.record_taken_before = self.record_taken
        self.kill_sent_at = 0.0
        self.locked = False
        """It was let go."""
        self.parked = False
        """It is locked down and attested, and waits for its program."""
        self.lockdown_cpu_seconds = 0.0
        self.memory: int | None = None
        """Where the program goes, of one made ahead."""
        self.under: SentryView | None = None
        self.order: Fork | None = None
        self.slot: Slot | None = None
        """Its uid and cgroup; None: not in flight."""
        self.used: Used | None = None
        """What its cgroup had counted at its end."""
        self.seen: ChildFacts | SentryFacts | None = None
        """What it was attested to be; None at level `none`, or before."""

    def open(self, serial: int, now: float, slots: Slots) -> tuple[Fork, list[int], socket.socket]:
        """Make what a child needs: the order, the descriptors that go with it (close them after), our end of sync.

        Raises:
            OSError: there is no uid, no cgroup or no memory for it; nothing was made.
        """
        order = self._order(serial)
        self.slot = slots.take(order, limits=self.job.limits)
        self.order = structs.replace(order, uid=self.slot.uid, placed=slots.places)
        self.serial, self.started_at, self.tries = serial, now, self.tries + 1
        theirs: list[int] = []
        try:
            self.sync = self._descriptors(theirs)
        except OSError:
            close_all(theirs)
            self.close()
            self.leave(slots)
            raise
        return self.order, theirs, self.sync

    def _descriptors(self, theirs: list[int]) -> socket.socket:
        """Make them; what was made before one failed is in the list all the same."""
        theirs.append(memory())
        if self.ahead:
            self.memory = os.dup(theirs[0])
        else:
            fill(theirs[0], self._program)
        theirs.append(self.job.stdin_descriptor())
        names: tuple[StreamName, ...] = ("stdout", "stderr", "record")
        for name in names:
            reading, writing = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reading, False)
            self.pipes[name] = Pipe(name, reading)
            theirs.append(writing)
        ours, sync = socket.socketpair()
        ours.setblocking(False)
        theirs.append(sync.detach())
        return ours

    def would_do(self, other: Attempt) -> bool:
        """Return whether this child, which was made ahead, still waits and has the limits that the other run needs."""
        if not self.parked or self.sync is None or self.ended is not None or other.job.stdin is not None:
            return False
        is_whole = all(pipe.open for pipe in self.pipes.values())
        return is_whole and self._order(0) == structs.replace(other._order(0), ahead=True)

    def adopt(self, made: Attempt, now: float) -> None:
        """Take over the child of one that was made ahead, with all that belongs to it, and give it the program.

        Raises:
            OSError: there is no room for the program; the child is still the other's.
        """
        if made.memory is not None:
            fill(made.memory, self._program)
            os.close(made.memory)
        self.serial, self.order, self.started_at, self.tries = made.serial, made.order, now, self.tries + 1
        self.pipes, self.sync, self.pidfd, self.proc = made.pipes, made.sync, made.pidfd, made.proc
        self.slot, self.seen = made.slot, made.seen
        self.lockdown_cpu_seconds = made.lockdown_cpu_seconds
        made.clear()

    def _order(self, serial: int) -> Fork:
        limits = self.job.limits
        return Fork(
            serial=serial,
            cpu_seconds=limits.cpu_seconds,
            memory_bytes=0 if self.gpu else limits.memory_bytes,
            file_bytes=limits.disk_bytes,
            threads=limits.threads,
            processes=limits.processes,
            laid_out=self.laid_out,
            ahead=self.ahead,
        )

    def overdue(self, now: float) -> Stop | None:
        """Why it must be ended by now; None: it may go on."""
        if self.parked:
            return None
        if self.locked:
            return "wall" if now - self.gone_at > self.job.limits.wall_seconds else self._over_its_share(now)
        if now - self.started_at > LOCKDOWN_SECONDS:
            self.broken = f"the child was not locked down within {LOCKDOWN_SECONDS:.0f} s"
            return "sandbox"
        return None

    def _over_its_share(self, now: float) -> Stop | None:
        """Return the limit that a run's processes exceed together, or its sentry alone: the kernel sees only one."""
        limits, cgroup = self.job.limits, None if self.slot is None else self.slot.cgroup
        if self.under is not None and self.under.grown() > SENTRY_BYTES:
            return "memory"
        if cgroup is None or limits.processes == 1 or now - self.looked_at < LOOK_SECONDS:
            return None
        self.looked_at = now
        if (cgroup.cpu_seconds() or 0.0) > limits.cpu_seconds:
            return "cpu"
        return "processes" if cgroup.processes() > limits.processes + 1 else None  # and the relay

    def known_by(self, descriptors: list[int], guest: Guest | None) -> None:
        """Take what names the child for good, or look up the sentry that it runs under; OSError: that has gone."""
        if guest is not None:
            self.proc = guest.sentry()
            self.under = SentryView(self.proc)
        elif len(descriptors) == 2:
            self.pidfd, self.proc = descriptors
            descriptors.clear()

    def leave(self, slots: Slots) -> None:
        """Give back the uid and the cgroup, once what it had counted is read."""
        slot, self.slot = self.slot, None
        if slot is None:
            return
        if slot.cgroup is not None:
            with contextlib.suppress(OSError):
                self.used = slot.cgroup.read_usage()
        slots.free(slot)

    def close(self) -> None:
        """Close every descriptor."""
        for pipe in self.pipes.values():
            pipe.close()
        if self.sync is not None:
            self.sync.close()
            self.sync = None
        for descriptor in (self.pidfd, self.proc, self.memory):
            if descriptor is not None:
                os.close(descriptor)
        self.pidfd = self.proc = self.memory = None

    def kill_group(self) -> None:
        """End what a lost zygote can no longer end; its children die with it, but not what they forked."""
        if self.pidfd is None:
            return
        for flags in (_PROCESS_GROUP, 0):
            with contextlib.suppress(OSError):  # gone; or Linux before 6.9, or another pid namespace
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL, None, flags)

    def take(self, pipe: Pipe, piece: bytes) -> Stop | None:
        """Count what came on a stream and keep what is to be kept; the limit that this passes comes back."""
        pipe.count += len(piece)
        limits = self.job.limits
        if pipe.name == "record":
            if pipe.count > limits.record_bytes:
                return "record_bytes"
            if self.stop != "refused" and not self.abandoned:
                self.record_sent += len(piece)
                self.inbox.put(piece)
            return None
        pipe.tail += piece
        del pipe.tail[:-TAIL_BYTES]
        written = self.pipes["stdout"].count + self.pipes["stderr"].count
        return "output" if written > limits.output_bytes else None

    @property
    def undecoded_bytes(self) -> int:
        """Bytes of record that were read from the pipe and wait for their decoding."""
        return self.record_sent - (self.record_taken - self.record_taken_before)

    @property
    def may_read_on(self) -> bool:
        """Its record waits in the pipe for a decoding that is done."""
        pipe = self.pipes.get("record")
        return pipe is not None and pipe.paused and (self.abandoned or self.undecoded_bytes < UNDECODED_BYTES // 2)

    def facts(self) -> Facts:
        """Return what was seen of the run."""
        status = None if self.ended is None else self.ended.status
        signaled = status is not None and os.WIFSIGNALED(status)
        out, err, record = (self.pipes.get(name) for name in ("stdout", "stderr", "record"))
        return Facts(
            exit_code=None if status is None or signaled else os.waitstatus_to_exitcode(status),
            signal=os.WTERMSIG(status) if status is not None and signaled else None,
            stop=self.stop,
            broken=self.broken,
            cpu_seconds=self._cpu_seconds(),
            lockdown_cpu_seconds=self.lockdown_cpu_seconds,
            oom_kills=0 if self.used is None else self.used.oom_kills,
            foreign_kills=0 if self.used is None else self.used.foreign_kills,
            refused_tasks=0 if self.used is None else self.used.refused_tasks,
            wall_seconds=max(0.0, self.ended_at - self.gone_at) if self.gone_at and self.ended_at else 0.0,
            max_rss_bytes=None if self.ended is None else self.ended.max_rss_bytes,
            stdout=bytes(out.tail) if out else b"",
            stderr=bytes(err.tail) if err else b"",
            stdout_bytes=out.count if out else 0,
            stderr_bytes=err.count if err else 0,
            record_bytes=record.count if record else 0,
            tries=self.tries,
            seen=self.seen,
            devices=self.devices,
        )

    def _cpu_seconds(self) -> float | None:
        """Of the program: `wait4` counts one process and what it waited for, its cgroup counts every one."""
        if self.used is not None and self.used.cpu_seconds is not None and self.job.limits.processes > 1:
            counted = self.used.cpu_seconds
        elif self.ended is None:
            return None
        else:
            counted = self.ended.cpu_seconds
        return max(0.0, counted - self.lockdown_cpu_seconds)
