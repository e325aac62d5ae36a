"""The supervisor that a worker's settings ask for: over a zygote of its own, or over an executor's.

Imports little: the zygote's torch takes the longest of a worker's start, so it is started first.
"""

from __future__ import annotations

from typing import Final

from workers.sandbox.boot import Link, connect_executor, exec_zygote, executor_offers
from workers.sandbox.levels import LEVELS, Confinement
from workers.sandbox.offer import CannotConfine, confinement
from workers.sandbox.supervisor import Supervisor
from workers.settings import Asked, WorkerSettings

EXECUTOR_SECONDS: Final = 60.0
"""How long a worker waits for its executor: containers start in any order."""


def supervisor_for(settings: WorkerSettings, queue: str) -> Supervisor:
    """A supervisor whose zygote begins to boot when it is entered.

    Raises:
        CannotConfine: the isolation that the settings ask for cannot be given here.
    """
    gpu = queue == "gpu"
    if settings.executor is not None:
        path = settings.executor
        return Supervisor(
            lambda: connect_executor(path),
            confinement=_offered(path, settings.isolation),
            isolation={"executor": True},
            gpu=gpu,
        )
    # a GPU's driver reaches around seccomp and Landlock as they are here: not offered until it was tried on one
    asked = "none" if gpu and settings.isolation == "auto" and settings.trust_code else settings.isolation
    found = confinement(asked, settings.sandbox_uid, trust_code=settings.trust_code)

    def boot() -> Link:
        return exec_zygote(settings.visible_devices if gpu else "", found)

    return Supervisor(boot, confinement=found, isolation={"executor": False}, gpu=gpu)


def executor_confinement(settings: WorkerSettings, queue: str) -> Confinement:
    """How an executor confines its children: the highest level that its container can give, which is the outer wall.

    Raises:
        CannotConfine: the isolation that the settings ask for cannot be given here.
    """
    asked = "none" if queue == "gpu" and settings.isolation == "auto" else settings.isolation
    return confinement(asked, settings.sandbox_uid, trust_code=True)


def _offered(path: str, asked: Asked) -> Confinement:
    try:
        found = executor_offers(path, EXECUTOR_SECONDS)
    except OSError as error:
        raise CannotConfine(f"the executor at {path} does not answer: {error}") from None
    if asked != "auto" and LEVELS.index(found.level) < LEVELS.index(asked):
        raise CannotConfine(f"isolation {asked} cannot be given: the executor at {path} gives {found.level}")
    return found
