"""A child that leads a process group of its own, waited for at most some seconds and ended with all that it started.

Example:
    process = subprocess.Popen(command, start_new_session=True)
    code = wait_or_kill(process, 60)     # None: its 60 s were over
"""

import contextlib
import os
import signal
import subprocess


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit code; None: the seconds were over. Either way nothing of the child's group runs on.

    A group is ended after a child that ended in time too: it may have left processes behind.
    """
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_group(process.pid)
        process.wait()


def kill_group(pid: int) -> None:
    """SIGKILL to the group that `pid` leads; one that is gone already is none of our concern."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
