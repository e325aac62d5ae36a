"""Levels of isolation as tests ask for them: how this machine confines a run, or a skip that says what is lacking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backprobe.isolation import IsolationLevel
from tests.support.addresses import own_uid
from tests.support.resources import lack
from workers.sandbox.levels.capabilities import confinement, lacking
from workers.sandbox.levels.names import Confinement
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.supervisor import Supervisor

WARM_SECONDS = 180


def confined(level: IsolationLevel, uid: int | None = None) -> Confinement:
    """How this machine confines a run at this level; the test is skipped where it cannot, or fails where it must.

    Args:
        uid: The first of those that runs have; None: one that no other supervisor of the tests has.
    """
    uid = own_uid() if uid is None else uid
    if level != "none" and (lacks := lacking(level, uid)):
        lack("runsc" if level == "gvisor" else "bubblewrap", f"level {level} is not to be had: {'; '.join(lacks)}")
    return confinement(level, uid)


def several_processes(chosen: Confinement) -> None:
    """Skip where a run cannot have several processes."""
    if not chosen.cgroups:
        pytest.skip(f"no cgroup can be made: {chosen.no_cgroups}")


@contextmanager
def warm(chosen: Confinement, *, ahead: bool = True, further: bool = False) -> Iterator[Supervisor]:
    """A supervisor whose warm process is ready; `further`: for programs that train, it loads what these need."""
    with Supervisor(lambda: exec_zygote("", chosen, further=further), confinement=chosen, ahead=ahead) as supervisor:
        assert supervisor.wait_warm(WARM_SECONDS), supervisor.failure
        yield supervisor
