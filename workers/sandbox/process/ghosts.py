"""Room for the copies of its process by which a run checks its gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from workers.sandbox.levels.names import Confinement
from workers.sandbox.supervisor.job import Job

WITH_GHOST: Final = 2
"""The program and one copy: they are made one after the other."""


def with_ghosts(job: Job, confinement: Confinement) -> Job:
    """Let a job whose gradients are checked have a copy of its process, where the sandbox can hold several.

    Elsewhere no copy can be started, and the rows of the check say so.
    """
    if not job.check or job.limits.processes > 1 or confinement.level != "namespace" or not confinement.cgroups:
        return job
    return replace(job, limits=replace(job.limits, processes=WITH_GHOST))
