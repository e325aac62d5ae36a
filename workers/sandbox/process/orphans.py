"""Processes that outlived their run: adopted, killed and reaped.

A process that makes itself a subreaper becomes the parent of every descendant whose own parent died, also of one that
left its process group or session. So whoever forks children finds the rest of a run among its own children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Set one attribute of this process.

    Raises:
        OSError: the kernel refused.
    """
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl {option}: {os.strerror(error)}")


def adopt_orphans() -> None:
    """From now on, descendants whose parent dies become children of this process."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies; called after the fork, by the child.

    Raises:
        ProcessLookupError: the parent had died before.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ProcessLookupError("the parent is gone")


def make_undumpable() -> None:
    """Close `/proc/PID/environ`, `mem` and `fd` of this process to others of the same uid, and ptrace with them."""
    prctl(PR_SET_DUMPABLE, 0)


def become(uid: int) -> None:
    """Stop being root, for good; what this process then reads and writes is that user's.

    Raises:
        PermissionError: this process may not, or the number is root's.
    """
    if not uid:
        raise PermissionError("root cannot become root")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    make_dumpable()  # else its own children could not write their uid_map, and nobody could attest them


def make_dumpable() -> None:
    """Undo what a change of uid does: `/proc/PID` of this process is its own uid's again."""
    prctl(PR_SET_DUMPABLE, 1)


def end_orphans(known: Collection[int], since: int) -> bool:
    """Kill every child of this process that is not `known`; True once none is left.

    Args:
        known: Children to leave alone.
        since: Only processes that were made after the one of this pid are looked at.
    """
    left = False
    for pid in _children(since):
        if pid in known:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            left |= os.waitpid(pid, os.WNOHANG)[0] == 0
    return not left


def kill_group(pid: int) -> None:
    """Kill a child that was not reaped yet, and its process group (there is none before it called setsid)."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _children(since: int) -> list[int]:
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    except FileNotFoundError:  # CONFIG_PROC_CHILDREN is off: look at the parent of each new process
        me = os.getpid()
        return [pid for pid in _processes(since) if _parent(pid) == me]
    return [int(pid) for pid in listed.split()]


def _processes(since: int) -> list[int]:
    newest = int(Path("/proc/loadavg").read_text("ascii").split()[4])
    wrapped = newest < since  # numbers began again from the bottom
    pids = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    return [pid for pid in pids if wrapped or pid >= since]


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(b")")[2].split()[1])
