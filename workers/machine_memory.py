"""How much memory this process, and what it starts, may have: of the machine, or of the container around it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

KEPT_BYTES: Final = 1 << 30
"""At least this much is no run's: the worker with its warm processes, and what else the machine runs."""

_CGROUPS: Final = Path("/sys/fs/cgroup")
_LIMITS: Final = ("memory.max", "memory.limit_in_bytes")
"""Of version 2 and of version 1."""


def machine_bytes(proc: Path = Path("/proc"), cgroups: Path = _CGROUPS) -> int:
    """Return the least of the machine's memory and of the limits of the control groups that this process is in."""
    lines = (proc / "meminfo").read_text("ascii").splitlines()
    total = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemTotal:"))
    return min(total, *_limits_of_groups(proc, cgroups))


def memory_for_runs(total: int) -> int:
    """Return what of the memory of a machine, or of a container, its runs may have together: most of it."""
    return max(0, total - max(KEPT_BYTES, total // 8))


def _limits_of_groups(proc: Path, cgroups: Path) -> Iterator[int]:
    """Each limit on the way up; in a container the path may be the host's, and the limit stands at the top."""
    yield 1 << 62
    for line in (proc / "self/cgroup").read_text("ascii", "replace").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = cgroups / "memory" if controllers else cgroups
        group = top / path.lstrip("/")
        for folder in (group, *(above for above in group.parents if above.is_relative_to(top)), top):
            for name in _LIMITS:
                with contextlib.suppress(OSError, ValueError):  # not there; or `max`
                    yield int((folder / name).read_text("ascii"))
