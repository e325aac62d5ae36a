"""What has happened to workers since the first look: starts, lost warm processes, out-of-memory kills.

A worker counts for itself, from its start, and sends its counts with its heartbeat. Here the growth of all workers is
added up, so the sums do not fall when a worker ends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from store.admin.workers import WorkerNode

COUNTS: Final = ("oom_kills", "warm_losses")
"""What `WorkerNode.probe["counts"]` holds."""

QUEUES: Final = ("cpu", "gpu")


def _zeros() -> Counter[str]:
    return Counter(dict.fromkeys(QUEUES, 0))


@dataclass(slots=True)
class WorkersSoFar:
    """Counts since the first look, by queue.

    Attributes:
        starts: Worker processes that have started.
        oom_kills: Processes of programs or workers that the kernel has killed for want of memory.
        warm_losses: Warm processes that ended without being asked to, or did not start.
    """

    starts: Counter[str] = field(default_factory=_zeros)
    oom_kills: Counter[str] = field(default_factory=_zeros)
    warm_losses: Counter[str] = field(default_factory=_zeros)


class WorkerTally:
    """Adds up what workers count. Each API process has its own, and counts the same."""

    def __init__(self) -> None:
        self._so_far = WorkersSoFar()
        self._known: Mapping[str, Mapping[str, int]] | None = None
        """The last counts of each worker that was alive at the last look; None: no look yet."""
        self._looking = threading.Lock()

    def look(self, live: Iterable[WorkerNode]) -> WorkersSoFar:
        """Add what has come since the last look. The value is the tally's own: read it, do not keep it."""
        with self._looking:
            now = {node.id: _counts_of(node) for node in live}
            if self._known is not None:
                for node in live:
                    self._add(node.queues, now[node.id], self._known.get(node.id))
            self._known = now
            return self._so_far

    def _add(self, queues: Iterable[str], now: Mapping[str, int], before: Mapping[str, int] | None) -> None:
        for queue in queues:
            self._so_far.starts[queue] += before is None
            for name in COUNTS:
                grown = now[name] - (0 if before is None else before[name])
                getattr(self._so_far, name)[queue] += max(0, grown)


def _counts_of(node: WorkerNode) -> dict[str, int]:
    found: Mapping[str, Any] = node.probe.get("counts") or {}
    return {name: int(found.get(name, 0)) for name in COUNTS}
