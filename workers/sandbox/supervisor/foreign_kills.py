"""Whether a run was killed by something else than itself and its own limits; its author is not to blame for that."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from store.runs.model import RunError

if TYPE_CHECKING:
    from backprobe.isolation import IsolationLevel
    from workers.sandbox.supervisor.outcome import Facts

KILLED_FROM_OUTSIDE: Final = RunError(
    whose="ours",
    code="sandbox",
    message=(
        "A process of the run was killed from outside, below the run's own limits: the machine, or the container of the"
        " worker, ran out of memory, or somebody sent SIGKILL."
    ),
)


def was_killed_from_outside(facts: Facts, level: IsolationLevel) -> bool:
    """Return whether something else than the program and its limits ended it, or one of its processes."""
    if facts.stop is not None:
        return False
    if facts.foreign_kills and (facts.signal is not None or facts.exit_code != 0):
        return True
    return level in ("process", "namespace") and facts.signal == signal.SIGKILL
