"""The sandbox in a separate process, as in the container without a network: the same runs, over a unix socket."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.isolation import confined
from workers.sandbox.levels.capabilities import CannotConfine
from workers.sandbox.levels.names import Confinement
from workers.sandbox.levels.usable_cpus import usable_cpus
from workers.sandbox.remote.executor_client import connect_executor, executor_answers, executor_cpus
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.start import supervisor_for
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

pytestmark = pytest.mark.usefixtures("sandbox")

GOOD = Job(
    files={"main.py": "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\nprint(x.grad)"},
    entry="main.py",
)
PRINTED = b"tensor([2., 2., 2.])\n"


def start(path: Path, **environment: str) -> subprocess.Popen[bytes]:
    # in an empty environment, as its container has one; most tests here are of the socket, not of the level
    command = [sys.executable, "-m", "backprobe", "executor", "--socket", str(path)]
    return subprocess.Popen(command, env={"BACKPROBE_ISOLATION": "none", "BACKPROBE_WARM_FURTHER": "0", **environment})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "executor.sock"


@pytest.fixture
def executor(path: Path, wait_until) -> Iterator[subprocess.Popen[bytes]]:
    started = start(path)
    wait_until(lambda: executor_answers(str(path)), "the executor listens")
    yield started
    started.terminate()
    assert started.wait(20) == 0


@pytest.mark.usefixtures("executor")
def test_a_run_goes_through_the_socket(path):
    with Supervisor(lambda: connect_executor(str(path)), isolation={"executor": True}) as supervisor:
        outcome = supervisor.run(GOOD)
        assert (outcome.status, outcome.facts.stdout) == ("succeeded", PRINTED)
        assert outcome.isolation["executor"] is True


@pytest.mark.usefixtures("executor")
def test_a_worker_counts_the_processors_of_its_executor(path, tmp_path):
    assert executor_cpus(str(path)) == usable_cpus()
    assert executor_cpus(str(tmp_path / "nobody")) is None


def test_every_supervisor_has_a_zygote_of_its_own_and_it_goes_with_it(executor, path, wait_until):
    process = psutil.Process(executor.pid)
    with (
        Supervisor(lambda: connect_executor(str(path))) as supervisor,
        Supervisor(lambda: connect_executor(str(path))) as other,
    ):
        assert supervisor.wait_warm(60)
        assert other.wait_warm(60)
        assert len(process.children()) == 2
    wait_until(lambda: process.children() == [], "both zygotes are gone")


def test_an_executor_that_restarts_is_found_again(path, wait_until):
    first = start(path)
    with Supervisor(lambda: connect_executor(str(path))) as supervisor:
        assert supervisor.run(GOOD).status in ("succeeded", "lost")  # lost if it was not up yet
        assert supervisor.wait_warm(60)
        first.terminate()
        assert first.wait(20) == 0
        wait_until(lambda: supervisor.failure, "the supervisor notices")
        assert supervisor.run(GOOD).status == "lost"
        second = start(path)
        assert supervisor.wait_warm(60)
        assert supervisor.run(GOOD).facts.stdout == PRINTED
    second.terminate()
    assert second.wait(20) == 0


def test_a_killed_executor_takes_its_children_along(path, wait_until):
    process = start(path)
    wait_until(lambda: executor_answers(str(path)), "the executor listens")
    with Supervisor(lambda: connect_executor(str(path))) as supervisor:
        assert supervisor.wait_warm(60)
        below = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_until(lambda: not any(process.is_running() for process in below), "nothing of it is left")


def test_the_check_answers_without_starting_a_zygote(executor, path):
    check = [sys.executable, "-m", "backprobe", "executor", "--check", "--socket", str(path)]
    assert subprocess.run(check, env={}, check=False).returncode == 0
    assert psutil.Process(executor.pid).children() == []
    missing = subprocess.run([*check[:-1], str(path) + ".none"], env={}, check=False, stderr=subprocess.PIPE, text=True)
    assert missing.returncode == 3
    assert len(missing.stderr.splitlines()) == 1


@pytest.mark.parametrize("level", ["process", "namespace"])
def test_its_children_are_confined_as_it_offers_and_attested_from_here(level, path, wait_until):
    confined(level)
    process = start(path, BACKPROBE_ISOLATION=level, PATH=os.environ["PATH"])
    try:
        with supervisor_for(WorkerSettings(executor=str(path)), "cpu") as supervisor:
            assert supervisor.confinement.level == level
            outcome = supervisor.run(GOOD)
            assert (outcome.status, outcome.facts.stdout) == ("succeeded", PRINTED), outcome.facts
            assert (outcome.isolation["level"], outcome.isolation["attested"]) == (level, True)
            assert outcome.isolation["seccomp"] == 2
            assert outcome.isolation["no_cgroup"] == "the executor is in another container"
            bad = supervisor.run(Job(files={"main.py": "import socket\nsocket.socket()"}, entry="main.py"))
            assert (bad.status, bad.error.type) == ("failed", "PermissionError")
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.usefixtures("executor")
def test_a_worker_that_must_give_more_than_its_executor_does_not_start(path):
    with pytest.raises(CannotConfine, match="gives none"):
        supervisor_for(WorkerSettings(executor=str(path), isolation="process"), "cpu")


@pytest.mark.usefixtures("executor")
def test_an_executor_that_gives_less_than_it_said_runs_nothing(path):
    said = Confinement(level="process")
    with Supervisor(lambda: connect_executor(str(path)), confinement=said) as supervisor:
        outcome = supervisor.run(GOOD)
        assert (outcome.status, outcome.reason) == ("lost", "sandbox")
        assert outcome.facts.stdout == b""
