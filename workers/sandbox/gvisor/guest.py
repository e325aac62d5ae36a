"""The warm process inside a sandbox of gVisor: a zygote that is root of a separate kernel. `python -m ...guest`.

1. It differs from a zygote by what that kernel has not: pidfds, a way for descriptors out, mounts of one process alone.
2. Each run is pid 1 of a pid namespace: what it leaves behind dies with it, and nothing outside it is in sight.
3. The supervisor sees none of its children and takes its word for their ends: it can end the whole sandbox.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from dataclasses import replace
from typing import NoReturn

from workers.sandbox.gvisor.guest_root import Roots
from workers.sandbox.levels.names import from_arguments
from workers.sandbox.process import messages, uncaught_errors, zygote
from workers.sandbox.process.lockdown import Surroundings
from workers.sandbox.process.messages import Fork, Started
from workers.sandbox.process.namespaces import next_child_is_first
from workers.sandbox.process.zygote import Zygote


class Guest(Zygote):
    """Forks, reaps and reports, on one control socket."""

    def __init__(self, control: socket.socket, calls: bytes, *, further: bool = True) -> None:
        super().__init__(control, {}, "gvisor", calls, further=further)
        self._roots = Roots(self._folders)
        self._root_of: dict[int, str] = {}
        """By serial, of the runs in flight."""
        woken, wakes = socket.socketpair()
        wakes.setblocking(False)
        self._woken, self._wakes = woken, wakes
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self._selector.register(woken, 1, self._reap_ended)

    def _surroundings(self, order: Fork, descriptors: list[int], root: str = "") -> Surroundings:
        root = self._roots.take(order.uid, order.file_bytes)
        self._root_of[order.serial] = root
        return replace(super()._surroundings(order, descriptors, root), zygote=0)  # how it is seen from inside

    def _fork_process(self) -> int:
        next_child_is_first()
        return os.fork()

    def _report_start(self, serial: int, pid: int) -> None:
        self._children[pid] = zygote.Child(serial, pid)
        messages.send(self._control, Started(serial=serial))

    def _reap_ended(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096, socket.MSG_DONTWAIT)
        for child in list(self._children.values()):
            if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                self._reap(child)
                self._roots.give_back(self._root_of.pop(child.serial))

    def _left_nothing(self, since: int) -> bool:  # noqa: ARG002 the zygote's
        return True  # the end of pid 1 is the end of all in its namespace


def main() -> NoReturn:
    """Warm up, then serve."""
    words = from_arguments(sys.argv[1:])
    calls = os.pread(words.calls, 1 << 16, 0)
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nothing, words.calls)
    os.close(nothing)
    zygote.serve_on(words.control, lambda control: Guest(control, calls, further=words.further))


if __name__ == "__main__":
    with uncaught_errors.in_one_line("workers.sandbox.gvisor.guest"):
        main()
