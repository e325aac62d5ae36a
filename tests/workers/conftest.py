"""A supervisor with a warm process, shared by the tests of the sandbox; and whole stacks: database, broker, processes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.stack import STACKS, Stack, stack_in
from tests.support.waiting import wait_until
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

GOOD = """\
import torch
torch.manual_seed(0)
x = torch.randn(8, 4, requires_grad=True)
w = torch.randn(4, 3, requires_grad=True)
torch.tanh(x @ w).sum().backward()
print(float(w.grad.norm()))
"""
"""A program whose output is the same number, whatever ran before it."""

Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def supervisor(sandbox: None) -> Iterator[Supervisor]:
    # Tests count what is left, so no child may be made ahead for the next run.
    with Supervisor(exec_zygote, ahead=False) as warm_supervisor:
        assert warm_supervisor.wait_warm(60)
        yield warm_supervisor


@pytest.fixture(scope="session")
def run(supervisor: Supervisor) -> Run:
    """Run a program: `run(source, arguments=(), stdin=None, **limits)`."""

    def run_program(
        source: str, *, arguments: tuple[str, ...] = (), stdin: bytes | None = None, **limits: int
    ) -> Outcome:
        job = Job(files={"main.py": source}, entry="main.py", arguments=arguments, stdin=stdin, limits=Limits(**limits))
        return supervisor.run(job)

    return run_program


@pytest.fixture(scope="session")
def answer(run: Run) -> bytes:
    """What the good program prints."""
    outcome = run(GOOD)
    assert outcome.status == "succeeded", outcome.facts.stderr
    return outcome.facts.stdout


@pytest.fixture(scope="session")
def good(run: Run, answer: bytes) -> Callable[[], None]:
    """Asserts that the good program runs as ever."""

    def check() -> None:
        outcome = run(GOOD)
        assert (outcome.status, outcome.facts.stdout) == ("succeeded", answer), outcome.facts.stderr

    return check


@pytest.fixture(scope="session")
def zygotes() -> Callable[..., list[psutil.Process]]:
    """The warm processes among the children of a process, of this one by default."""
    return zygotes_of


def zygotes_of(parent: int | None = None, level: str | None = None) -> list[psutil.Process]:
    """Those of one isolation level, or of all: tests of other files may keep one at each level."""
    with_zombies = psutil.Process(parent).children()
    return [with_zomby for with_zomby in with_zombies if is_zygote(with_zomby, level)]


def is_zygote(process: psutil.Process, level: str | None = None) -> bool:
    try:
        words = process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
    return "workers.sandbox.process.zygote" in words and (level is None or level in words)


@pytest.fixture(scope="session", name="wait_until")
def wait_until_fixture() -> Callable[..., Any]:
    """The function `wait_until`, for tests that ask for it as a fixture."""
    return wait_until


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest, tmp_path: Path, sandbox: None) -> Iterator[Stack]:
    """SQLite with the embedded broker, and PostgreSQL with Redis."""
    yield from stack_in(tmp_path, request, "postgres_url", "redis_url")


@pytest.fixture(params=STACKS, scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sandbox: None) -> Iterator[Stack]:
    """The same, with a worker and a reaper at work for all tests of a module that leave them alive."""
    for served_stack in stack_in(tmp_path_factory.mktemp("served"), request, "module_postgres_url", "module_redis_url"):
        served_stack.start("worker", "--concurrency", "2")
        served_stack.start("reaper")
        yield served_stack


@pytest.fixture
def embedded(tmp_path: Path, sandbox: None) -> Iterator[Stack]:
    """SQLite with the embedded broker."""
    embedded = Stack(environment={"BACKPROBE_HOME": str(tmp_path / "home")}, folder=tmp_path)
    yield embedded
    embedded.close()
