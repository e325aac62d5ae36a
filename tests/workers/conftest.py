"""A supervisor with a warm process, shared by the tests of the sandbox; and whole stacks: database, broker, processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from store import migrate, runs
from store.limits import Limits
from store.session import Database
from store.settings import StoreSettings
from tests.store.databases import database, database_url, postgres_database, sqlite_template
from workers.app import make_app, publisher
from workers.sandbox.boot import exec_zygote
from workers.sandbox.job import Job
from workers.sandbox.outcome import Outcome
from workers.sandbox.supervisor import Supervisor

__all__ = ["database", "database_url", "postgres_database", "sqlite_template"]

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
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(exec_zygote, ahead=False) as one:  # what is left is counted: nothing may wait for the next run
        assert one.wait_warm(60)
        yield one


@pytest.fixture(scope="session")
def run(supervisor: Supervisor) -> Run:
    """Run a program: `run(source, arguments=(), stdin=None, **limits)`."""

    def one(source: str, *, arguments: tuple[str, ...] = (), stdin: bytes | None = None, **limits: int) -> Outcome:
        job = Job(files={"main.py": source}, entry="main.py", arguments=arguments, stdin=stdin, limits=Limits(**limits))
        return supervisor.run(job)

    return one


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


def zygotes_of(parent: int | None = None) -> list[psutil.Process]:
    with_zombies = psutil.Process(parent).children()
    return [one for one in with_zombies if is_zygote(one)]


def is_zygote(one: psutil.Process) -> bool:
    try:
        return "workers.sandbox.zygote" in one.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    """Wait for a condition; its value comes back. Fails, naming what was waited for, when time is over."""

    def wait(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.01)  # between two looks; the deadline decides
        return pytest.fail(f"not within {seconds} s: {what}")

    return wait


@dataclass(kw_only=True)
class Stack:
    """A migrated database and a broker, and our processes on them; all are ended with the test.

    Attributes:
        environment: What names them to a process.
    """

    environment: dict[str, str]
    folder: Path
    settings: StoreSettings = field(init=False)
    database: Database = field(init=False)
    publish: Callable[[str], None] = field(init=False)
    processes: list[psutil.Popen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = StoreSettings.from_environment(self.environment)
        self.settings.make_home()
        migrate.upgrade(self.settings.database_url)
        self.database = Database(self.settings.database_url)
        self.publish = publisher(make_app(self.settings))

    def start(self, *arguments: str, **environment: str) -> psutil.Popen:
        """Start `backprobe ARGUMENTS`; its output goes to a file in `folder`."""
        log = self.folder / f"{len(self.processes)}-{arguments[0]}.log"
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        with log.open("wb") as output:
            command = [sys.executable, "-m", "backprobe", *arguments]
            everything = inherited | self.environment | environment
            process = psutil.Popen(command, env=everything, stdout=output, stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process

    def log(self) -> str:
        """What all processes have written."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def submit(self, source: str, *, wake: bool = True, **asked: Any) -> str:
        """Queue a run; its public id comes back."""
        with self.database.begin() as transaction:
            row = runs.submit(transaction, runs.Submission(files={"main.py": source}, entry="main.py", **asked))
        if wake:
            self.publish(row.queue)
        return row.id

    def run(self, public_id: str) -> runs.RunRow:
        """A run as it is now."""
        with self.database.read() as transaction:
            row = runs.get(transaction, public_id)
        assert row is not None
        return row

    def ended(self, public_id: str, seconds: float = 60.0) -> runs.RunRow:
        """A run, once it has ended."""
        return self.wait(lambda: (row := self.run(public_id)).ended and row, f"the end of {public_id}", seconds)

    def running(self, public_id: str) -> runs.RunRow:
        """A run, once a worker has it."""
        return self.wait(lambda: (row := self.run(public_id)).status == "running" and row, f"{public_id} runs")

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        """Wait for a condition; on failure show what the processes wrote."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.02)  # between two looks; the deadline decides
        return pytest.fail(f"not within {seconds} s: {what}\n{self.log()}")

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.database.close()


STACKS = ("embedded", "postgres and redis")


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    """SQLite with the embedded broker, and PostgreSQL with Redis."""
    yield from stack_in(tmp_path, request, "postgres_url", "redis_url")


@pytest.fixture(params=STACKS, scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The same, with a worker and a reaper at work for all tests of a module that leave them alive."""
    for one in stack_in(tmp_path_factory.mktemp("served"), request, "module_postgres_url", "module_redis_url"):
        one.start("worker", "--concurrency", "2")
        one.start("reaper")
        yield one


def stack_in(folder: Path, request: pytest.FixtureRequest, *urls: str) -> Iterator[Stack]:
    environment = {"BACKPROBE_HOME": str(folder / "home")}
    if request.param != "embedded":
        names = ("BACKPROBE_DATABASE_URL", "BACKPROBE_BROKER_URL")
        environment |= {name: request.getfixturevalue(url) for name, url in zip(names, urls, strict=True)}
    one = Stack(environment=environment, folder=folder)
    yield one
    one.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Stack]:
    """SQLite with the embedded broker."""
    one = Stack(environment={"BACKPROBE_HOME": str(tmp_path / "home")}, folder=tmp_path)
    yield one
    one.close()
