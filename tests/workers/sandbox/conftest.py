"""A supervisor at level `namespace`, and the runs that tests make in it."""

import os
from collections.abc import Callable, Iterator

import pytest

from store.limits import Limits
from tests.support.addresses import own_uid
from workers.sandbox.boot import exec_zygote
from workers.sandbox.job import Job
from workers.sandbox.levels import Confinement
from workers.sandbox.offer import confinement, lacking
from workers.sandbox.outcome import Outcome
from workers.sandbox.supervisor import Supervisor

UID = own_uid()
"""First of those that runs of these tests become."""


def confined(level: str) -> Confinement:
    """How this machine confines a run at this level; skips where it cannot, or fails where it is required to."""
    lacks = lacking(level, UID)  # pyright: ignore[reportArgumentType]
    if lacks and ("runsc" if level == "gvisor" else "bubblewrap") in os.environ.get("BACKPROBE_REQUIRE", ""):
        pytest.fail(f"level {level} is not to be had: {lacks}")
    if lacks:
        pytest.skip(f"level {level} is not to be had: {'; '.join(lacks)}")
    return confinement(level, UID)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def apart() -> Iterator[Supervisor]:
    """At level `namespace`."""
    chosen = confined("namespace")
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen, ahead=False) as one:
        assert one.wait_warm(60), one.failure
        yield one


@pytest.fixture(scope="module")
def grouped(apart: Supervisor) -> Supervisor:
    """At level `namespace`, with a cgroup for each run."""
    if not apart.confinement.cgroups:
        pytest.skip(f"no cgroup can be made: {apart.confinement.no_cgroups}")
    return apart


@pytest.fixture(scope="module")
def locked() -> Iterator[Supervisor]:
    """At level `process`."""
    chosen = confined("process")
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen, ahead=False) as one:
        assert one.wait_warm(60), one.failure
        yield one


@pytest.fixture(scope="module")
def guest() -> Iterator[Supervisor]:
    """At level `gvisor`."""
    chosen = confined("gvisor")
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen) as one:
        assert one.wait_warm(60), one.failure
        yield one


@pytest.fixture(scope="session")
def start() -> Callable[..., Outcome]:
    """Run a program: `start(supervisor, source, **limits)`."""

    def one(supervisor: Supervisor, source: str, **limits: int) -> Outcome:
        return supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=Limits(**limits)))

    return one
