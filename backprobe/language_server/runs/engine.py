"""A local run: a child of the workspace's interpreter that runs `backprobe run --format json`.

1. The child leads a session and is never left behind: whatever ends this run or this server ends its whole
   group.
2. It gets no key of a service, and neither reads nor writes the editor's pipes.
3. `seconds` after its first statement it is interrupted as by Ctrl-C, so that what was seen until then is still told.
   The same when it is canceled or a newer save takes its place: it can clean up before SIGTERM and SIGKILL come.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from backprobe.child_groups import kill_group, killed_with_this_process
from backprobe.language_server.runs.answers import from_report
from backprobe.language_server.runs.program import Program
from backprobe.language_server.runs.results import Result, Unreadable, paths_of, place_result
from backprobe.language_server.runs.waiting_process import Standby, Start
from backprobe.language_server.settings import Settings
from backprobe.show.plain_text import cut, plain

KEYS: Final = ("BACKPROBE_API_KEY",)
"""Variables that a program under test never sees."""

REPORT_SECONDS: Final = 10.0
"""For the report, after an interrupt; then the child gets SIGTERM."""

TERMINATE_SECONDS: Final = 2.0
"""After SIGTERM; then the child is killed."""

START_SECONDS: Final = 120.0
"""For the interpreter and torch, before the program's first statement."""

_LOOK_SECONDS: Final = 0.05

_TAIL_BYTES: Final = 4096
_USAGE, _OURS = 2, 3


class NotRun(Exception):
    """Nothing was judged, and the program is not to blame. The message says why, and what to do."""


async def run_locally(program: Program, settings: Settings, environment: Mapping[str, str], standby: Standby) -> Result:
    """Run a program and tell what was seen. Afterwards a process waits for the next run of it.

    Raises:
        NotRun: the interpreter cannot be started, has no Backprobe or no torch, or no report came.
        asyncio.CancelledError: as for every task; the child has ended then.
    """
    with tempfile.TemporaryDirectory(prefix="backprobe-editor-") as folder:
        report, record = Path(folder) / "report.json", Path(folder) / "record.bprec"
        command = ["run", "--exit-zero", "--sources", str(program.root)]
        command += [] if settings.tier is None else ["--tier", settings.tier]
        command += ["--save", str(record), "--format", "json", "--output", str(report), program.entry]
        command += program.arguments
        inherited = {**environment, **program.environment}
        child_environment = {name: value for name, value in inherited.items() if name not in KEYS}
        start = Start(interpreter=settings.interpreter, folder=program.root, environment=child_environment)
        try:
            started = await standby.take(start)
        except OSError as error:
            raise NotRun(f"`{settings.interpreter}` cannot be started ({error.strerror}): set `interpreter`") from None
        process = started.process
        with started.stderr, killed_with_this_process(process.pid):
            try:
                await _tell(process, command)
                stopped = await _run_to_its_end(process, record, settings.seconds)
                said = _tail_of(started.stderr)
                return _read(report, program, process.returncode, said, settings.seconds if stopped else None)
            except asyncio.CancelledError:
                await _interrupt(process)
                raise
            finally:
                kill_group(process.pid)
                await asyncio.shield(process.wait())
                await asyncio.shield(standby.prepare(start))


async def wait_for_end(task: asyncio.Task[None]) -> None:
    """Wait until a task is over, also if this wait is canceled: two programs must not run at a time."""
    canceled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            canceled = True
    if canceled:
        raise asyncio.CancelledError


def _tail_of(stderr: IO[bytes]) -> str:
    """Read the end of what the child wrote to stderr."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - _TAIL_BYTES))
    return stderr.read().decode(errors="replace")


async def _tell(process: Process, arguments: list[str]) -> None:
    """Say to a process that waits what it runs."""
    if process.stdin is None:
        raise ValueError("the process was started without an input")
    with contextlib.suppress(ConnectionError):  # it has ended: its exit code tells why
        process.stdin.write(msgspec.json.encode(arguments) + b"\n")
        await process.stdin.drain()
    process.stdin.close()


async def _run_to_its_end(process: Process, record: Path, seconds: float) -> bool:
    """Wait for the child's end; True: it was interrupted for it."""
    await _wait_for_start(process, record)
    stopped = False
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        stopped = True
        await _interrupt(process)
    return stopped


async def _wait_for_start(process: Process, record: Path) -> None:
    """Wait until the program's first statement is about to run: the record is opened then, behind torch's import."""
    until = time.monotonic() + START_SECONDS
    while process.returncode is None and time.monotonic() < until and not _has_begun(record):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LOOK_SECONDS)


def _has_begun(record: Path) -> bool:
    try:
        return record.stat().st_size > 0
    except FileNotFoundError:
        return False


async def _interrupt(process: Process) -> None:
    """End a child as Ctrl-C does; one that goes on gets SIGTERM. Who waits for this kills the rest."""
    for number, seconds in ((signal.SIGINT, REPORT_SECONDS), (signal.SIGTERM, TERMINATE_SECONDS)):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)


def _read(report: Path, program: Program, code: int | None, said: str, stopped_after: float | None) -> Result:
    try:
        told: Any = msgspec.json.decode(report.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        raise NotRun(_why_nothing(code, said, stopped_after)) from None
    try:
        found = from_report(told)
    except Unreadable as error:
        raise NotRun(f"{error}; does the interpreter have another version of Backprobe?") from None
    if stopped_after is not None:
        stopped = f"stopped after {stopped_after:g} s: {found.summary}"
        found = msgspec.structs.replace(found, summary=stopped, failure=None)
    entry = program.absolute(program.entry)
    return place_result(found, entry, _files(found, program))


def _files(found: Result, program: Program) -> dict[str, tuple[str, str]]:
    """Find the files of the program that a report names; its paths are relative to the program's root."""
    known = {program.absolute(path): path for path in program.files}
    files: dict[str, tuple[str, str]] = {}
    for told in {*paths_of(found), program.entry}:
        path = os.path.normpath(program.root / told)
        if path in known:
            files[told] = (path, program.files[known[path]])
    return files


def _why_nothing(code: int | None, said: str, stopped_after: float | None) -> str:
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    told = cut(plain(last), 300)
    if stopped_after is not None:
        return f"the program did not end within {stopped_after:g} s, and no report came: set `seconds`"
    if "No module named backprobe" in last or "No module named 'backprobe'" in last:
        return f"the interpreter has no Backprobe: install it there, or set `interpreter` ({told})"
    if code in (_USAGE, _OURS):
        return told or f"`backprobe run` ended with exit code {code}"
    if code is not None and code < 0:
        return f"the program died of signal {-code}, and took the report with it"
    return f"no report came: exit code {code}" + (f", {told}" if told else "")
