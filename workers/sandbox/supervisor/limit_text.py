"""Which limit a run reached, and what to raise or change: one text for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from backprobe.isolation import IsolationLevel
from backprobe.record import Raised
from store.runs.limits import Limits
from store.runs.model import RunError
from workers.sandbox.levels.names import Confinement

_REACHED: Final[Mapping[str, str]] = {
    "wall_seconds": "The program ran for {value} s, its limit of time.",
    "cpu_seconds": "The program used {value} s of CPU time, its limit.",
    "memory_bytes": "The program asked for more memory than its limit of {value} bytes.",
    "threads": "The program started more threads than torch's {value} and 32 more.",
    "output_bytes": "The program wrote more than {value} bytes to stdout and stderr, its limit; the end is kept.",
    "record_bytes": "The record grew beyond {value} bytes, its limit; what came before is kept.",
    "record_rows": "The record grew beyond {value} rows, its limit; what came before is kept.",
    "disk_bytes": "The program wrote more than {value} bytes into its private folders, its limit.",
    "processes": "The program wanted more processes at one time than {value}, its limit.",
}

_CHANGE: Final[Mapping[str, str]] = {
    "memory_bytes": " Smaller batches, or the capture tier `grad`, need less.",
    "threads": " Threads that were started must end before more begin.",
    "output_bytes": " Print less often.",
    "record_bytes": " The capture tier `grad` or `state` records less; so do fewer steps.",
    "record_rows": " The capture tier `grad` or `state` records less; so do fewer steps.",
    "processes": " More than one need isolation `namespace`; DataLoader(num_workers=0) needs none.",
}
"""What helps beside a higher limit."""

_WAITED: Final = (
    " Processes that wait for each other end here too: a DistributedDataParallel model must be deleted before"
    " `destroy_process_group()`."
)
"""Else its destructor now and then waits for gloo's thread, which waits for the interpreter that the destructor holds,
to let go of a mode of capture's."""

_WEIGHT: Final = 10
_FREE: Final = 24 << 20
_LEAST_WEIGHT: Final = 7
"""Rows of honest programs, measured at every tier, take 3.6 to 9 bytes of memory for each on the wire: those of long
chains of small operations the most. A large record has room for all of these, a small one for most."""

_ALLOCATOR: Final = ("bad_alloc", "can't allocate memory", "not enough memory", "Cannot allocate memory")
_DISK: Final = re.compile(
    r"\[Errno (?:27|28|122)\]|No space left on device|inline_container\.cc.*unexpected pos|iostream error"
)
_FORKS: Final = re.compile(r"(?:^|/)(?:multiprocessing/[a-z_]+|torch/utils/data/dataloader)\.py$")
_WRITES: Final = re.compile(
    r"\[Errno (?:13|30)\]|Parent directory .* does not exist|No usable temporary directory|Read-only file system"
)


def what_to_change(limit: str, limits: Limits) -> tuple[str, str]:
    """Say which limit was reached at which value, and what to raise or change."""
    reached = _REACHED[limit].format(value=getattr(limits, limit))
    waited = _WAITED if limit == "wall_seconds" and limits.processes > 1 else ""
    return reached, f"`limits.{limit}` asks for more.{_CHANGE.get(limit, '')}{waited}"


def most_weight(limits: Limits) -> int:
    """Bytes of the worker's memory that the rows of a record may take."""
    return max(limits.record_bytes * _LEAST_WEIGHT, limits.record_bytes * _WEIGHT - _FREE)


def too_heavy(limits: Limits) -> str:
    """Say what was reached by a record whose rows take too much memory of the worker."""
    return (
        f"The rows of the record take more than {most_weight(limits)} bytes of memory, the most for one"
        f" of {limits.record_bytes} bytes; what came before is kept."
    )


def by_exception(raised: Raised, processes: int) -> str | None:
    """Return the limit that an uncaught exception results from; None if it results from none."""
    kind = raised.type.rpartition(".")[2]
    told: Mapping[str, Callable[[], bool]] = {
        "memory_bytes": lambda: kind == "MemoryError" or any(text in raised.message for text in _ALLOCATOR),
        "threads": lambda: kind == "RuntimeError" and raised.message == "can't start new thread",
        "disk_bytes": lambda: kind in ("OSError", "RuntimeError") and _DISK.search(raised.message) is not None,
        "processes": lambda: processes == 1 and _could_not_fork(kind, raised),
    }
    return next((limit for limit, holds in told.items() if holds()), None)


def isolation_hint(raised: Raised, level: IsolationLevel) -> str:
    """Say what a level does not offer, where an exception may come from that. It begins with a space, or is empty."""
    kind = raised.type.rpartition(".")[2]
    if level == "none" or kind not in ("PermissionError", "OSError", "RuntimeError", "FileNotFoundError"):
        return ""
    inner = raised.frames[-1].path if raised.frames else ""
    if _WRITES.search(raised.message) and level == "process":
        return (
            " (Isolation `process` has no folder to write to, and Python's own files are all that can be read;"
            " ask for isolation `namespace`: it has a private /tmp.)"
        )
    if _WRITES.search(raised.message):
        return (
            " (Only /tmp and /dev/shm can be written, unless `limits.disk_bytes` is 0; no file of the host is there.)"
        )
    if kind == "PermissionError" and inner.endswith("/socket.py"):
        return " (A run has no network.)"
    if kind == "PermissionError" and inner.endswith("/subprocess.py"):
        return " (No isolation but `none` lets a run start another program.)"
    return ""


def several_refused(limits: Limits, confinement: Confinement) -> RunError | None:
    """Why a run that asks for several processes cannot be started in this sandbox; None: it can, or asks for one."""
    if limits.processes == 1 or (confinement.level == "namespace" and confinement.cgroups):
        return None
    here = confinement.no_cgroups if confinement.level == "namespace" else f"this worker gives {confinement.level}"
    message = (
        f"`limits.processes` is {limits.processes}: more than one need isolation `namespace` with a cgroup for the run,"
        f" and {here}. One process needs neither: DataLoader(num_workers=0)."
    )
    return RunError(whose="limit", code="processes", message=message)


def _could_not_fork(kind: str, raised: Raised) -> bool:
    """`fork`, or the semaphore that workers share, was refused: by the filter of a run that may have one process."""
    refused = kind == "PermissionError" and "[Errno 1]" in raised.message
    inner = raised.frames[-1].path if raised.frames else ""
    return refused and _FORKS.search(inner) is not None
