"""What a worker, a reaper or an executor reads from its environment, once, into a frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from backprobe.isolation import ISOLATION_LEVELS, IsolationLevel
from workers.sandbox.levels.names import SANDBOX_UID, SLOT_UIDS

Asked = IsolationLevel | Literal["auto"]

LEASE_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 30.0
SLOTS_PER_CORE: Final = 2
MOST_UID: Final = (1 << 32) - 3 - SLOT_UIDS
"""Of BACKPROBE_SANDBOX_UID: runs in flight take the numbers after it, and the last two mean nobody to the kernel."""

GPU_MEMORY_FRACTION: Final = 0.9
"""The next run's process gets ready beside the one that runs, and needs some of the device for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How this process works.

    Attributes:
        executor: Unix socket of an executor; None: the worker starts its own warm process.
        visible_devices: CUDA_VISIBLE_DEVICES, for a worker of the gpu queue; None: unset.
        gpu_memory_fraction: Of each device's memory, what a run on the gpu queue may take.
        parent: Pid of the `serve` that started this process; it ends when that is gone. None: nobody did.
        lease_seconds: How long a claim holds without a heartbeat: a killed worker's run waits so long.
        drain_seconds: After SIGTERM, how long runs in hand may go on.
        isolation: The level at which every run is executed; `auto`: the highest up to `namespace` that this machine
            can give.
        trust_code: Where `auto` finds none, level `none` will do: only code that is trusted is sent here.
        sandbox_uid: Whom programs become where the worker is root.
        memory_bytes: What the runs in hand may have together, as their limits promise it; None: most of the machine's.
        ahead: In a pause a child is forked and locked down for whoever comes next; it takes some 15 MiB.
        warm_further: In its pauses a warm process loads what programs that train need, and takes some 100 MiB more.
    """

    executor: str | None = None
    visible_devices: str | None = None
    gpu_memory_fraction: float = GPU_MEMORY_FRACTION
    parent: int | None = None
    lease_seconds: float = LEASE_SECONDS
    drain_seconds: float = DRAIN_SECONDS
    isolation: Asked = "auto"
    trust_code: bool = False
    sandbox_uid: int = SANDBOX_UID
    memory_bytes: int | None = None
    ahead: bool = True
    warm_further: bool = True

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> WorkerSettings:
        """Read BACKPROBE_EXECUTOR, _PARENT_PID, _LEASE_SECONDS, _DRAIN_SECONDS, and CUDA_VISIBLE_DEVICES.

        Besides, of the sandbox: BACKPROBE_ISOLATION, _TRUST_CODE (1), _SANDBOX_UID, _GPU_MEMORY_FRACTION,
        _WORKER_MEMORY_BYTES, _AHEAD (0), _WARM_FURTHER (0).

        Raises:
            ValueError: one of them is no number where a number is wanted, or no level where one is.
        """
        isolation = environ.get("BACKPROBE_ISOLATION") or "auto"
        if isolation not in ("auto", *ISOLATION_LEVELS):
            message = f"BACKPROBE_ISOLATION is {isolation!r}; it must be auto, {', '.join(ISOLATION_LEVELS)}"
            raise ValueError(message)
        fraction = float(environ.get("BACKPROBE_GPU_MEMORY_FRACTION") or GPU_MEMORY_FRACTION)
        if not 0 < fraction <= 1:
            message = f"BACKPROBE_GPU_MEMORY_FRACTION is {fraction}; it must be above 0 and at most 1"
            raise ValueError(message)
        parent = environ.get("BACKPROBE_PARENT_PID")
        uid = environ.get("BACKPROBE_SANDBOX_UID") or str(SANDBOX_UID)
        if not (uid.isascii() and uid.isdigit() and 0 < int(uid) <= MOST_UID):
            message = f"BACKPROBE_SANDBOX_UID is {uid!r}; it must be a number from 1, which is not root, to {MOST_UID}"
            raise ValueError(message)
        memory = environ.get("BACKPROBE_WORKER_MEMORY_BYTES") or ""
        if memory and not (memory.isascii() and memory.isdigit() and len(memory) < 16 and int(memory)):
            message = f"BACKPROBE_WORKER_MEMORY_BYTES is {memory!r}; it must be a number of bytes, from 1"
            raise ValueError(message)
        return cls(
            executor=environ.get("BACKPROBE_EXECUTOR") or None,
            visible_devices=environ.get("CUDA_VISIBLE_DEVICES"),
            gpu_memory_fraction=fraction,
            parent=int(parent) if parent else None,
            lease_seconds=float(environ.get("BACKPROBE_LEASE_SECONDS") or LEASE_SECONDS),
            drain_seconds=float(environ.get("BACKPROBE_DRAIN_SECONDS") or DRAIN_SECONDS),
            isolation=cast("Asked", isolation),
            trust_code=environ.get("BACKPROBE_TRUST_CODE") == "1",
            sandbox_uid=int(uid),
            memory_bytes=int(memory) if memory else None,
            ahead=environ.get("BACKPROBE_AHEAD") != "0",
            warm_further=environ.get("BACKPROBE_WARM_FURTHER") != "0",
        )


def slots(asked: int | None, queue: str, isolation: Asked = "auto", *, cpus: float = 1.0) -> int:
    """Return how many runs a worker holds at once: what was asked for, else two per core; one where a GPU is shared.

    At `gvisor` it is one, whatever was asked for: no two strangers are under one sentry at one time.

    Args:
        asked: What the command line says; None: nothing.
        queue: Which queue the worker serves.
        isolation: The level that its settings ask for.
        cpus: Processors that its programs may use, which a container may limit to fewer than its host has.
    """
    if isolation == "gvisor":
        return 1
    return asked or (1 if queue == "gpu" else max(1, int(SLOTS_PER_CORE * cpus)))
