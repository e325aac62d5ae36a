"""The child processes of `serve`: worker and reaper, started again when they die or fall silent.

1. Every child is started by the one thread of this module: PDEATHSIG follows the thread that forked, not the process,
   so that thread lives until the end.
2. Nothing outlives us: a child gets SIGTERM when that thread dies, and besides watches its parent's pid.
3. A child that dies at once is started again later and later, up to 30 s; one that ran a minute starts again at once.
   One that cannot be started at all (no file, no process left) is tried again in the same way.
4. If that thread fails all the same, its owner is notified: a server without workers must not go on promising runs.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

log = logging.getLogger("backprobe.service")

CANNOT_START: Final = 3
"""Exit code of a worker that cannot do what its settings ask for, or reach what they name."""

_LINE_BYTES: Final = 4096
"""Of the end of a log, where its last line is looked for."""

DRAIN_SECONDS: Final = 35.0
"""How long children may take to end after SIGTERM: a worker gives the run in hand 30 s."""

SILENT_SECONDS: Final = 30.0
"""A worker that lives without a heartbeat for so long is restarted: workers that hang are a known failure."""

LONGEST_PAUSE: Final = 30.0
_LOOK_SECONDS: Final = 0.25
SILENT_LOOK_SECONDS: Final = 5.0
_STEADY_SECONDS: Final = 60.0
_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)  # loaded before any fork


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(slots=True, kw_only=True)
class _Child:
    name: str
    arguments: Sequence[str]
    log_file: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    pause: float = field(default=0.5)
    starts: int = 0
    log_begins: int = 0
    """Where in its log the last start begins."""
    cannot_start: str | None = None
    """The last line of one that ended at its start, for the operator to act on."""


class Children:
    """Starts the children, keeps them alive, ends them.

    Args:
        commands: By name: arguments after `python -m backprobe`.
        environ: Of every child; BACKPROBE_PARENT_PID is added.
        logs: Folder in which each child has its log.
        silent: Returns which live children to restart (workers without heartbeats); called every 5 s.
        delays: By name: seconds before a child is started the first time.
        fallen: Called if the thread ends without having been asked to; its children end with it.
    """

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        environ: Mapping[str, str],
        logs: Path,
        *,
        silent: Callable[[Mapping[str, int]], set[str]] = lambda _pids: set(),
        delays: Mapping[str, float] | None = None,
        fallen: Callable[[], None] = lambda: None,
    ) -> None:
        first = {name: time.monotonic() + seconds for name, seconds in (delays or {}).items()}
        self._children = [
            _Child(name=name, arguments=arguments, log_file=logs / f"{name}.log", start_at=first.get(name, 0.0))
            for name, arguments in commands.items()
        ]
        self._environ = {**environ, "BACKPROBE_PARENT_PID": str(os.getpid())}
        self._silent = silent
        self._fallen = fallen
        self.failed = False
        self._stop = threading.Event()
        self._kill = threading.Event()
        self._thread = threading.Thread(target=self._run, name="children", daemon=True)

    def start(self) -> None:
        """Start the thread that starts the children."""
        self._thread.start()

    def stop(self) -> None:
        """Ask every child to end; `wait` until they have."""
        self._stop.set()

    def kill(self) -> None:
        """End every child now."""
        self._kill.set()
        self._stop.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether all children have ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def pids(self) -> dict[str, int]:
        """Pids of the children that live, by name."""
        return {
            child.name: child.process.pid
            for child in self._children
            if child.process is not None and child.process.poll() is None
        }

    def restarts(self) -> dict[str, int]:
        """Return by kind of child how many were started again."""
        found: Counter[str] = Counter()
        for child in self._children:
            found[child.arguments[0]] += max(0, child.starts - 1)
        return dict(found)

    def list_start_failures(self, kind: str) -> tuple[str, ...]:
        """Why children whose command is of this kind ended at their last start; a child that runs since is not told."""
        told = (child.cannot_start for child in self._children if child.arguments[0] == kind)
        return tuple(dict.fromkeys(line for line in told if line is not None))

    def _run(self) -> None:
        try:
            self._supervise()
        except Exception:
            log.exception("the children are no longer supervised; they end")
            self.failed = True
            self._fallen()
            self.kill()
        self._end_all()

    def _supervise(self) -> None:
        next_beat = time.monotonic() + SILENT_LOOK_SECONDS
        while not self._stop.is_set():
            for child in self._children:
                self._keep(child)
            if time.monotonic() > next_beat:
                self._end_silent()
                next_beat = time.monotonic() + SILENT_LOOK_SECONDS
            self._stop.wait(_LOOK_SECONDS)

    def _keep(self, child: _Child) -> None:
        now = time.monotonic()
        if child.process is not None:
            if (code := child.process.poll()) is None:
                if now - child.started > LONGEST_PAUSE:
                    child.cannot_start = None
                return
            steady = now - child.started > _STEADY_SECONDS
            child.pause = 0.5 if steady else min(LONGEST_PAUSE, child.pause * 2)
            child.start_at = now + (0 if steady else child.pause)
            log.warning("%s ended with %s; it starts again in %.1f s", child.name, code, child.start_at - now)
            child.cannot_start = _last_line(child) if code == CANNOT_START else None
            child.process = None
        if now >= child.start_at and not self._stop.is_set():
            self._start(child, now)

    def _start(self, child: _Child, now: float) -> None:
        try:
            child.process, child.started = self._spawn(child), now
            child.starts += 1
        except (OSError, subprocess.SubprocessError) as error:  # EMFILE, EAGAIN, the disk: they pass, we stay
            child.pause = min(LONGEST_PAUSE, child.pause * 2)
            child.start_at = now + child.pause
            log.warning("%s could not be started (%s); it is tried again in %.1f s", child.name, error, child.pause)

    def _spawn(self, child: _Child) -> subprocess.Popen[bytes]:
        child.log_file.parent.mkdir(parents=True, exist_ok=True)
        with child.log_file.open("ab") as written:
            child.log_begins = written.tell()
            return subprocess.Popen(
                [sys.executable, "-m", "backprobe", *child.arguments],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one prctl, through a library loaded before the fork
                process_group=0,  # Ctrl-C in the terminal reaches `serve` only, which then drains
            )

    def _end_silent(self) -> None:
        for name in self._silent(self.pids()):
            for child in self._children:
                if child.name == name and child.process is not None:
                    log.warning("%s sends no heartbeats and is restarted", name)
                    child.process.kill()

    def _end_all(self) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        alive = [child.process for child in self._children if child.process is not None]
        for process in alive:
            process.terminate()
        while alive and not self._kill.is_set() and time.monotonic() < deadline:
            alive = [process for process in alive if process.poll() is None]
            self._kill.wait(0.05)
        for process in alive:
            process.kill()
            process.wait()


class Silence:
    """How long workers have not beaten, by our own clock: the machine's can be set, and is no worker's fault."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._heard: dict[str, tuple[str, float]] = {}
        """By worker: its last heartbeat, and when that was first seen."""

    def find_silent(self, heartbeats: Mapping[str, str]) -> set[str]:
        """Return the workers whose heartbeat has been the same for too long."""
        known, now = self._heard, self._now()
        self._heard = {
            heartbeat: known[heartbeat] if heartbeat in known and known[heartbeat][0] == at else (at, now)
            for heartbeat, at in heartbeats.items()
        }
        return {process for process, (_, since) in self._heard.items() if now - since > SILENT_SECONDS}

    def forget(self) -> None:
        """Nobody could be heard."""
        self._heard = {}


def _last_line(child: _Child) -> str | None:
    """Return the last line that a child wrote before it ended; None if it wrote nothing."""
    try:
        with child.log_file.open("rb") as log_file:
            end = log_file.seek(0, os.SEEK_END)
            log_file.seek(max(child.log_begins, end - _LINE_BYTES))
            lines = log_file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)
