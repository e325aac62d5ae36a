"""What hostile programs go for, and the eyes on it: files, sockets, a victim, a secret; all verdicts are made here.

A folder of hostile programs names these with `__NAME__` in its texts; its README says what each becomes.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from backprobe.record import TABLES, Record
from store.runs.limits import Limits
from tests.support.addresses import own_uid
from workers.sandbox.levels.names import SLOT_UIDS
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

UID = own_uid()
"""Of this test process alone, with those that its runs in flight share out: their processes are counted and killed,
their files removed."""

LIMITS = Limits(
    cpu_seconds=3,
    wall_seconds=60,
    memory_bytes=600 << 20,
    output_bytes=1 << 20,
    record_bytes=8 << 20,
    disk_bytes=16 << 20,
)
SECRET_NAME, SECRET = "BACKPROBE_TEST_SECRET", "CANARY_ENV_33"
LATE_SECONDS = 1.5
ENDS_LATE = re.compile(r"^# OUTCOME:.*\b(wall|exceeded *(\||$))", re.MULTILINE)
"""A program that may wait for its limit of wall time; all others end by themselves or at another limit."""

GROWTH_BYTES = 64 << 20
PLACES = ("/tmp", "/var/tmp", "/dev/shm")
HOST_FILE = re.compile(rb"root:[^:\s]{0,200}:\d+:")


def _rows(record: Record | None) -> Iterator[bytes]:
    """Each row of a record as text; one at a time, for the whole is tens of megabytes."""
    if record is not None:
        yield repr((record.header, record.end)).encode("utf-8", "backslashreplace")
        for table in TABLES:
            for row in getattr(record, table):
                yield repr(row).encode("utf-8", "backslashreplace")


def limits_for(text: str) -> Limits:
    """The limits of a hostile program: one that waits for its limit of wall time does not wait for a minute.

    A program that shares its core reaches its limit of CPU time later by the clock, so the load counts.
    """
    return replace(LIMITS, wall_seconds=round(4 * busy())) if ENDS_LATE.search(text) else LIMITS


def busy() -> float:
    """Tasks per core now, 1 to 15."""
    return min(15.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _may_be_entered(folder: str) -> bool:
    """By a run's uid, which is in no group: where it is shut out it leaves nothing."""
    with contextlib.suppress(OSError):
        there = os.lstat(folder)
        return bool(there.st_mode & 0o001) or UID <= there.st_uid <= UID + SLOT_UIDS
    return False


class Field:
    """Laid out once; `breaches` looks at it after a run, and mends it."""

    def __init__(self, supervisor: Supervisor, valid_stream: bytes) -> None:
        self._supervisor, self._valid = supervisor, valid_stream
        self._reached: list[str] = []
        self._over = threading.Event()
        self.folder = Path(tempfile.mkdtemp(prefix="hostile-", dir="/var/tmp"))
        self.folder.chmod(0o777)
        (self.folder / "CANARY_LISTED").touch()
        other = Path(tempfile.mkdtemp(prefix="backprobe-other-run-"))
        other.chmod(0o777)
        shm = Path(tempfile.mkdtemp(prefix="torch_", dir="/dev/shm"))
        shm.chmod(0o777)
        self._folders = [self.folder, other, shm]
        self.files = {
            "CANARY_FILE": self.folder / "tenant.txt",
            "OTHER_RUN_FILE": other / "result.txt",
            "SHM_FILE": shm / "tensor",
        }
        self._restore()
        self.port = self._listen("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._listen("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", self.port))
        self._listen("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.folder.name}")
        self._listen("path", socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "sock"))
        self._victim = self._new_victim()

    def close(self) -> None:
        self._over.set()
        self._victim.kill()
        self._victim.wait()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def filled(self, source: str) -> str:
        """A hostile text with what it goes for."""
        words = {name: str(path) for name, path in self.files.items()} | {
            "CANARY_DIR": str(self.folder),
            "VICTIM": str(self._victim.pid),
            "PORT": str(self.port),
            "ABSTRACT_SOCKET": self.folder.name,
            "PATH_SOCKET": str(self.folder / "sock"),
            "SECRET_NAME": SECRET_NAME,
            "SECRET_REGEX": "C[A]NARY_EN[V]_33",
            "VALID_STREAM": repr(self._valid),
        }
        return re.sub(r"__([A-Z_]+)__", lambda found: words.get(found[1], found[0]), source)

    def before(self) -> None:
        """Remember how things are."""
        self._known = self._of_uid(), self._new_files(), psutil.Process().memory_info().rss
        self._started = time.monotonic()

    def breaches(self, outcome: Outcome, limits: Limits) -> list[str]:
        """What the run achieved that it must not, as seen from outside."""
        took = time.monotonic() - self._started
        grown = psutil.Process().memory_info().rss - self._known[2]  # now: the looking itself takes memory
        found = [*self._in_what_came_out(outcome), *self._left_behind()]
        if self._reached:
            found.append(f"reached a listener: {sorted(set(self._reached))}")
            self._reached.clear()
        if self._victim.poll() is not None or psutil.Process(self._victim.pid).status() != psutil.STATUS_SLEEPING:
            found.append("the victim is dead or stopped")
            self._victim.kill()
            self._victim.wait()
            self._victim = self._new_victim()
        if any(not path.exists() or path.read_text() != f"CANARY_{name}" for name, path in self.files.items()):
            found.append("a file of another tenant changed")
            self._restore()
        elif self._stamps != self._times():
            found.append("the time of another tenant's file changed")
            self._restore()
        if took > limits.wall_seconds + LATE_SECONDS + self._slack():
            found.append(f"came back after {took:.1f} s")
        if grown > GROWTH_BYTES:
            found.append(f"the supervisor grew by {grown >> 20} MiB")
        return found

    @staticmethod
    def _slack() -> float:
        """What a machine with more tasks than cores adds, in seconds."""
        return busy() - 1.0

    def _in_what_came_out(self, outcome: Outcome) -> list[str]:
        told = outcome.facts.stdout + outcome.facts.stderr
        # the program's own text holds the names of what it goes for: the record has its source
        found = ["printed a canary"] if b"CANARY" in told else []
        shown = HOST_FILE.search(told) or any(HOST_FILE.search(text) for text in _rows(outcome.record))
        return found + (["printed a file of the host"] if shown else [])

    def _left_behind(self) -> list[str]:
        deadline = time.monotonic() + 5.0
        while (left := self._of_uid() - self._known[0]) and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        new = self._new_files() - self._known[1]
        for path in sorted(new, reverse=True):
            shutil.rmtree(path, ignore_errors=True) if Path(path).is_dir() else Path(path).unlink(missing_ok=True)
        return [f"left {len(left)} processes"] * bool(left) + [f"left {len(new)} files"] * bool(new)

    def _of_uid(self) -> set[psutil.Process]:
        """Live processes of the suite's uid, but for the victim and the warm process itself."""
        ours = psutil.Process().children(recursive=False)
        for _level in range(2):
            for one in tuple(ours):
                with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                    ours += one.children(recursive=False)
        found = set()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if (
                    UID <= process.uids().real <= UID + SLOT_UIDS
                    and process.status() != psutil.STATUS_ZOMBIE
                    and process not in ours
                ):
                    found.add(process)
        return found

    def _new_files(self) -> set[str]:
        found = set()
        for place in PLACES:
            for folder, folders, files in os.walk(place):
                for name in (*folders, *files):
                    path = os.path.join(folder, name)
                    with contextlib.suppress(OSError):
                        if UID <= os.lstat(path).st_uid <= UID + SLOT_UIDS:
                            found.add(path)
                folders[:] = [name for name in folders if _may_be_entered(os.path.join(folder, name))]
        return found

    def _restore(self) -> None:
        for name, path in self.files.items():
            path.write_text(f"CANARY_{name}")
            path.chmod(0o666)
        self._stamps = self._times()

    def _times(self) -> list[int]:
        return [path.stat().st_mtime_ns for path in self.files.values()]

    def _new_victim(self) -> subprocess.Popen[bytes]:
        groups: list[int] | None = [] if os.geteuid() == 0 else None
        uid = UID if os.geteuid() == 0 else None
        return subprocess.Popen(["/bin/sleep", "infinity"], env={}, cwd="/", user=uid, group=uid, extra_groups=groups)

    def _listen(self, name: str, family: int, kind: int, address: Any) -> int:
        one = socket.socket(family, kind)
        one.bind(address)
        if name == "path":
            Path(str(address)).chmod(0o777)
        if kind == socket.SOCK_STREAM:
            one.listen()
        one.settimeout(0.2)

        def loop() -> None:
            with one:
                while not self._over.is_set():
                    with contextlib.suppress(TimeoutError):
                        one.accept()[0].close() if kind == socket.SOCK_STREAM else one.recv(100)
                        self._reached.append(name)

        threading.Thread(target=loop, daemon=True).start()
        return one.getsockname()[1] if family == socket.AF_INET else 0
