"""Why a step cannot be run again in a fork, where it cannot."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

import torch

_QUIET_THREADS: Final = frozenset({"TMonitor"})
"""Classes of threads that only wait: tqdm's."""

_HARMLESS: Final = ("__KMP_REGISTERED_LIB", "/dev/shm/sem.")  # noqa: S108 - of OpenMP, and locks that no child holds


def why_not_checked(optimizers: list[Any]) -> str | None:
    """Why the step that begins is not checked; None: it can be."""
    if not sys.platform.startswith("linux"):
        return "the check needs Linux"
    others = [one for one in threading.enumerate() if one is not threading.current_thread()]
    if any(type(one).__name__ not in _QUIET_THREADS for one in others):
        return "other threads of the program run: a copy of it would not have them"
    if multiprocessing.active_children():
        return "child processes of the program run: a copy of it would speak to them as well"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "the process is one of a group: a copy of it cannot take part in what they exchange"
    if signal.getsignal(signal.SIGCHLD) not in (signal.SIG_DFL, None):
        return "the program handles SIGCHLD: it would notice the copies"
    if any(
        tensor.device.type != "cpu"
        for optimizer in optimizers
        for group in optimizer.param_groups
        for tensor in group["params"]
    ):
        return "parameters are on a device: a process that uses one cannot be copied"
    return "memory is shared with other processes" if _shares() else None


def _shares() -> bool:
    """Writable memory of this process is another one's too."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return True
    shared = (line for line in lines if line[line.find(" ") + 1 :].startswith(("rw-s", "rwxs")))
    return any("/" in line and not any(name in line for name in _HARMLESS) for line in shared)
