"""Control groups: what all processes of a run may use together, and a way to end them as one. Trusted side.

1. The files of version 2 or of version 1, and no library; `hierarchies` finds where.
2. A group has its limits before anything is put into it, and they are read back from the kernel.
3. Where none can be made, `lacking` says why; nobody goes on as if there were one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from dataclasses import asdict, dataclass
from typing import Final, Literal

from workers.sandbox.levels import cgroup_mounts
from workers.sandbox.levels.cgroup_mounts import PREFIX, NoCgroup, Place

PERIOD_MICROSECONDS: Final = 100_000
"""In which a run's share of the CPU is counted: the kernel's default."""


_AT_THE_LIMIT_BYTES: Final = 1 << 20
"""The kernel takes memory for a group in portions; so near to its limit the next one was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a group holds its processes to, as it was read back from the kernel.

    Attributes:
        version: Of the kernel's interface.
        memory: Bytes, of all processes together; pids: tasks; cpu: cores. None: not limited here.
    """

    version: Literal[1, 2]
    memory: int
    pids: int
    cpu: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a group has counted.

    Attributes:
        cpu_seconds: User and system time of all its processes; None: not counted here.
        oom_kills: Processes that were killed because the group had reached its own limit of memory.
        foreign_kills: Processes that were killed for want of memory while it was below its own limit: a group above it,
            or the machine, had none left.
        refused_tasks: Threads and processes that were not made because there were too many.
    """

    cpu_seconds: float | None
    oom_kills: int
    foreign_kills: int
    refused_tasks: int


class Cgroup:
    """One run's group: made with its limits before anything is put into it.

    Raises:
        OSError: it could not be made or limited.
    """

    def __init__(self, place: Place, name: str, *, memory_bytes: int, tasks: int, cores: int) -> None:
        self._place = place
        self._folders = {controller: folder / name for controller, folder in place.folders.items()}
        self._names = {controller: f"{above}/{name}" for controller, above in place.names.items()}
        for folder in set(self._folders.values()):
            folder.mkdir(mode=0o755)
        self._limit(memory_bytes, tasks, cores)
        page = os.sysconf("SC_PAGE_SIZE")
        self.asked: Final = Bounds(
            version=place.version,
            memory=memory_bytes // page * page,  # as the kernel rounds it
            pids=tasks,
            cpu=float(cores) if "cpu" in self._folders else None,
        )
        """What `bounds` must say."""

    def _limit(self, memory_bytes: int, tasks: int, cores: int) -> None:
        quota = cores * PERIOD_MICROSECONDS
        self._write("pids", "pids.max", tasks)
        if self._place.version == 2:
            self._write("memory", "memory.max", memory_bytes)
            swap = "memory.swap.max", 0
        else:
            self._write("memory", "memory.limit_in_bytes", memory_bytes)
            swap = "memory.memsw.limit_in_bytes", memory_bytes
        with contextlib.suppress(FileNotFoundError):  # this kernel does not count swap
            self._write("memory", *swap)
        if "cpu" in self._folders and self._place.version == 2:
            self._write("cpu", "cpu.max", f"{quota} {PERIOD_MICROSECONDS}")
        elif "cpu" in self._folders:
            self._write("cpu", "cpu.cfs_period_us", PERIOD_MICROSECONDS)
            self._write("cpu", "cpu.cfs_quota_us", quota)

    def join(self, pid: int) -> None:
        """Put a process into it; what that forks is in it too.

        Raises:
            OSError: the kernel refused.
        """
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def holds(self, listed: str) -> bool:
        """Return whether a process, by the text of its `/proc/PID/cgroup`, is in this group in every hierarchy."""
        found: dict[str, str] = {}
        for line in listed.splitlines():
            _, controllers, path = line.split(":", 2)
            found |= dict.fromkeys(controllers.split(","), path)
        if self._place.version == 2:
            return found.get("") == self._names["memory"]
        return all(found.get(controller) == name for controller, name in self._names.items())

    def bounds(self) -> Bounds:
        """Its limits as the kernel has them.

        Raises:
            OSError, ValueError: one cannot be read, or is not there.
        """
        if self._place.version == 2:
            memory = self._read("memory", "memory.max")
            share = self._read("cpu", "cpu.max").split() if "cpu" in self._folders else None
        else:
            memory = self._read("memory", "memory.limit_in_bytes")
            names = "cpu.cfs_quota_us", "cpu.cfs_period_us"
            share = [self._read("cpu", name) for name in names] if "cpu" in self._folders else None
        return Bounds(
            version=self._place.version,
            memory=int(memory),
            pids=int(self._read("pids", "pids.max")),
            cpu=None if share is None else int(share[0]) / int(share[1]),
        )

    def cpu_seconds(self) -> float | None:
        """User and system time of all that ran in it; None: not counted here."""
        if self._place.version == 2:
            return self._counter("memory", "cpu.stat", "usage_usec") / 1e6
        return int(self._read("cpuacct", "cpuacct.usage")) / 1e9 if "cpuacct" in self._folders else None

    def read_usage(self) -> Used:
        """Read what the group has counted until now.

        Raises:
            OSError: it is gone.
        """
        file = "memory.events" if self._place.version == 2 else "memory.oom_control"
        kills = self._counter("memory", file, "oom_kill")  # both versions count a kill whoever was out of memory
        reached = bool(kills) and self._has_reached_its_limit()
        return Used(
            cpu_seconds=self.cpu_seconds(),
            oom_kills=kills if reached else 0,
            foreign_kills=0 if reached else kills,
            refused_tasks=self._counter("pids", "pids.events", "max"),
        )

    def processes(self) -> int:
        """Count the processes that are in the group now."""
        return len(self._read("pids", "cgroup.procs").split())

    def kill(self) -> None:
        """Kill all that is in it. Version 1 has no such order: nothing can fork any more, and each is killed."""
        with contextlib.suppress(FileNotFoundError):
            if self._place.version == 2:
                self._write("memory", "cgroup.kill", 1)
                return
            self._write("pids", "pids.max", 0)
            for pid in self._read("pids", "cgroup.procs").split():
                self._kill_one(int(pid))

    def remove(self) -> bool:
        """Take it away; False: something is still in it."""
        for folder in set(self._folders.values()):
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True

    def _kill_one(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            try:
                if str(pid) in self._read("pids", "cgroup.procs").split():  # the number still means what it meant
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            finally:
                os.close(pidfd)

    def _has_reached_its_limit(self) -> bool:
        if self._place.version == 2:
            return self._counter("memory", "memory.events", "oom") > 0
        highest = int(self._read("memory", "memory.max_usage_in_bytes"))  # Linux 6.18 leaves `memory.failcnt` at 0
        return highest > self.asked.memory - _AT_THE_LIMIT_BYTES

    def _write(self, controller: str, file: str, value: int | str) -> None:
        (self._folders[controller] / file).write_text(str(value), encoding="ascii")

    def _read(self, controller: str, file: str) -> str:
        return (self._folders[controller] / file).read_text("ascii").strip()

    def _counter(self, controller: str, file: str, name: str) -> int:
        lines = (line.split() for line in self._read(controller, file).splitlines())
        return next((int(words[1]) for words in lines if words[0] == name), 0)


class Cgroups:
    """The groups of one worker: one group below the worker's, and below that one for each run.

    Raises:
        NoCgroup: none can be made here.
    """

    def __init__(self) -> None:
        self.place: Final = cgroup_mounts.make_group(
            cgroup_mounts.find(), f"{PREFIX}{os.getpid()}-{uuid.uuid4().hex[:8]}"
        )
        self._dying: list[Cgroup] = []

    def make(self, name: str, *, memory_bytes: int, tasks: int, cores: int) -> Cgroup:
        """Make a group for a run.

        Raises:
            OSError: it could not be made or limited.
        """
        return Cgroup(self.place, name, memory_bytes=memory_bytes, tasks=tasks, cores=cores)

    def end(self, group: Cgroup) -> None:
        """Kill what is in it and take it away; now, or as soon as the last process has gone."""
        group.kill()
        if not group.remove():
            self._dying.append(group)

    def settle(self) -> bool:
        """Take away what has become empty; True: nothing is left."""
        for group in list(self._dying):
            group.kill()
            if group.remove():
                self._dying.remove(group)
        return not self._dying

    def close(self) -> None:
        """Take the worker's group away."""
        self.settle()
        cgroup_mounts.remove(self.place)


def lacking() -> str | None:
    """Why no group with limits can be made here; None: one was made, and is gone again."""
    try:
        Cgroups().close()
    except NoCgroup as error:
        return str(error)
    return None


def bounds_to_json(bounds: Bounds) -> dict[str, float | None]:
    """As it is stored with a run."""
    return asdict(bounds)
