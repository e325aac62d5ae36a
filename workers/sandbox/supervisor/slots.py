"""What a run in flight has for itself beside its process: a uid and a cgroup. Owned by the supervisor's thread.

1. No two runs in flight have the same uid; one that was given back is the last to be given out again.
2. A cgroup has its limits before anything is put into it, and is taken away once the last process has gone.
"""

from __future__ import annotations

import collections
import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from store.runs.limits import Limits
from workers.sandbox.levels.cgroups import Cgroup, Cgroups
from workers.sandbox.levels.names import Confinement
from workers.sandbox.process.lockdown import tasks
from workers.sandbox.process.messages import Fork

CLOSE_SECONDS: Final = 2.0
"""At the end: processes that were killed need a moment to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Of one run in flight.

    Attributes:
        uid: Whom it becomes; 0: whom all runs of its warm process are.
    """

    uid: int = 0
    cgroup: Cgroup | None = None


class Slots:
    """Gives them out and takes them back.

    Raises:
        NoCgroup: the confinement promises cgroups, and none can be made.
    """

    def __init__(self, confinement: Confinement) -> None:
        first = (confinement.uid or 0) + 1
        self._uids = collections.deque(range(first, first + confinement.uids))
        self._shared: Final = confinement.uids == 0
        self._cgroups = Cgroups() if confinement.cgroups else None
        self._placed = self._cgroups is not None or (not self._shared and confinement.level != "gvisor")

    @property
    def places(self) -> bool:
        """A child must wait until it was put into its slot."""
        return self._placed

    def take(self, order: Fork, *, limits: Limits) -> Slot:
        """Take a slot for this run.

        Raises:
            OSError: there is none.
        """
        uid = 0
        if not self._shared:
            if not self._uids:
                raise OSError("every uid of the sandbox is in use")
            uid = self._uids.popleft()
        if self._cgroups is None:
            return Slot(uid=uid)
        try:
            cgroup = self._cgroups.make(
                str(order.serial),
                memory_bytes=limits.promised_bytes,
                tasks=tasks(order),
                cores=order.processes * order.threads,
            )
        except OSError:
            self.free(Slot(uid=uid))
            raise
        return Slot(uid=uid, cgroup=cgroup)

    def free(self, slot: Slot) -> None:
        """Free the slot of a run that is over, and kill what is left in its cgroup."""
        if slot.cgroup is not None and self._cgroups is not None:
            self._cgroups.end(slot.cgroup)
        if slot.uid:
            self._uids.append(slot.uid)

    def settle(self) -> bool:
        """Take away the cgroups that have become empty; True: none is left to be."""
        return self._cgroups is None or self._cgroups.settle()

    def close(self) -> None:
        """Take the worker's own group away, once the last process has gone."""
        if self._cgroups is None:
            return
        deadline = time.monotonic() + CLOSE_SECONDS
        while not self.settle() and time.monotonic() < deadline:
            time.sleep(0.005)
        self._cgroups.close()


def put(slot: Slot, proc: int, pidfd: int) -> None:
    """Put a child into its slot: it has its own user namespace, and waits.

    Args:
        proc: A descriptor of its folder in /proc; pidfd: of itself.

    Raises:
        OSError, ValueError: that was refused, or it has gone.
    """
    if slot.cgroup is not None:
        slot.cgroup.join(_pid(pidfd))
    if slot.uid:
        for name, text in (
            ("setgroups", "deny"),
            ("gid_map", f"{slot.uid} {slot.uid} 1"),
            ("uid_map", f"{slot.uid} {slot.uid} 1"),
        ):
            file = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
            with contextlib.closing(os.fdopen(file, "w", encoding="ascii")) as out:
                out.write(text)


def _pid(pidfd: int) -> int:
    """Return the pid that this process sees for another; it is valid as long as that process was not reaped."""
    lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text("ascii").splitlines()
    pid = next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
    if pid <= 0:
        raise ValueError("it has gone, or is out of sight")
    return pid
