"""Keeps one warm process for one run, and speaks for it as a zygote does: `python -m workers.sandbox.gpu.keeper`.

A device cannot be used in a fork, so its process is exec'ed beforehand and handed over once. To the supervisor its
keeper is a zygote that is worn after one run: it says when it is ready, hands over, kills, reaps, and reports the end.

1. It loads no torch and sees no snippet: what it passes on are descriptors and numbers.
2. The run dies with it, and it ends with the run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NoReturn

from workers.sandbox.process import landlock, messages, orphans, uncaught_errors
from workers.sandbox.process.messages import ChildEnded, Fork, ForkRefused, Kill, Ready, Started, Unready
from workers.sandbox.process.orphans import kill_group
from workers.sandbox.process.scratch import Scratch, sweep_dead_roots

PROGRAM: Final = ("-m", "workers.sandbox.gpu.oneshot")

_ORPHAN_SECONDS: Final = 1.0
"""How long the end of a run waits for what it has started to be gone."""


class Keeper:
    """Serves one control socket until the run has ended and the supervisor has let go.

    Args:
        program: Arguments of the interpreter that make it the warm process.
        memory_fraction: Of each device's memory, what the run may take.
        visible_devices: CUDA_VISIBLE_DEVICES of the run, which this process has too; None: unset.
    """

    def __init__(
        self, control: socket.socket, program: tuple[str, ...], memory_fraction: float, visible_devices: str | None
    ) -> None:
        self._control = control
        self._scratch = Scratch()
        self._hand, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = ["--keeper", str(os.getpid()), "--folder", self._scratch.make(1)]
        words += ["--memory-fraction", str(memory_fraction)]
        words += [] if visible_devices is None else [f"--visible-devices={visible_devices}"]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-s", *program, str(theirs.fileno()), *words],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
            )
        self._pidfd = os.pidfd_open(self._process.pid)
        self._serial: int | None = None
        self._used_before = 0.0

    def serve(self) -> None:
        """Say when it is ready, hand it over, report its end."""
        if not self._became_ready():
            return
        open_ends: list[int] = [self._control.fileno(), self._pidfd]
        while True:
            found, _, _ = select.select(open_ends, [], [])
            if self._control.fileno() in found and not self._obey():
                return
            if self._pidfd in found:
                open_ends.remove(self._pidfd)
                if self._serial is None:
                    return  # it died while it waited: the supervisor sees our end, and has another one made
                self._report(self._serial)

    def close(self) -> None:
        """End the process and what it started; remove its folder."""
        kill_group(self._process.pid) if self._process.returncode is None else None
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while not orphans.end_orphans((), 0) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._scratch.close()

    def _became_ready(self) -> bool:
        found, _, _ = select.select([self._hand, self._pidfd, self._control], [], [])
        report, _ = messages.receive_report(self._hand) if self._hand in found else (None, [])
        if isinstance(report, Ready | Unready):
            messages.send(self._control, report)
        return isinstance(report, Ready)

    def _obey(self) -> bool:
        order, descriptors = messages.receive_order(self._control)
        try:
            if isinstance(order, Kill) and order.serial == self._serial and self._process.returncode is None:
                kill_group(self._process.pid)
            elif isinstance(order, Fork) and self._serial is not None:
                messages.send(self._control, ForkRefused(serial=order.serial, why="this process has had its run"))
            elif isinstance(order, Fork):
                self._hand_over(order, descriptors)
        finally:
            messages.close_all(descriptors)
        return order is not None

    def _hand_over(self, order: Fork, descriptors: list[int]) -> None:
        self._serial = order.serial
        self._used_before = _cpu_seconds(self._process.pid)
        proc = os.open(f"/proc/{self._process.pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            messages.send(self._control, Started(serial=order.serial), [self._pidfd, proc])
        finally:
            os.close(proc)
        with contextlib.suppress(ConnectionError):  # it has ended: its report says so
            messages.send(self._hand, order, descriptors)

    def _report(self, serial: int) -> None:
        kill_group(self._process.pid)  # before wait4: until then the number is the group's
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = status
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while not orphans.end_orphans((), 0) and time.monotonic() < deadline:
            time.sleep(0.003)
        ended = ChildEnded(
            serial=serial,
            status=status,
            cpu_seconds=max(0.0, usage.ru_utime + usage.ru_stime - self._used_before),
            max_rss_bytes=usage.ru_maxrss << 10,
            rss_bytes=0,
        )
        messages.send(self._control, ended)


def _cpu_seconds(pid: int) -> float:
    """User and system, of a process that was not reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> NoReturn:
    """Keep one process for one run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("control", type=int)
    parser.add_argument("--memory-fraction", type=float, default=1.0)
    parser.add_argument("--visible-devices")
    parser.add_argument("--program", nargs=argparse.REMAINDER, default=PROGRAM)
    parser.add_argument("--uid", type=int)
    words = parser.parse_args()
    if words.uid is not None:
        landlock.seen_by(words.uid)
        orphans.become(words.uid)
    control = socket.socket(fileno=words.control)
    orphans.adopt_orphans()
    sweep_dead_roots()
    keeper = Keeper(control, tuple(words.program), words.memory_fraction, words.visible_devices)
    try:
        with contextlib.suppress(ConnectionError):
            keeper.serve()
    finally:
        keeper.close()
        os._exit(0)


if __name__ == "__main__":
    with uncaught_errors.in_one_line("workers.sandbox.gpu.keeper"):
        main()
