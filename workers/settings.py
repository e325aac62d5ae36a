"""What a worker, a reaper or an executor reads from its environment, once, into a frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LEASE_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 30.0
SLOTS_PER_CORE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How this process works.

    Attributes:
        executor: Unix socket of an executor; None: the worker starts its own warm process.
        visible_devices: CUDA_VISIBLE_DEVICES, for a worker of the gpu queue; None: unset.
        parent: Pid of the `serve` that started this process; it ends when that is gone. None: nobody did.
        lease_seconds: How long a claim holds without a heartbeat: a killed worker's run waits so long.
        drain_seconds: After SIGTERM, how long runs in hand may go on.
    """

    executor: str | None = None
    visible_devices: str | None = None
    parent: int | None = None
    lease_seconds: float = LEASE_SECONDS
    drain_seconds: float = DRAIN_SECONDS

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> WorkerSettings:
        """Read BACKPROBE_EXECUTOR, _PARENT_PID, _LEASE_SECONDS, _DRAIN_SECONDS, and CUDA_VISIBLE_DEVICES.

        Raises:
            ValueError: one of them is no number where a number is wanted.
        """
        parent = environ.get("BACKPROBE_PARENT_PID")
        return cls(
            executor=environ.get("BACKPROBE_EXECUTOR") or None,
            visible_devices=environ.get("CUDA_VISIBLE_DEVICES"),
            parent=int(parent) if parent else None,
            lease_seconds=float(environ.get("BACKPROBE_LEASE_SECONDS") or LEASE_SECONDS),
            drain_seconds=float(environ.get("BACKPROBE_DRAIN_SECONDS") or DRAIN_SECONDS),
        )


def slots(asked: int | None, queue: str) -> int:
    """Runs that a worker holds at once: what was asked for, else two per core; one where a GPU is shared."""
    return asked or (1 if queue == "gpu" else SLOTS_PER_CORE * (os.cpu_count() or 1))
