"""The supervisor that a worker's settings ask for: over a local zygote, or over an executor's.

Imports little: the zygote's torch takes the longest of a worker's start, so it is started first.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from backprobe.isolation import ISOLATION_LEVELS
from workers.sandbox.levels.capabilities import CannotConfine, Choice, choice, confinement
from workers.sandbox.levels.names import Confinement
from workers.sandbox.remote.boot import exec_keeper, exec_zygote
from workers.sandbox.remote.executor_client import connect_executor, executor_offers, executor_oom_kills
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import Asked, WorkerSettings

_log: Final = logging.getLogger(__name__)

EXECUTOR_SECONDS: Final = 60.0
"""How long a worker waits for its executor: containers start in any order."""


def supervisor_for(settings: WorkerSettings, queue: str) -> Supervisor:
    """Make a supervisor whose zygote begins to boot when the supervisor is entered.

    Raises:
        CannotConfine: the isolation that the settings ask for cannot be given here.
    """
    gpu = queue == "gpu"
    if settings.executor is not None:
        path = settings.executor
        return Supervisor(
            lambda: connect_executor(path),
            confinement=_ask_executor(path, settings.isolation),
            isolation={"executor": True},
            gpu=gpu,
            ahead=settings.ahead,
            count_oom_kills=lambda: executor_oom_kills(path),
        )
    if gpu:
        trusted = _only_trusted(settings)
        return Supervisor(
            lambda: exec_keeper(settings.visible_devices, settings.gpu_memory_fraction, confinement=trusted),
            confinement=trusted,
            isolation={"executor": False},
            gpu=True,
        )
    return _build_supervisor(choice(settings.isolation, settings.sandbox_uid, trust_code=settings.trust_code), settings)


def better_supervisor(settings: WorkerSettings, than: Supervisor) -> Supervisor | None:
    """One at a higher level than this one has, where `auto` would choose that by now; None: it would not.

    What kept a level from being given at the start may have passed: a machine under load, a package not yet installed.
    """
    if not than.missed:
        return None
    try:
        found = choice(settings.isolation, settings.sandbox_uid, trust_code=settings.trust_code)
    except CannotConfine:
        return None
    if ISOLATION_LEVELS.index(found.confinement.level) <= ISOLATION_LEVELS.index(than.confinement.level):
        than.missed = found.missed or than.missed
        return None
    return _build_supervisor(found, settings)


def _build_supervisor(found: Choice, settings: WorkerSettings) -> Supervisor:
    return Supervisor(
        lambda: exec_zygote("", found.confinement, further=settings.warm_further),
        confinement=found.confinement,
        isolation={"executor": False},
        ahead=settings.ahead,
        missed=found.missed,
    )


def _only_trusted(settings: WorkerSettings) -> Confinement:
    """Return the confinement of runs with a device: none, because its driver needs what the levels refuse.

    Their processes still never run as root.

    Raises:
        CannotConfine: the settings ask for some, do not say that code is trusted, or the uid cannot read Python.
    """
    if settings.isolation == "none" or (settings.isolation == "auto" and settings.trust_code):
        return confinement("none", settings.sandbox_uid)
    raise CannotConfine(
        f"isolation {'process' if settings.isolation == 'auto' else settings.isolation} cannot be given to runs with a"
        " GPU, whose driver needs ioctl, files of /dev and threads that the levels refuse: put an executor into"
        " its own container (`backprobe executor --queue gpu`), or set BACKPROBE_TRUST_CODE=1 where you trust it"
    )


def executor_confinement(settings: WorkerSettings, queue: str) -> Confinement:
    """How an executor confines its children: the highest level that its container can give, which is the outer wall.

    Raises:
        CannotConfine: the isolation that the settings ask for cannot be given here.
    """
    if queue == "gpu":
        return _only_trusted(replace(settings, trust_code=True))
    if settings.isolation == "gvisor":
        raise CannotConfine(
            "isolation gvisor cannot be given by an executor, whose worker could not look at the sentry: give it to the"
            " worker itself, or make runsc the runtime of the executor's container, which then adds to the level inside"
        )
    found = choice(settings.isolation, settings.sandbox_uid, trust_code=True)
    if found.missed:
        _log.warning("programs run at isolation level %s: %s", found.confinement.level, "; ".join(found.missed))
    # the worker, from another container, can give its runs no cgroup: so the filter must not rely on one
    return replace(found.confinement, cgroups=False, no_cgroups="an executor makes none")


def _ask_executor(path: str, asked: Asked) -> Confinement:
    try:
        found = executor_offers(path, EXECUTOR_SECONDS)
    except OSError as error:
        raise CannotConfine(f"the executor at {path} does not answer: {error}") from None
    if asked != "auto" and ISOLATION_LEVELS.index(found.level) < ISOLATION_LEVELS.index(asked):
        raise CannotConfine(f"isolation {asked} cannot be given: the executor at {path} gives {found.level}")
    return found
