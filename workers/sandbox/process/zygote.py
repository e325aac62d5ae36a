"""The warm process: torch is loaded, one thread runs, children are forked from it (`python -m` starts it).

1. It is exec'ed, never forked, with an environment built from nothing, and talks on the descriptor of its argument.
2. It never computes with more than one thread: before each fork it looks, and refuses otherwise.
3. It never sees a snippet and never touches CUDA: its children inherit all that it holds.
4. It is the one that reaps: a child's process group is killed before its pid can be given out again.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from backprobe import stack
from backprobe.capture.program.warm_up import first, rest
from backprobe.isolation import IsolationLevel
from workers.sandbox.levels.names import from_arguments
from workers.sandbox.process import child, host_name, landlock, messages, namespaces, orphans, uncaught_errors
from workers.sandbox.process.lockdown import Surroundings
from workers.sandbox.process.messages import ChildEnded, Fork, ForkRefused, Kill, Ready, Started
from workers.sandbox.process.scratch import Scratch, sweep_dead_roots
from workers.sandbox.process.warmth import forget_finalizers, memory
from workers.sandbox.remote.boot import THREAD_BYTES

_ORPHAN_PATIENCE_SECONDS: Final = 1.0
"""A killed process can stay for a while in an uninterruptible call; its run is reported ended after this."""

_IDLE_SECONDS: Final = 1.5
"""Without an order for so long, the next step of warming up is taken: the first run must not wait behind one."""

_LONGEST_COLD_SECONDS: Final = 10.0
"""Under steady load no such pause comes; a step is then taken all the same, for each run that lacks it pays for it."""


@dataclass(slots=True)
class Child:
    """A forked process: of a run, or (a sweeper) one that removes a run's folder."""

    serial: int
    pid: int
    pidfd: int = -1
    sweeper: bool = False


class Zygote:
    """Forks, reaps and reports, on one control socket.

    Args:
        level: How much its children lock themselves down.
        calls: The compiled filter of system calls; more_calls: of runs that may have several processes.
        further: In its pauses it goes on warming up.
    """

    def __init__(
        self,
        control: socket.socket,
        environment: dict[str, str],
        level: IsolationLevel = "none",
        calls: bytes = b"",
        more_calls: bytes = b"",
        *,
        further: bool = True,
    ) -> None:
        self._control, self._environment = control, environment
        self._level: IsolationLevel = level
        self._calls, self._more_calls = calls, more_calls
        landlock.landlock_abi()
        self._folders = () if level == "none" else (*landlock.system_folders(), *landlock.python_paths())
        self._scratch = Scratch()
        self._children: dict[int, Child] = {}
        self._reaped: list[tuple[int, float, ChildEnded]] = []
        """Pid, time and report of runs whose descendants may still be there."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._pid = os.getpid()
        self._to_warm = list(rest()) if further else []
        self._heard_at = self._ready_at = time.monotonic()

    def serve(self) -> None:
        """Work until the supervisor's end of the socket is closed; in its pauses, go on warming up."""
        self._say_ready()
        while True:
            for key, _ in self._selector.select(self._patience()):
                if key.data is not None:
                    key.data()
                elif not self._obey():
                    return
            self._report_ended()
            self._warm_further(time.monotonic())

    def _say_ready(self) -> None:
        gc.collect()
        gc.freeze()
        vm_bytes, rss_bytes = memory()
        ready = Ready(pid=self._pid, vm_bytes=vm_bytes, rss_bytes=rss_bytes, warms_on=bool(self._to_warm))
        messages.send(self._control, ready)

    def _patience(self) -> float | None:
        """Seconds to wait for something to happen; None: for ever."""
        if self._reaped:
            return 0.003
        until_idle = max(0.0, self._heard_at + _IDLE_SECONDS - time.monotonic())  # in a pause step follows step
        return (_IDLE_SECONDS if self._children else until_idle) if self._to_warm else None

    def _warm_further(self, now: float) -> None:
        """Take the next step of warming up, if one is left and this is a good time.

        Each step is reported: growth is counted from the last one. Reported after the last step only, the first's 90 MB
        (dynamo) made the supervisor replace the process after three runs, and its successor again.
        """
        idle = now - self._heard_at >= _IDLE_SECONDS and not self._children
        if not self._to_warm or not (idle or now - self._ready_at > _LONGEST_COLD_SECONDS):
            return
        self._to_warm.pop(0)()
        forget_finalizers()
        self._say_ready()

    def close(self) -> None:
        """End every child and remove every folder."""
        for forked in self._children.values():
            orphans.kill_group(forked.pid)
        deadline = time.monotonic() + _ORPHAN_PATIENCE_SECONDS
        while not orphans.end_orphans((), 0) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._scratch.close()

    def _obey(self) -> bool:
        order, descriptors = messages.receive_order(self._control)
        if order is None:
            return False
        self._heard_at = time.monotonic()
        if isinstance(order, Fork):
            try:
                self._fork(order, descriptors)
            finally:
                messages.close_all(descriptors)
        elif isinstance(order, Kill):
            for forked in self._children.values():
                if forked.serial == order.serial and not forked.sweeper and not self._kill_inner(forked.pid):
                    orphans.kill_group(forked.pid)
        return True

    def _fork(self, order: Fork, descriptors: list[int]) -> None:
        threads = sum(1 for _ in os.scandir("/proc/self/task"))
        if threads != 1:
            messages.send(self._control, ForkRefused(serial=order.serial, why=f"{threads} threads in the warm process"))
            return
        try:
            around = self._surroundings(order, descriptors)
            pid = self._fork_process()
        except OSError as error:  # no room for a task more: the runs in flight are not to pay for it
            messages.send(self._control, ForkRefused(serial=order.serial, why=f"the warm process cannot fork: {error}"))
            return
        if pid == 0:
            self._control.detach()  # closed by number with all others: its object must not close that number later
            child.live(around)
        self._report_start(order.serial, pid)

    def _surroundings(self, order: Fork, descriptors: list[int], root: str = "") -> Surroundings:
        program, stdin, stdout, stderr, record, sync = descriptors
        return Surroundings(
            order=order,
            zygote=self._pid,
            vm_bytes=memory()[0],
            folder=self._folder_of(order),
            descriptors=(stdin, stdout, stderr, record, sync, program),
            environment=self._environment,
            level=self._level,
            folders=self._folders,
            calls=self._more_calls if order.processes > 1 else self._calls,
            root=root,
        )

    def _fork_process(self) -> int:
        return os.fork()

    def _report_start(self, serial: int, pid: int) -> None:
        self._watch(Child(serial, pid, os.pidfd_open(pid)))
        seen = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            messages.send(self._control, Started(serial=serial), [self._children[pid].pidfd, seen])
        finally:
            os.close(seen)

    def _folder_of(self, order: Fork) -> str:
        """Return the child's working folder: its own folder, its own /tmp, or (nothing is writable) the root."""
        if self._level == "none" or order.laid_out:
            return self._scratch.make(order.serial)
        return "/" if self._level == "process" else "/tmp"  # noqa: S108 a mount of the child's own

    def _watch(self, forked: Child) -> None:
        self._children[forked.pid] = forked
        self._selector.register(forked.pidfd, selectors.EVENT_READ, lambda: self._reap_told(forked))

    def _reap_told(self, forked: Child) -> None:
        self._selector.unregister(forked.pidfd)
        os.close(forked.pidfd)
        self._reap(forked)

    def _reap(self, forked: Child) -> None:
        orphans.kill_group(forked.pid)  # before wait4: until then the number is the group's
        _, status, usage = os.wait4(forked.pid, 0)
        del self._children[forked.pid]
        if forked.sweeper:
            return
        if self._level in ("none", "process") and not self._scratch.remove_empty(forked.serial):
            self._start_sweeper(forked.serial)
        report = ChildEnded(
            serial=forked.serial,
            status=status,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            max_rss_bytes=usage.ru_maxrss << 10,
            rss_bytes=memory()[1],
        )
        self._reaped.append((forked.pid, time.monotonic(), report))

    def _report_ended(self) -> None:
        """Report what was reaped, once nothing that it started is left."""
        if not self._reaped:
            return
        gone = self._left_nothing(min(pid for pid, _, _ in self._reaped))
        too_old = time.monotonic() - _ORPHAN_PATIENCE_SECONDS
        for pid, reaped_at, report in list(self._reaped):
            if gone or reaped_at < too_old:
                self._reaped.remove((pid, reaped_at, report))
                messages.send(self._control, report)

    def _left_nothing(self, since: int) -> bool:
        return orphans.end_orphans(self._children.keys(), since)

    def _kill_inner(self, relay: int) -> bool:
        """Kill pid 1 of a run's namespace, and so all of it; its relay then ends as it did. False: there is none."""
        if self._level != "namespace":
            return False
        inner = Path(f"/proc/{relay}/task/{relay}/children").read_text("ascii").split()
        for pid in inner:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return bool(inner)

    def _start_sweeper(self, serial: int) -> None:
        """Remove a folder in a separate process: it may hold millions of files."""
        pid = os.fork()
        if pid == 0:
            try:
                orphans.die_with(self._pid)
                os.setsid()
                os.nice(10)
                self._scratch.sweep(serial)
            finally:
                os._exit(0)
        self._watch(Child(serial, pid, os.pidfd_open(pid), sweeper=True))


def serve_on(control: int, make: Callable[[socket.socket], Zygote]) -> NoReturn:
    """Warm up, make the zygote of this control socket, and be it."""
    stack.settle(THREAD_BYTES)
    orphans.adopt_orphans()
    sweep_dead_roots()
    first()
    forget_finalizers()
    gc.disable()
    zygote = make(socket.socket(fileno=control))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # an executor that stops; children take their default again
    try:
        with contextlib.suppress(ConnectionError):
            zygote.serve()
    finally:
        zygote.close()
        os._exit(0)  # taking torch down would take longer than it lived


def main() -> NoReturn:
    """Become who runs are to be, then serve."""
    words = from_arguments(sys.argv[1:])
    host_name.hide_host_name(words.level)
    if words.uid is not None:
        if words.level == "namespace":
            namespaces.uncovered_proc()
        elif words.level in ("none", "process"):
            landlock.seen_by(words.uid)
        orphans.become(words.uid)
    environment = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ}
    calls = [b"" if fd is None else os.pread(fd, 1 << 16, 0) for fd in (words.calls, words.more_calls)]
    serve_on(words.control, lambda control: Zygote(control, environment, words.level, *calls, further=words.further))


if __name__ == "__main__":
    with uncaught_errors.in_one_line("workers.sandbox.process.zygote"):
        main()
