"""A local run: a child of the workspace's interpreter, `python -m backprobe run --format json`.

1. The child is in a session of its own and is never left behind: whatever ends this run ends its whole group.
2. It gets no key of a service, and neither reads nor writes the editor's pipes.
3. After `seconds` it is interrupted as by Ctrl-C, so that what was seen until then is still told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from backprobe.child_groups import kill_group
from backprobe.language_server.answers import from_report
from backprobe.language_server.program import Program
from backprobe.language_server.results import Result, Unreadable, paths_of, placed
from backprobe.language_server.settings import Settings
from backprobe.show.plain_text import cut, plain

KEYS: Final = ("BACKPROBE_API_KEY",)
"""Variables that a program under test never sees."""

REPORT_SECONDS: Final = 10.0
"""For the report, after an interrupt; then the child is killed."""

_TAIL_BYTES: Final = 4096
_USAGE, _OURS = 2, 3


class NotRun(Exception):
    """Nothing was judged, and the program is not to blame. The message says why, and what to do."""


async def run_locally(program: Program, settings: Settings, environment: Mapping[str, str]) -> Result:
    """Run a program and tell what was seen.

    Raises:
        NotRun: the interpreter cannot be started, has no Backprobe or no torch, or no report came.
        asyncio.CancelledError: as for every task; the child has ended then.
    """
    with tempfile.TemporaryDirectory(prefix="backprobe-editor-") as folder:
        report = Path(folder) / "report.json"
        command = [settings.interpreter, "-m", "backprobe", "run", "--exit-zero"]
        command += [] if settings.tier is None else ["--tier", settings.tier]
        command += ["--format", "json", "--output", str(report), program.entry]
        child_environment = {name: value for name, value in environment.items() if name not in KEYS}
        try:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=program.root, env=child_environment, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise NotRun(f"`{settings.interpreter}` cannot be started ({error.strerror}): set `interpreter`") from None
        tail = asyncio.create_task(_tail_of(process))
        try:
            stopped = await _ended(process, settings.seconds)
            return _read(report, program, process.returncode, await tail, settings.seconds if stopped else None)
        finally:
            kill_group(process.pid)
            await asyncio.shield(process.wait())
            tail.cancel()


async def _tail_of(process: Process) -> str:
    """The end of what the child wrote to stderr; all of it is read, so that it never waits for us."""
    kept = b""
    while process.stderr is not None and (piece := await process.stderr.read(65536)):
        kept = (kept + piece)[-_TAIL_BYTES:]
    return kept.decode(errors="replace")


async def _ended(process: Process, seconds: float) -> bool:
    """Wait for the child's end; True: it was interrupted for it."""
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), REPORT_SECONDS)
        kill_group(process.pid)  # its own children may hold stderr open
        return True
    kill_group(process.pid)
    return False


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
    return placed(found, entry, _files(found, program))


def _files(found: Result, program: Program) -> dict[str, tuple[str, str]]:
    """The files of the program that a report speaks of; its paths are relative to the folder of the script."""
    folder, known = (program.root / program.entry).parent, {program.absolute(path): path for path in program.files}
    files: dict[str, tuple[str, str]] = {}
    for told in {*paths_of(found), Path(program.entry).name}:
        path = os.path.normpath(folder / told)
        if path in known:
            files[told] = (path, program.files[known[path]])
    return files


def _why_nothing(code: int | None, said: str, stopped_after: float | None) -> str:
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    told = cut(plain(last), 300)
    if stopped_after is not None:
        return f"the program did not end within {stopped_after:g} s, and no report came: set `seconds`"
    if "No module named backprobe" in last:
        return f"the interpreter has no Backprobe: install it there, or set `interpreter` ({told})"
    if code in (_USAGE, _OURS):
        return told or f"`backprobe run` ended with exit code {code}"
    if code is not None and code < 0:
        return f"the program died of signal {-code}, and took the report with it"
    return f"no report came: exit code {code}" + (f", {told}" if told else "")
