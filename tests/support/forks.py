"""Programs in forks of a process that has torch loaded: `run([Job(mode="plain", path="a.py")])`.

A fresh interpreter loads torch for 1.5 to 2 s of processor time; a fork takes 5 ms. There is one such process for each
core of the engine in each test process, started when the first program asks for it. `fork_server.py` says what modes do.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backprobe.stack import WAS, find_raised_limit
from tests.support.resources import ROOT

SECONDS = 280


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program.

    Attributes:
        mode: How it runs; a key of the table in `fork_server.py`.
        environment: Added to that of the process.
        record: A file for the record of a captured program; None: it is looked at and thrown away.
        seconds: It may take so long.
    """

    mode: str
    path: str = ""
    arguments: list[str] = field(default_factory=list)
    cwd: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    record: str | None = None
    seconds: float = SECONDS


class ForkServer:
    """One process with torch loaded.

    Args:
        core: Of the engine, "c" or "python"; None: the one that serves where nobody asks for one.
        grown: With the larger stack with which `python -m backprobe run` starts itself again.
    """

    def __init__(self, core: str | None, *, grown: bool) -> None:
        environment = os.environ | {"PYTHONHASHSEED": "0"} | ({"BACKPROBE_CORE": core} if core else {})
        if grown:
            environment[WAS] = str(resource.getrlimit(resource.RLIMIT_STACK)[0])
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())]
        with theirs, _grown_stack() if grown else contextlib.nullcontext():
            self._process = subprocess.Popen(
                command,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                process_group=0,
            )
        self._socket = ours
        self._stream = ours.makefile("rw", encoding="utf-8")

    def run(self, jobs: Iterable[Job]) -> list[dict[str, Any]]:
        """The result of each job: `code`, `out`, `err`, and what the engine counted if it was captured.

        Raises:
            RuntimeError: the process has gone. TimeoutError: a job took longer than it may.
        """
        return [self._answer(job) for job in jobs]

    def _answer(self, job: Job) -> dict[str, Any]:
        self._socket.settimeout(job.seconds)
        self._stream.write(json.dumps(asdict(job)) + "\n")
        self._stream.flush()
        line = self._stream.readline()
        if not line:
            raise RuntimeError(f"the process that runs programs ended with {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._stream.close()
        self._socket.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:  # it waits for a program that hangs
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextlib.contextmanager
def _grown_stack() -> Iterator[None]:
    """What is started meanwhile has the larger stack: the limit counts when a program begins."""
    before = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, find_raised_limit() or before)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, before)


_servers: dict[tuple[str | None, bool], ForkServer] = {}


def _server(core: str | None, *, grown: bool) -> ForkServer:
    if (core, grown) not in _servers:
        _servers[core, grown] = opened = ForkServer(core, grown=grown)
        atexit.register(opened.close)
    return _servers[core, grown]


def run(jobs: Iterable[tuple[str, str | Path, list[str]] | Job], core: str | None = None) -> list[dict[str, Any]]:
    """What came of each job; a tuple has mode, path and arguments."""
    made = [job if isinstance(job, Job) else Job(mode=job[0], path=str(job[1]), arguments=job[2]) for job in jobs]
    grown = any(job.mode == "command" for job in made)
    server = _server(core, grown=grown)
    try:
        return server.run(made)
    except BaseException:  # what is left in the pipe belongs to nobody: the next program gets a fresh process
        del _servers[core, grown]  # first: closing may be interrupted too
        server.close()
        raise


def backprobe(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m backprobe ARGUMENTS` in a fork, as `subprocess.run` would give it."""
    (found,) = run([Job(mode="command", arguments=list(arguments), cwd=str(cwd), environment=environment or {})])
    return subprocess.CompletedProcess(arguments, found["code"], found["out"], found["err"])
