"""A supervisor at level `namespace`, and the runs that tests make in it."""

from collections.abc import Callable, Iterator

import pytest

from store.limits import Limits
from tests.support.addresses import own_uid
from tests.support.isolation import confined, several_processes, warm
from workers.sandbox.job import Job
from workers.sandbox.outcome import Outcome
from workers.sandbox.supervisor import Supervisor

UID = own_uid()
"""First of those that runs of these tests become."""


@pytest.fixture(scope="session")
def apart() -> Iterator[Supervisor]:
    """At level `namespace`."""
    with warm(confined("namespace", UID), ahead=False) as one:
        yield one


@pytest.fixture(scope="session")
def grouped(apart: Supervisor) -> Supervisor:
    """At level `namespace`, with a cgroup for each run."""
    several_processes(apart.confinement)
    return apart


@pytest.fixture(scope="session")
def locked() -> Iterator[Supervisor]:
    """At level `process`."""
    with warm(confined("process", UID), ahead=False) as one:
        yield one


@pytest.fixture(scope="session")
def guest() -> Iterator[Supervisor]:
    """At level `gvisor`: booting its kernel takes 10 s and more of processor time."""
    with warm(confined("gvisor", UID)) as one:
        yield one


@pytest.fixture(scope="session")
def start() -> Callable[..., Outcome]:
    """Run a program: `start(supervisor, source, **limits)`."""

    def one(supervisor: Supervisor, source: str, **limits: int) -> Outcome:
        return supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=Limits(**limits)))

    return one
