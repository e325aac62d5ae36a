"""A child that leads a process group, waited for at most some seconds and ended with all that it started.

Example:
    process = subprocess.Popen(command, start_new_session=True)
    code = wait_or_kill(process, 60)     # None: its 60 s were over
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Final

_GUARD: Final = 'read -r _; kill -s KILL -- "-$0"'
"""Its stdin ends when the process that started it does, in whatever way; then the group is killed."""

_LOOK_SECONDS: Final = 0.1


@contextlib.contextmanager
def killed_with_this_process(group: int) -> Iterator[None]:
    """Kill a child's group if this process ends inside the block, be it by SIGKILL."""
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, str(group)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        guard.kill()  # before its stdin is closed: the group's number may be another's by now
        guard.communicate()


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float, stop: threading.Event | None = None) -> int | None:
    """Wait for a child; return its exit code, or None if the seconds were over or `stop` was set.

    A group is ended after a child that ended in time too: it may have left processes behind. If this process ends
    while it waits, the group is killed as well.
    """
    with killed_with_this_process(process.pid):
        try:
            return _exit_code(process, time.monotonic() + seconds, stop or threading.Event())
        finally:
            kill_group(process.pid)
            process.wait()


def _exit_code(process: subprocess.Popen[bytes], until: float, stop: threading.Event) -> int | None:
    while not stop.is_set() and (left := until - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, _LOOK_SECONDS))
    return None


def kill_group(pid: int) -> None:
    """SIGKILL to the group that `pid` leads; one that is gone already is none of our concern."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
