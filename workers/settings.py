"""What a worker, a reaper or an executor reads from its environment, once, into a frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from backprobe.isolation import ISOLATION_LEVELS, IsolationLevel
from store.database.environment_variables import describe_variable
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
    """How this process works; the metadata of a field names its environment variable and says what it means.

    Attributes:
        executor: None: the worker starts its own warm process.
        parent: Pid of the `serve` that started this process. It ends when that process has ended. None: no `serve`.
        memory_bytes: None: most of the machine's memory.
    """

    isolation: Asked = field(
        default="auto",
        metadata=describe_variable(
            "BACKPROBE_ISOLATION",
            "the level of every run; the worker does not start if the level is not available. `auto`: the highest "
            "available level up to `namespace`",
        ),
    )
    trust_code: bool = field(
        default=False,
        metadata=describe_variable("BACKPROBE_TRUST_CODE", "`1`: if `auto` finds no level, use `none`", "unset"),
    )
    sandbox_uid: int = field(
        default=SANDBOX_UID,
        metadata=describe_variable(
            "BACKPROBE_SANDBOX_UID",
            "the uid that programs get if the worker runs as root, at every level and with a GPU; not 0, and no "
            "account should have it",
        ),
    )
    memory_bytes: int | None = field(
        default=None,
        metadata=describe_variable(
            "BACKPROBE_WORKER_MEMORY_BYTES",
            "the memory that all runs of the worker may have together, counted by their limits: `memory_bytes`, "
            "`disk_bytes` and 256 MiB for each. A run for which there is no memory waits. With an executor, the "
            "memory of its container counts, not the worker's",
            "seven eighths of the machine's memory, or of the container's if that is less; at least 1 GiB stays free",
        ),
    )
    lease_seconds: float = field(
        default=LEASE_SECONDS,
        metadata=describe_variable(
            "BACKPROBE_LEASE_SECONDS", "how long the run of a killed worker waits for another worker"
        ),
    )
    drain_seconds: float = field(
        default=DRAIN_SECONDS,
        metadata=describe_variable("BACKPROBE_DRAIN_SECONDS", "how long runs in progress may continue after SIGTERM"),
    )
    executor: str | None = field(
        default=None,
        metadata=describe_variable(
            "BACKPROBE_EXECUTOR", "path of a unix socket: programs run in the container behind it"
        ),
    )
    ahead: bool = field(
        default=True,
        metadata=describe_variable(
            "BACKPROBE_AHEAD",
            "`0`: do not fork the next child while idle; this saves about 15 MiB and costs each run 20 to 40 ms",
            "unset",
        ),
    )
    warm_further: bool = field(
        default=True,
        metadata=describe_variable(
            "BACKPROBE_WARM_FURTHER",
            "`0`: do not load, while idle, what programs that train need; this saves a warm process about 100 MiB and "
            "3 s of processor time, and costs each run that makes an optimizer 3 s. An executor reads it too",
            "unset",
        ),
    )
    visible_devices: str | None = field(
        default=None,
        metadata=describe_variable(
            "CUDA_VISIBLE_DEVICES",
            "the devices that a run on the gpu queue sees; unset: all. Use one worker for each GPU",
        ),
    )
    gpu_memory_fraction: float = field(
        default=GPU_MEMORY_FRACTION,
        metadata=describe_variable(
            "BACKPROBE_GPU_MEMORY_FRACTION",
            "the share of each device's memory that a run on the gpu queue may use; the process of the next run is "
            "prepared in the rest",
        ),
    )
    parent: int | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> WorkerSettings:
        """Read the variables of the fields, and BACKPROBE_PARENT_PID, which `serve` sets.

        Raises:
            ValueError: a variable is not the number or the level that it must be.
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
