"""Runs with a device: each in a process that was ready before, one at a time; with a stand-in where none is."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from workers.sandbox.levels.capabilities import CannotConfine
from workers.sandbox.remote.boot import exec_keeper
from workers.sandbox.remote.executor_client import connect_executor
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.start import executor_confinement, supervisor_for
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

pytestmark = pytest.mark.usefixtures("sandbox")

STAND_IN = str(Path(__file__).with_name("stand_in_device.py"))


@pytest.fixture(scope="module")
def device() -> Iterator[Supervisor]:
    """Over processes whose device is a stand-in; all else of them is what a GPU worker has."""
    boot = partial(exec_keeper, "1", 0.5, (STAND_IN,))
    with Supervisor(boot, gpu=True) as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        yield supervisor


def job_of(source: str, **limits: int) -> Job:
    return Job(files={"main.py": source}, entry="main.py", limits=Limits(**limits))


class Flight:
    """A run in a new thread."""

    def __init__(self, supervisor: Supervisor, job: Job) -> None:
        self.ends, self.cancel = list[Outcome](), threading.Event()
        self._thread = threading.Thread(target=lambda: self.ends.append(supervisor.run(job, cancel=self.cancel)))
        self._thread.start()

    def outcome(self) -> Outcome:
        self._thread.join(200)
        assert self.ends, "the run has not come back"
        return self.ends[0]


def test_each_run_has_a_process_that_was_ready_before_and_is_used_once(device):
    source = "import os, torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\nprint(os.getpid(), x.grad.tolist())"
    pids = set()
    for _ in range(2):
        assert device.wait_warm(120), device.failure
        ready = {child.pid for child in psutil.Process().children(recursive=True) if STAND_IN in child.cmdline()}
        outcome = device.run(job_of(source))
        assert outcome.status == "succeeded", outcome
        pid, grad = outcome.facts.stdout.decode().split(" ", 1)
        assert int(pid) in ready
        pids.add(int(pid))
        assert grad == "[2.0, 2.0]\n"
        assert outcome.record is not None
        assert len(outcome.record.backward_calls) == 1
        assert outcome.isolation["gpu"] == {"devices": ["stand-in with 50% of its memory"], "exclusive": True}
        assert (outcome.isolation["level"], outcome.isolation["rlimits"]["memory_bytes"]) == ("none", None)
    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_what_the_device_holds_open_is_there_and_nothing_of_ours(device):
    source = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'], *sorted(map(int, os.listdir('/proc/self/fd'))))"
    outcome = device.run(job_of(source))
    # 4 and 5, where its `go` and its program came, were closed, 4 is the listing's own; 6 and 40 are the stand-in's
    assert outcome.facts.stdout == b"1 0 1 2 3 4 6 40\n"


def test_no_two_runs_have_the_device_at_one_time(device, wait_until, open_folder):
    path = open_folder / "go"
    waits = (
        f"import os, time\nprint('here', flush=True)\nwhile not os.path.exists({str(path)!r}):\n    time.sleep(0.01)"
    )
    first = Flight(device, job_of(waits, wall_seconds=300))
    flying = device._watch._flying
    wait_until(
        lambda: any(attempt.locked and attempt.pipes["stdout"].count for attempt, _ in list(flying.values())),
        "it is at work",
        120,
    )
    second = Flight(device, job_of("print('second')"))
    wait_until(lambda: device._watch.pool.current is not None, "the next process is ready", 120)
    assert len(flying) == 1
    assert not device.wait_warm(0)
    assert second.ends == []
    path.touch()
    assert first.outcome().status == "succeeded"
    assert second.outcome().facts.stdout == b"second\n"


def test_its_cpu_time_is_counted_from_its_start(device):
    honest = device.run(job_of("print(1)", cpu_seconds=1))
    assert (honest.status, honest.facts.stdout) == ("succeeded", b"1\n"), honest
    assert honest.facts.cpu_seconds < 1  # getting ready took longer than that
    busy = device.run(job_of("while True:\n    pass", cpu_seconds=1, wall_seconds=120))
    assert (busy.status, busy.reason) == ("exceeded", "cpu"), busy


def test_a_run_whose_keeper_is_lost_runs_once_more_on_the_next(device, wait_until, open_folder):
    path = open_folder / "again"
    source = (
        f"import os, time\nprint('here', flush=True)\nwhile not os.path.exists({str(path)!r}):\n    time.sleep(0.01)"
    )
    flight = Flight(device, job_of(source, wall_seconds=300))
    flying = device._watch._flying

    def keeper() -> psutil.Process | None:
        for attempt, zygote in list(flying.values()):
            if attempt.locked and attempt.pipes["stdout"].count:
                return psutil.Process(zygote.link.process.pid)
        return None

    lost = wait_until(keeper, "it is at work", 120)
    below = lost.children()
    lost.kill()
    wait_until(
        lambda: not any(process.is_running() and process.status() != "zombie" for process in below),
        "its run has ended with it",
    )
    path.touch()
    outcome = flight.outcome()
    assert (outcome.status, outcome.facts.tries) == ("succeeded", 2), outcome


def test_a_canceled_run_ends_with_all_that_it_started(device, wait_until):
    flight = Flight(
        device, job_of("import os, time\nos.fork()\nprint('here', flush=True)\ntime.sleep(3600)", wall_seconds=300)
    )
    flying = device._watch._flying
    wait_until(
        lambda: any(attempt.pipes["stdout"].count > 5 for attempt, _ in list(flying.values())), "both are at work", 120
    )
    flight.cancel.set()
    outcome = flight.outcome()
    assert (outcome.status, outcome.facts.stdout) == ("canceled", b"here\nhere\n")


def test_it_imports_from_where_its_worker_does(open_folder, monkeypatch):
    (open_folder / "beside_the_worker.py").write_text("WORD = 'found'\n")
    monkeypatch.setenv("PYTHONPATH", str(open_folder))
    with Supervisor(partial(exec_keeper, "1", 0.5, (STAND_IN,)), gpu=True) as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        outcome = supervisor.run(
            job_of("import beside_the_worker, getpass\nprint(beside_the_worker.WORD, getpass.getuser())")
        )
    assert outcome.facts.stdout == b"found nobody\n", outcome


@pytest.fixture
def deviceless() -> Iterator[Supervisor]:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    with supervisor_for(WorkerSettings(trust_code=True), "gpu") as supervisor:
        yield supervisor


def test_a_machine_without_a_device_says_so_and_runs_nothing(deviceless, caplog, capfd):
    outcome = deviceless.run(job_of("print(1)"))
    assert (outcome.status, outcome.reason) == ("lost", "sandbox")
    assert "did not start: torch finds no CUDA device here" in outcome.error.message
    assert "torch finds no CUDA device here" in "".join(
        record.getMessage() for when in ("setup", "call") for record in caplog.get_records(when)
    )
    assert capfd.readouterr().err == ""


def test_a_worker_without_its_device_beats_as_broken_and_says_it_once(deviceless, database, wait_until, caplog):
    from store.admin import workers
    from workers.node import Node

    node = Node(database, deviceless, queue="gpu", slots=1, lease_seconds=30, publish=lambda _: None)
    node.start()

    def read_broken() -> workers.WorkerNode | None:
        with database.read() as transaction:
            return next((row for row in workers.live(transaction) if row.probe["sandbox"] == "broken"), None)

    try:
        worker = wait_until(read_broken, "it beats as broken", 120)
        boots = deviceless._watch.pool
        wait_until(lambda: boots._in_vain > 2, "it has tried again", 120)
    finally:
        node.draining.set()
        node.close()
    assert (worker.levels, worker.devices) == ((), ())
    assert "torch finds no CUDA device here" in worker.probe["why"]
    said = [record.getMessage() for when in ("setup", "call") for record in caplog.get_records(when)]
    assert len(said) == 1, said


@pytest.mark.parametrize("settings", [WorkerSettings(), WorkerSettings(isolation="process", trust_code=True)])
def test_no_isolation_is_claimed_for_runs_with_a_device(settings):
    with pytest.raises(CannotConfine, match="isolation process cannot be given to runs with a GPU"):
        supervisor_for(settings, "gpu")
    assert executor_confinement(WorkerSettings(), "gpu").level == "none"  # its container is the wall
    assert connect_executor is not None


def test_a_gpu_is_ready_named_bounded_and_gives_the_gradient(require):
    require("cuda")
    settings = WorkerSettings(trust_code=True, gpu_memory_fraction=0.25)
    source = """
import torch
x = torch.arange(3.0, device="cuda", requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
held = torch.empty(int(torch.cuda.get_device_properties(0).total_memory * 0.3), dtype=torch.uint8, device="cuda")
"""
    with supervisor_for(settings, "gpu") as supervisor:
        assert supervisor.wait_warm(200), supervisor.failure
        outcome = supervisor.run(job_of(source, wall_seconds=300))
    assert outcome.facts.stdout == b"[0.0, 2.0, 4.0]\n", outcome.facts.stderr
    assert outcome.status in ("failed", "exceeded")
    assert outcome.error is not None
    assert outcome.record is not None
    assert "memory" in outcome.error.message.lower()
    assert outcome.isolation["gpu"]["devices"]
    assert {tensor.device for tensor in outcome.record.tensors} >= {"cuda:0"}
