"""The isolation level of this machine, as `backprobe doctor` reports it: what a worker of the tests gives to each run."""

from backprobe.isolation import IsolationLevel
from workers.sandbox.levels.capabilities import confinement


def machine_level() -> IsolationLevel:
    """Return the level that a worker with BACKPROBE_ISOLATION=auto and BACKPROBE_TRUST_CODE=1 gives to every run."""
    return confinement("auto", trust_code=True).level
