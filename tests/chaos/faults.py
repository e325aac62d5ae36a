"""What is done to a stack: each fault begins, lasts, and is mended; what it did is counted."""

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.chaos.stack import Besieged
from tests.support.processes import descendants


@dataclass
class Faults:
    """The faults of one stack.

    Args:
        most_seconds: The longest that a server is away.
        disk: A small file system of this test's own, None: nothing may be filled.

    Attributes:
        counts: How often each was made.
        killed_children: Numbers of the programs whose process was killed: it is run again while attempts are left, and fails
            by SIGKILL at level `none`.
    """

    stack: Besieged
    most_seconds: float
    disk: Path | None
    counts: Counter[str] = field(default_factory=Counter)
    killed_children: set[int] = field(default_factory=set)
    _later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    _active: set[str] = field(default_factory=set)

    def turn(self) -> None:
        """End faults that have lasted long enough, and keep the processes and servers at work that should be."""
        now = time.monotonic()
        due = [what for at, what in self._later if at <= now]
        self._later = [(at, what) for at, what in self._later if at > now]
        for fix in due:
            fix()
        stack = self.stack
        for worker in list(stack.workers):
            if worker.poll() is not None:
                self.counts["workers that ended by themselves"] += 1
                stack.workers.remove(worker)
                stack.start_worker()
        if stack.reaper is not None and stack.reaper.poll() is not None:
            self.counts["reapers that ended by themselves"] += 1
            stack.start_reaper()
        if not self._active:
            for server in stack.servers.values():
                if not server.alive:
                    server.start(wait=False)

    def end(self) -> None:
        """End all faults now."""
        for _, fix in self._later:
            fix()
        self._later = []

    def begin_one(self) -> None:
        """One fault, chosen by chance among those that this stack can have now."""
        known: list[Callable[[], None]] = [self.kill_worker] * 2 + [self.kill_child] * 3 + [self.kill_reaper]
        known += [self.kill_zygote, self.cut_broker, self.cut_database, self.fill_disk, self.restart_server]
        random.choice(known)()

    def _end_after(self, name: str, seconds: float, fix: Callable[[], None]) -> None:
        self._active.add(name)

        def end() -> None:
            self._active.discard(name)
            fix()

        self._later.append((time.monotonic() + seconds, end))

    def _seconds(self) -> float:
        return random.uniform(min(1.0, self.most_seconds), self.most_seconds)

    def kill_worker(self) -> None:
        worker = random.choice(self.stack.workers)
        self.stack.kill(worker)
        self.counts["workers killed"] += 1
        self.stack.start_worker(wrong=self.counts["workers killed"] % 3 == 0)

    def kill_reaper(self) -> None:
        if self.stack.reaper is None:
            return
        self.stack.kill(self.stack.reaper)
        self.stack.reaper = None
        self.counts["reapers killed"] += 1
        self._end_after("reaper", random.uniform(0.0, min(3.0, self.most_seconds)), self.stack.start_reaper)

    def kill_zygote(self) -> None:
        for child in random.choice(self.stack.workers).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.children():
                    child.kill()
                    self.counts["warm processes killed"] += 1

    def kill_child(self) -> None:
        """Kill a program that says by an open file which one it is."""
        for worker in self.stack.workers:
            for descendant in descendants(worker):
                number = program_of(descendant)
                if number is None:
                    continue
                self.killed_children.add(number)
                with contextlib.suppress(psutil.NoSuchProcess):
                    descendant.kill()
                    self.counts["children killed"] += 1
                return

    def cut_broker(self) -> None:
        if "broker" in self._active:
            return
        to = self.stack.to_broker
        self.counts["broker cut off"] += 1
        if to is not None:
            to.cut(silent=random.random() < 0.5)
            self._end_after("broker", self._seconds(), to.fix)
            return
        messages = self.stack.settings.home / "broker" / "messages"
        away = messages.with_name("away")
        if messages.exists():
            messages.rename(away)
            self._end_after("broker", self._seconds(), lambda: _put_back(away, messages))

    def cut_database(self) -> None:
        if self._active & {"database", "disk"}:
            return
        to = self.stack.to_database
        self.counts["database cut off"] += 1
        if to is not None:
            to.cut(silent=random.random() < 0.5)
            self._end_after("database", self._seconds(), to.fix)
            return
        held = sqlite3.connect(self.stack.database.url.database or "", timeout=30, check_same_thread=False)
        held.isolation_level = None
        held.execute("BEGIN IMMEDIATE")  # nobody else can write meanwhile

        def let_go() -> None:
            held.execute("ROLLBACK")
            held.close()

        self._end_after("database", self._seconds(), let_go)

    def restart_server(self) -> None:
        if not self.stack.servers or self._active:
            return
        name = random.choice(sorted(self.stack.servers))
        server = self.stack.servers[name]
        server.kill()
        self.counts[f"{name} killed"] += 1
        self._end_after(name, random.uniform(0.0, self.most_seconds / 3), lambda: server.start(wait=False))

    def fill_disk(self) -> None:
        if self.disk is None or self._active:
            return
        self.counts["disk filled"] += 1
        balloon = self.disk / "balloon"
        stop = threading.Event()
        filling = threading.Thread(target=_fill, args=(balloon, stop), daemon=True)
        filling.start()

        def empty() -> None:
            stop.set()
            filling.join()
            balloon.unlink(missing_ok=True)

        self._end_after("disk", random.uniform(1.0, max(1.0, self.most_seconds / 3)), empty)


def program_of(process: psutil.Process) -> int | None:
    """Which program this process executes; None: it has not said so."""
    try:
        names = [os.readlink(link) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
    except OSError:
        return None
    return next((int(name.rpartition("-")[2]) for name in names if "/mark-" in name and name[-1].isdigit()), None)


def _put_back(away: Path, messages: Path) -> None:
    if messages.exists():  # a process that started meanwhile made a new one
        for path in away.iterdir():
            path.rename(messages / path.name)
        away.rmdir()
    else:
        away.rename(messages)


def _fill(balloon: Path, stop: threading.Event) -> None:
    """Take every free byte, and what is freed too, until it is enough."""
    with balloon.open("wb", buffering=0) as file:
        while not stop.is_set():
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while not stop.is_set():
                        file.write(b"\0" * size)
            stop.wait(0.02)
