"""A process that waits for the next local run with torch loaded, so that a save is answered in less than a second."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from backprobe.child_groups import kill_group

IDLE_SECONDS: Final = 900.0
"""A process that waits longer is ended: it holds some hundred MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a process is started: all that cannot be changed in one that runs."""

    interpreter: str
    folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A process that waits for the arguments of one run.

    Attributes:
        stderr: What it writes there. No pipe: children that it leaves behind would hold that open, and asyncio takes a
            process for ended when its pipes are.
    """

    process: Process
    stderr: IO[bytes]


async def start_process(start: Start) -> Started:
    """Start a process that waits for the arguments of one run.

    Raises:
        OSError: the interpreter cannot be started.
    """
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 - whoever waits for the process closes it
    try:
        process = await asyncio.create_subprocess_exec(
            start.interpreter, "-m", "backprobe.cli.standby",
            cwd=start.folder, env=start.environment, stdin=PIPE, stdout=DEVNULL, stderr=stderr, start_new_session=True,
        )  # fmt: skip
    except BaseException:
        stderr.close()
        raise
    return Started(process=process, stderr=stderr)


class Standby:
    """At most one process that waits."""

    def __init__(self) -> None:
        self._start: Start | None = None
        self._waiting: Started | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def take(self, start: Start) -> Started:
        """Take the waiting process if it was started in this way; otherwise start one.

        Raises:
            OSError: the interpreter cannot be started.
        """
        waiting = self._waiting
        if waiting is not None and waiting.process.returncode is None and self._start == start:
            self._forget()
            return waiting
        await self.end()
        return await start_process(start)

    async def prepare(self, start: Start) -> None:
        """Have one wait for a run that is started like this."""
        await self.end()
        with contextlib.suppress(OSError):  # the next run says so
            self._waiting, self._start = await start_process(start), start
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(IDLE_SECONDS, kill_group, self._waiting.process.pid)

    async def end(self) -> None:
        """End the process that waits. If this server ends without it, the process does at the end of its input."""
        waiting = self._waiting
        self._forget()
        if waiting is None:
            return
        with waiting.stderr:
            if waiting.process.returncode is None:
                kill_group(waiting.process.pid)
                await waiting.process.wait()

    def _forget(self) -> None:
        self._waiting = self._start = None
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
