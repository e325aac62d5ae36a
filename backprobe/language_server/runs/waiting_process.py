"""A process that waits for the next local run with torch loaded, so that a save is answered in less than a second."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backprobe.child_groups import kill_group

IDLE_SECONDS: Final = 900.0
"""A process that waits longer is ended: it holds some hundred MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a process is started: all that cannot be changed in one that runs."""

    interpreter: str
    folder: Path
    environment: Mapping[str, str]


async def start_process(start: Start) -> Process:
    """Start a process that waits for the arguments of one run.

    Raises:
        OSError: the interpreter cannot be started.
    """
    return await asyncio.create_subprocess_exec(
        start.interpreter, "-m", "backprobe.cli.standby",
        cwd=start.folder, env=start.environment, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, start_new_session=True,
    )  # fmt: skip


class Standby:
    """At most one process that waits."""

    def __init__(self) -> None:
        self._start: Start | None = None
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def take(self, start: Start) -> Process:
        """The process that waits, if it was started like this; else a new one.

        Raises:
            OSError: the interpreter cannot be started.
        """
        process = self._process
        if process is not None and process.returncode is None and self._start == start:
            self._forget()
            return process
        await self.end()
        return await start_process(start)

    async def prepare(self, start: Start) -> None:
        """Have one wait for a run that is started like this."""
        await self.end()
        with contextlib.suppress(OSError):  # the next run says so
            self._process, self._start = await start_process(start), start
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, kill_group, self._process.pid)

    async def end(self) -> None:
        """End the process that waits. If this server ends without it, the process does at the end of its input."""
        process = self._process
        self._forget()
        if process is not None and process.returncode is None:
            kill_group(process.pid)
            await process.wait()

    def _forget(self) -> None:
        self._process = self._start = None
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
