"""Processes that a test starts: their output in files of its folder, waited for by name, ended with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from tests.support.waiting import wait_until

T = TypeVar("T")

BACKPROBE = (sys.executable, "-m", "backprobe")
STOP_SECONDS = 45.0


def inherited() -> dict[str, str]:
    """What a process needs of this one's environment whatever else it is given."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}


class Processes:
    """Everything that one test started, oldest first.

    Args:
        folder: Where their outputs go, one file each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[psutil.Popen] = []
        self._files: list[Path] = []

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], *, name: str, cwd: Path | str | None = None
    ) -> psutil.Popen:
        """Start a command in a new session, with this environment and no other."""
        path = self.folder / f"{len(self.started)}-{name}.log"
        with path.open("wb") as output:
            process = psutil.Popen(
                list(command),
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        self._files.append(path)
        return process

    def read_output(self, process: psutil.Popen | None = None) -> str:
        """Return what one process has written, or all of them."""
        chosen = self._files if process is None else [self._files[self.started.index(process)]]
        return "".join(path.read_text(errors="replace") for path in chosen)

    def wait_until(self, condition: Callable[[], T], what: str, seconds: float = 120.0) -> T:
        """Wait for a condition; on failure show the end of what the processes wrote."""
        return wait_until(condition, lambda: f"{what}\n{self.read_output()[-4000:]}", seconds)

    def stop(self, process: psutil.Popen, number: signal.Signals = signal.SIGTERM) -> None:
        """End a process, and whatever it started that outlives it by 15 s."""
        children = descendants(process)
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            process.send_signal(number)
        with contextlib.suppress(psutil.TimeoutExpired, subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        _, alive = psutil.wait_procs(children, timeout=15)
        for member in [*alive, process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait(15)

    def kill(self) -> None:
        """Kill all that still run, with their sessions."""
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def descendants(process: psutil.Popen) -> list[psutil.Process]:
    """Every living process below one."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
