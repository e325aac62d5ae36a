"""Whether a sandbox holds what its level says: small attacks of every family, and a good run between them.

1. A level is offered only while every canary of it is contained; one that gets through withdraws it at once.
2. Verdicts are the probe's: its file, its listener, its victim, its clock; of the child only what it printed.
3. At `none` every canary that can breach must: that is how a test knows that the detectors work.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from store.runs.limits import Limits
from workers.sandbox.levels.canaries import FAMILIES, GOOD, GOOD_SAYS, MARK
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

LIMITS: Final = Limits(cpu_seconds=5, wall_seconds=10, memory_bytes=512 << 20, disk_bytes=0)
LATE_SECONDS: Final = 5.0
"""Beyond its wall clock; a loaded machine is slow, a lost child is never back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a probe found.

    Attributes:
        probe_id: Stored with every run that relies on it.
        breaches: Family and the fact that gave it away; empty: the level holds.
    """

    probe_id: str
    breaches: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """The level may be offered."""
        return not self.breaches


def prove(supervisor: Supervisor, families: Sequence[str] = tuple(FAMILIES)) -> Proof:
    """Attack the sandbox of this supervisor."""
    started = time.monotonic()
    with _Field(supervisor.confinement.uid) as field:
        breaches = [*_good(supervisor)]
        for family in families:
            outcome = supervisor.run(
                Job(files={"canary.py": field.fill_targets(FAMILIES[family])}, entry="canary.py", limits=LIMITS)
            )
            breaches += [f"{family}: {what}" for what in field.breaches(family, outcome)]
        breaches += _good(supervisor)
    return Proof(
        probe_id=f"probe_{uuid.uuid4().hex[:12]}", breaches=tuple(breaches), seconds=time.monotonic() - started
    )


def _good(supervisor: Supervisor) -> Iterator[str]:
    outcome = supervisor.run(Job(files={"good.py": GOOD}, entry="good.py", limits=LIMITS))
    if outcome.status != "succeeded" or outcome.facts.stdout != GOOD_SAYS:
        why = outcome.facts.broken or outcome.facts.stderr[-200:].decode("utf-8", "replace") or outcome.reason
        yield f"good: a correct program did not end with its number: {why}"


class _Field:
    """What the canaries go for: a file, a listener, a process of the sandbox's own uid."""

    def __init__(self, uid: int | None) -> None:
        self._uid = uid
        self._reached: list[str] = []
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="backprobe-probe-"))
        self._folder.chmod(0o777)  # the attack must fail by the sandbox, not by the file's owner
        self._file = self._folder / "another-tenant.txt"
        self._file.write_text(MARK, encoding="ascii")
        self._file.chmod(0o666)
        self._sockets = [socket.socket(socket.AF_INET, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
        self._sockets[0].bind(("127.0.0.1", 0))
        self._port = self._sockets[0].getsockname()[1]
        self._sockets[1].bind(("127.0.0.1", self._port))
        self._sockets[0].listen()
        for listener in self._sockets:
            listener.settimeout(0.2)
        self._threads = [
            threading.Thread(target=self._listen, args=(listener,), daemon=True) for listener in self._sockets
        ]
        for thread in self._threads:
            thread.start()
        self._victim = self._new_victim()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        for listener in self._sockets:
            listener.close()
        self._end_victim()
        shutil.rmtree(self._folder, ignore_errors=True)

    def fill_targets(self, source: str) -> str:
        """Fill in the targets of a canary: the file, the folder, the port and the processes that it attacks."""
        words = {
            "FILE": repr(str(self._file)),
            "FOLDER": repr(str(self._folder)),
            "PORT": str(self._port),
            "VICTIM": str(self._victim.pid),
            "SUPERVISOR": str(os.getpid()),
        }
        for name, value in words.items():
            source = source.replace(f"@{name}@", value)
        return source

    def breaches(self, family: str, outcome: Outcome) -> Iterator[str]:
        """Yield what a canary achieved, and restore the field."""
        if outcome.status == "lost":
            yield f"the sandbox broke: {outcome.facts.broken}"
        if MARK.encode() in outcome.facts.stdout + outcome.facts.stderr:
            yield f"it printed {outcome.facts.stdout[:80].decode('utf-8', 'replace')!r}"
        if self._file.read_text(encoding="utf-8") != MARK or len(list(self._folder.iterdir())) > 1:
            yield "it wrote to another tenant's folder"
            self._file.write_text(MARK, encoding="ascii")
            (self._folder / "new").unlink(missing_ok=True)
        if self._reached:
            yield f"it reached a listener by {', '.join(sorted(set(self._reached)))}"
            self._reached.clear()
        if self._victim.poll() is not None:
            yield "it ended a process of another run"
            self._end_victim()
            self._victim = self._new_victim()
        if outcome.facts.wall_seconds > LIMITS.wall_seconds + LATE_SECONDS:
            yield f"it ended {outcome.facts.wall_seconds - LIMITS.wall_seconds:.1f} s late"
        if family == "memory" and (outcome.status, outcome.reason) != ("exceeded", "memory"):
            yield f"it was not stopped by the limit of memory: {outcome.status} {outcome.reason}"

    def _end_victim(self) -> None:
        with self._victim:  # closes its pipe, waits
            self._victim.kill()

    def _new_victim(self) -> subprocess.Popen[bytes]:
        groups: list[int] | None = None if self._uid is None else []
        return subprocess.Popen(
            ["/bin/cat"],  # ends by itself with this process, whose end of the pipe then closes
            env={},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            user=self._uid,
            group=self._uid,
            extra_groups=groups,
        )

    def _listen(self, listener: socket.socket) -> None:
        stream = listener.type == socket.SOCK_STREAM
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                if stream:
                    listener.accept()[0].close()
                else:
                    listener.recv(16)
                self._reached.append("TCP" if stream else "UDP")
