"""The supervisor that a worker's settings ask for: over a zygote of its own, or over an executor's.

Imports little: the zygote's torch takes the longest of a worker's start, so it is started first.
"""

from __future__ import annotations

from workers.sandbox.boot import Link, connect_executor, exec_zygote
from workers.sandbox.supervisor import Supervisor
from workers.settings import WorkerSettings


def supervisor_for(settings: WorkerSettings, queue: str) -> Supervisor:
    """A supervisor whose zygote begins to boot when it is entered."""
    gpu = queue == "gpu"
    if settings.executor is not None:
        path = settings.executor
        return Supervisor(lambda: connect_executor(path), isolation={"executor": True}, gpu=gpu)

    def boot() -> Link:
        return exec_zygote(settings.visible_devices if gpu else "")

    return Supervisor(boot, isolation={"executor": False}, gpu=gpu)
