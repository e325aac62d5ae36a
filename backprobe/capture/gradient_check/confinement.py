"""Whether a step can have ghosts, and what a ghost may do: compute. It writes and sends nothing, and ends in time.

descriptors     pipes, sockets, terminals and files open for writing lead to /dev/null
files           none grows (RLIMIT_FSIZE 0); with Landlock none is opened for writing, made or removed
audit events    opening for writing, removing, connecting, starting a process: refused, as OSError
time            RLIMIT_CPU and an alarm that the program cannot catch; what it forks by native code ends with it
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import resource
import signal
import stat
import struct
import sys
import threading
from pathlib import Path
from typing import Any, Final

import torch

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
"""Numbers of Landlock's system calls, the same on every machine (linux/landlock.h)."""

_WRITES: Final = (1 << 1) | (0x3FF << 4) | (1 << 13)
"""LANDLOCK_ACCESS_FS_WRITE_FILE; REMOVE_DIR to MAKE_SYM; REFER. TRUNCATE (1 << 14) came with version 3."""

_EVENTS: Final = """
os.remove os.rename os.rmdir os.mkdir os.link os.symlink os.truncate os.chmod os.chown os.utime os.kill os.killpg
os.fork os.forkpty os.posix_spawn os.exec os.system subprocess.Popen socket.connect socket.bind socket.sendto
socket.sendmsg shutil.rmtree shutil.move signal.pthread_kill
"""
_REFUSED: Final = frozenset(_EVENTS.split())
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(kept: int, seconds: int) -> None:
    """Put this process, which was forked for a ghost, under its limits; there is no way back.

    Args:
        kept: The descriptor through which it answers. seconds: Of processor and of wall time.
    """
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a group of its own: what native code forks in it, unseen by audit events, ends with it
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        with contextlib.suppress(ValueError, OSError):  # the sandbox lets nobody change a limit
            resource.setrlimit(limit, (0, 0))
    torch._C.PyTorchFileWriter = _refuse  # type: ignore[misc]  # it opens files without an audit event
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _silence(kept)
    _restrict(libc)
    sys.addaudithook(_audit)


def _silence(kept: int) -> None:
    """Lead every descriptor that another process could notice to /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in descriptors():
        if number in (kept, null):
            continue
        with contextlib.suppress(OSError):
            if number <= 2 or _leads_out(number):
                os.dup2(null, number)


def descriptors() -> list[int]:
    """Numbers of descriptors that may be open; a sandbox may shut /proc to who is not to be looked at."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16)))


def _leads_out(number: int) -> bool:
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    if stat.S_ISCHR(mode):
        return os.isatty(number)
    return not stat.S_ISDIR(mode)


def _restrict(libc: Any) -> None:
    """Let the kernel refuse what changes files, where it has Landlock; where not, only the audit events do."""
    for writes in (_WRITES | (1 << 14), _WRITES, _WRITES & ~(1 << 13)):  # versions 3, 2 and 1
        rules = struct.pack("<Q", writes)
        ruleset = libc.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
        if ruleset >= 0:
            libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            libc.syscall(_RESTRICT_SELF, ruleset, 0)
            os.close(ruleset)
            return


def _refuse(*_: Any, **__: Any) -> Any:
    raise OSError("a check of gradients may not write")


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if event in _REFUSED:
        raise OSError(f"a check of gradients may not {event}")
    if event == "open" and _is_writing(given):
        raise OSError("a check of gradients may not write")


def _is_writing(given: tuple[Any, ...]) -> bool:
    path, mode, flags = given
    if path == os.devnull or isinstance(path, int):
        return False
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


_QUIET_THREADS: Final = frozenset({"TMonitor"})
"""Classes of threads that only wait: tqdm's."""

_HARMLESS: Final = ("__KMP_REGISTERED_LIB", "/dev/shm/sem.")  # noqa: S108 - looked for in a list; no file is opened
"""Names of shared memory that a copy of the process may have too: of OpenMP, and of locks that no child holds."""


def why_not_checked(optimizers: list[Any]) -> str | None:
    """Why the step that begins is not checked; None: it can be."""
    if not sys.platform.startswith("linux"):
        return "the check needs Linux"
    others = [one for one in threading.enumerate() if one is not threading.current_thread()]
    if any(type(one).__name__ not in _QUIET_THREADS for one in others):
        return "other threads of the program run: a copy of it would not have them"
    if multiprocessing.active_children():
        return "child processes of the program run: a copy of it would speak to them as well"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "the process is one of a group: a copy of it cannot take part in what they exchange"
    if signal.getsignal(signal.SIGCHLD) not in (signal.SIG_DFL, None):
        return "the program handles SIGCHLD: it would notice the copies"
    if any(
        tensor.device.type != "cpu"
        for optimizer in optimizers
        for group in optimizer.param_groups
        for tensor in group["params"]
    ):
        return "parameters are on a device: a process that uses one cannot be copied"
    return "memory is shared with other processes" if _shares() else None


def _shares() -> bool:
    """Writable memory of this process is another one's too."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return True
    shared = (line for line in lines if line[line.find(" ") + 1 :].startswith(("rw-s", "rwxs")))
    return any("/" in line and not any(name in line for name in _HARMLESS) for line in shared)
