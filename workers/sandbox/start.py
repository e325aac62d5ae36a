"""The supervisor that a worker's settings ask for: over a zygote of its own, or over an executor's.

Imports little: the zygote's torch takes the longest of a worker's start, so it is started first.
"""

from __future__ import annotations

from workers.sandbox.boot import Link, connect_executor, exec_zygote
from workers.sandbox.offer import confinement
from workers.sandbox.supervisor import Supervisor
from workers.settings import WorkerSettings


def supervisor_for(settings: WorkerSettings, queue: str) -> Supervisor:
    """A supervisor whose zygote begins to boot when it is entered.

    Raises:
        CannotConfine: the isolation that the settings ask for cannot be given here.
    """
    gpu = queue == "gpu"
    if settings.executor is not None:
        path = settings.executor
        return Supervisor(lambda: connect_executor(path), isolation={"executor": True}, gpu=gpu)
    # a GPU's driver reaches around seccomp and Landlock as they are here: not offered until it was tried on one
    asked = "none" if gpu and settings.isolation == "auto" and settings.trust_code else settings.isolation
    found = confinement(asked, settings.sandbox_uid, trust_code=settings.trust_code)

    def boot() -> Link:
        return exec_zygote(settings.visible_devices if gpu else "", found)

    return Supervisor(boot, confinement=found, isolation={"executor": False}, gpu=gpu)
