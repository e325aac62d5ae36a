"""How many processes of this process's own cgroup the kernel has killed for want of memory.

Runs with a cgroup of their own are counted by that. Without one, a run is in the worker's or executor's group.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from workers.sandbox.levels.cgroup_mounts import own_folders

_FILES: Final = (("cgroup2", "memory.events.local"), ("memory", "memory.oom_control"))
"""By hierarchy: the file that counts the kills of this group alone, not of those below it."""


def count_oom_kills() -> int:
    """Return the kills since the group was made; 0 where the kernel counts none."""
    folders = [(folder, file) for hierarchy, file in _FILES for folder in own_folders(hierarchy)[:1]]
    return sum(read_count(folder / file) for folder, file in folders)


def read_count(path: Path) -> int:
    """Return the number behind the word `oom_kill` of a cgroup's file; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text("ascii").splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return 0
