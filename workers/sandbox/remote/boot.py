"""Start a zygote on this machine. An executor behind a socket does the same: `executor_client.py`."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from backprobe import stack
from workers.sandbox.gvisor import runsc
from workers.sandbox.gvisor.runsc import Guest
from workers.sandbox.levels.names import Confinement, as_arguments, choose_program_uid
from workers.sandbox.process import private_root, seccomp
from workers.sandbox.remote.warm_environment import drivers, warm_environment

STACK_BYTES: Final = stack.RAISED
"""RLIMIT_STACK at exec: deep graphs under capture are freed on the main thread's stack, which grows as it is used."""

THREAD_BYTES: Final = 8 << 20
"""The stack of every other thread, out of the run's address space: the zygote sets it before any thread starts."""

TRUSTED: Final = Confinement(uid=choose_program_uid())
"""Level `none`; what root starts becomes somebody else all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A zygote that boots or is warm.

    Attributes:
        control: Our end of its socket, non-blocking; closing it ends the zygote.
        process: Its process; None if an executor holds it.
        guest: The sandbox that it runs in, at level `gvisor`; its process is then runsc's.
    """

    control: socket.socket
    process: subprocess.Popen[bytes] | None = None
    guest: Guest | None = None

    def retire(self) -> None:
        """Let the zygote end by itself: it sees the end of its socket, and leaves nothing behind."""
        self.control.close()

    def kill(self) -> None:
        """End a zygote that is lost or does not answer; what it leaves, the next one removes."""
        self.control.close()
        if self.process is not None:
            self.process.kill()

    def has_ended(self) -> bool:
        """Return whether it has ended, as far as this process can see; if so, remove what a sandbox kept on disk."""
        ended = self.process is None or self.process.poll() is not None
        if ended and self.guest is not None:
            self.guest.sweep()
        return ended

    def wait(self, seconds: float) -> None:
        """Wait for its end, and kill it then."""
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.has_ended()


def exec_zygote(visible_devices: str | None = "", confinement: Confinement = TRUSTED, *, further: bool = True) -> Link:
    """Start a zygote on this machine.

    Args:
        visible_devices: CUDA_VISIBLE_DEVICES of its children: "" hides every GPU, None leaves all visible.
        further: It goes on warming up in its pauses.

    Raises:
        OSError: what the level needs is not here; the text says what.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with theirs, contextlib.ExitStack() as in_vain:
        in_vain.callback(ours.close)
        guest = _start_guest(theirs, further=further) if confinement.level == "gvisor" else None
        process = guest.process if guest else popen_zygote(theirs, visible_devices, confinement, further=further)
        in_vain.pop_all()
    return Link(control=ours, process=process, guest=guest)


def exec_keeper(
    visible_devices: str | None,
    memory_fraction: float = 1.0,
    program: tuple[str, ...] = (),
    confinement: Confinement = TRUSTED,
) -> Link:
    """Start a process for one run that has devices, and its keeper, which speaks for it as a zygote does.

    Args:
        visible_devices: CUDA_VISIBLE_DEVICES of the run: None leaves all visible.
        memory_fraction: Of each device's memory, what the run may take, in ``(0, 1]``.
        program: Arguments of the interpreter that make it that process; empty: the usual ones.
        confinement: Whom both become; no level but `none` is given to runs with a device.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, contextlib.ExitStack() as in_vain:
        in_vain.callback(ours.close)
        process = popen_keeper(theirs, visible_devices, memory_fraction, program, confinement)
        in_vain.pop_all()
    ours.setblocking(False)
    return Link(control=ours, process=process)


def popen_keeper(
    control: socket.socket,
    visible_devices: str | None,
    memory_fraction: float,
    program: tuple[str, ...] = (),
    confinement: Confinement = TRUSTED,
) -> subprocess.Popen[bytes]:
    """Exec a keeper that serves `control`, with an environment built from nothing.

    Raises:
        PermissionError: it would be root's.
    """
    _never_root(confinement)
    words = [str(control.fileno()), "--memory-fraction", str(memory_fraction)]
    words += [] if confinement.uid is None else ["--uid", str(confinement.uid)]
    words += [] if visible_devices is None else [f"--visible-devices={visible_devices}"]
    words += ["--program", *program] if program else []
    return subprocess.Popen(
        [sys.executable, "-P", "-s", "-m", "workers.sandbox.gpu.keeper", *words],
        env=warm_environment(visible_devices) | drivers(),
        pass_fds=[control.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def popen_zygote(
    control: socket.socket, visible_devices: str | None, confinement: Confinement = TRUSTED, *, further: bool = True
) -> subprocess.Popen[bytes]:
    """Exec a zygote that serves `control`, with an environment built from nothing.

    Raises:
        OSError: what the level needs is not here; the text says what.
    """
    _never_root(confinement)
    apart = confinement.level == "namespace"
    calls = (
        None
        if confinement.level == "none"
        else _in_memory(seccomp.compile_filter(folder=apart, has_cgroup=confinement.cgroups))
    )
    more_calls = _in_memory(seccomp.compile_filter(several=True, folder=True, has_cgroup=True)) if apart else None
    memory = [descriptor for descriptor in (calls, more_calls) if descriptor is not None]
    words = [str(control.fileno()), *as_arguments(confinement, calls, more_calls, further=further)]
    command = [sys.executable, "-P", "-s", "-m", "workers.sandbox.process.zygote", *words]
    if confinement.private_root:
        command = private_root.wrap_command(command)
    before = resource.getrlimit(resource.RLIMIT_STACK)
    hard = before[1]
    soft = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    try:
        return subprocess.Popen(
            command,
            env=warm_environment(visible_devices),
            pass_fds=[control.fileno(), *memory],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal is the worker's to hear
        )
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, before)
        for descriptor in memory:
            os.close(descriptor)


def _never_root(confinement: Confinement) -> None:
    if choose_program_uid() is not None and not confinement.uid:
        raise PermissionError("nobody was named whom programs of root become (BACKPROBE_SANDBOX_UID)")


def _start_guest(control: socket.socket, *, further: bool) -> Guest:
    calls = _in_memory(seccomp.compile_filter(folder=True))
    words = [str(runsc.CONTROL), *as_arguments(Confinement(level="gvisor"), runsc.CALLS, further=further)]
    try:
        return runsc.start(
            control,
            [sys.executable, "-P", "-s", "-m", "workers.sandbox.gvisor.guest", *words],
            warm_environment(""),
            calls,
            STACK_BYTES,
        )
    finally:
        os.close(calls)


def _in_memory(content: bytes) -> int:
    descriptor = os.memfd_create("backprobe-calls", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    return descriptor


def exit_text(link: Link) -> str:
    """How a zygote ended, in words."""
    if link.process is None:
        return "its executor closed the connection"
    link.wait(1.0)
    return f"signal {signal.Signals(-code).name}" if (code := link.process.returncode) < 0 else f"exit code {code}"
