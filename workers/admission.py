"""Which runs a worker has memory for: the limits of all that it holds promise no more than there is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from store.access.worker_shares import MemoryRoom
from store.runs.limits import Limits, tenant_memory_bytes
from store.runs.model import Claim


class Admission:
    """Keeps count of the memory that the runs in hand may come to hold.

    Args:
        memory_bytes: For all runs together; a run with the default limits is always let in when there is no other.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes: Final = max(memory_bytes, Limits().promised_bytes)
        self._promised: dict[int, int] = {}
        self._claiming = threading.Lock()

    def claim(self, take: Callable[[MemoryRoom], Claim | None]) -> Claim | None:
        """Claim a run for which there is memory: `take` gets what is left. One claim at a time."""
        with self._claiming:
            free = self.memory_bytes - sum(self._promised.values())
            taken = take(MemoryRoom(free_bytes=free, tenant_bytes=tenant_memory_bytes(self.memory_bytes)))
            if taken is not None:
                self._promised[taken.run_id] = taken.limits.promised_bytes
            return taken

    def give_back(self, claim: Claim) -> None:
        """Count a run no longer: nothing of it is in memory."""
        self._promised.pop(claim.run_id, None)
