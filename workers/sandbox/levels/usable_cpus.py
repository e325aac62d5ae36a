"""How many processors this process may use: the least of its affinity and of the CPU limits of its cgroups.

A container that is limited to two processors sees all of its host's.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from workers.sandbox.levels.cgroup_mounts import own_folders

_FILES: Final = (("cgroup2", "cpu.max"), ("cpu", "cpu.cfs_quota_us"))
"""By hierarchy: the file that holds its limit. Version 2 holds quota and period; version 1 the quota alone."""


def usable_cpus() -> float:
    """Return the processors that this process may use; a limit may be a part of one."""
    found = [float(len(os.sched_getaffinity(0)))]
    for hierarchy, file in _FILES:
        found += [limit for folder in own_folders(hierarchy) if (limit := read_limit(folder / file)) is not None]
    return min(found)


def read_limit(path: Path) -> float | None:
    """Return the processors that a cgroup's file allows; None: it sets no limit, or is not there."""
    with contextlib.suppress(OSError, ValueError, IndexError, ZeroDivisionError):
        words = path.read_text("ascii").split()
        if path.name != "cpu.max":
            words += path.with_name("cpu.cfs_period_us").read_text("ascii").split()
        quota, period = int(words[0]), int(words[1])  # "max" and -1: no limit
        return quota / period if quota > 0 else None
    return None
