"""A run comes back at its limits, whatever holds its pipes, and whatever became of the thread that watches it."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from workers.sandbox.remote.boot import Link, exec_zygote
from workers.sandbox.remote.executor_client import connect_executor
from workers.sandbox.supervisor.attempt import UNDECODED_BYTES, Attempt
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

SLEEPS = "import torch, time\nx = torch.ones(2)\nprint('here', flush=True)\ntime.sleep(3600)"
TRAINS = """
import torch, time
w = torch.ones(2, requires_grad=True)
print('here', flush=True)
for _ in range(100):
    (w * w).sum().backward()
    time.sleep(0.02)
"""
RELAYED = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                os.write(1, b'.')
                time.sleep(0.01)
        os._exit(0)
time.sleep(3600)
"""


class Flight:
    """A run in a new thread."""

    def __init__(self, supervisor: Supervisor, source: str, **limits: int) -> None:
        self.supervisor, self.ends = supervisor, list[Outcome]()
        job = Job(files={"main.py": source}, entry="main.py", limits=Limits(**limits))
        self._thread = threading.Thread(target=lambda: self.ends.append(supervisor.run(job)))
        self._thread.start()

    def attempt(self) -> Attempt | None:
        """The run in flight, once it is at work and all of its record that came was decoded."""
        flying = [attempt for attempt, _ in list(self.supervisor._watch._flying.values())]
        ready = [
            attempt for attempt in flying if attempt.locked and attempt.pipes["stdout"].count and attempt.record_taken
        ]
        return ready[0] if ready and ready[0].undecoded_bytes == 0 else None

    def outcome(self) -> Outcome:
        self._thread.join(60)
        assert self.ends, "the run has not come back"
        return self.ends[0]


@pytest.fixture
def ours() -> Iterator[Supervisor]:
    """One that a test may break."""
    with Supervisor(lambda: exec_zygote(further=False), ahead=False) as supervisor:
        assert supervisor.wait_warm(60)
        yield supervisor


def in_thread(supervisor: Supervisor, what: Callable[[], None]) -> None:
    """Have the selector thread do something."""
    supervisor._watch._notes.leave(what)


def test_descendants_that_write_on_do_not_hold_a_run_past_its_clock(run, good):
    outcome = run(RELAYED, wall_seconds=1)
    assert (outcome.status, outcome.reason) == ("exceeded", "wall")
    good()


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("drips", [False, True])
def test_a_pipe_that_is_held_open_by_nobody_of_ours_does_not_hold_a_run(supervisor, wait_until, drips, monkeypatch):
    monkeypatch.setattr("workers.sandbox.supervisor.selector.DRIP_SECONDS", 1.0)
    flight = Flight(supervisor, SLEEPS, wall_seconds=2)
    attempt = wait_until(flight.attempt, "the run is at work")
    [line] = [
        line for line in Path(f"/proc/self/fdinfo/{attempt.pidfd}").read_text().splitlines() if line.startswith("Pid:")
    ]
    held = [os.open(f"/proc/{int(line.split()[1])}/fd/{number}", os.O_WRONLY) for number in (1, 3)]
    over = threading.Event()

    def drip() -> None:
        with contextlib.suppress(BrokenPipeError):  # the run was given up, and nobody reads any more
            while not over.wait(0.01):
                os.write(held[0], b".")

    dripping = threading.Thread(target=drip)
    if drips:
        dripping.start()
    try:
        outcome = flight.outcome()
    finally:
        over.set()
        if drips:
            dripping.join()
        for descriptor in held:
            os.close(descriptor)
    assert (outcome.status, outcome.reason) == ("exceeded", "wall")


@pytest.mark.usefixtures("sandbox")
def test_a_record_that_nobody_reads_on_for_is_read_on(supervisor, wait_until):
    flight = Flight(supervisor, SLEEPS, wall_seconds=2)
    attempt = wait_until(flight.attempt, "the run is at work")

    def pause() -> None:  # as if the last piece had been decoded between the count and this
        attempt.pipes["record"].paused = True
        supervisor._watch._selector.unregister(attempt.pipes["record"].descriptor)

    in_thread(supervisor, pause)
    outcome = flight.outcome()
    assert (outcome.status, outcome.reason) == ("exceeded", "wall")
    assert outcome.record is not None


@pytest.mark.usefixtures("sandbox")
def test_a_record_that_comes_faster_than_it_is_decoded_waits_in_the_pipe(supervisor, wait_until):
    flight = Flight(supervisor, TRAINS)
    attempt = wait_until(flight.attempt, "the run is at work")
    record = attempt.pipes["record"]

    def late(more: int) -> None:  # as if so much had come since
        attempt.record_sent += more

    in_thread(supervisor, lambda: late(UNDECODED_BYTES + 1))
    wait_until(lambda: record.paused or not record.open, "the next piece")
    assert record.paused
    in_thread(supervisor, lambda: late(-UNDECODED_BYTES - 1))
    outcome = flight.outcome()
    assert outcome.status == "succeeded"
    assert outcome.record is not None


@pytest.mark.usefixtures("sandbox")
def test_a_run_whose_watcher_hangs_is_ended_without_it(ours, wait_until, monkeypatch):
    flight = Flight(ours, SLEEPS, wall_seconds=3600)
    attempt = wait_until(flight.attempt, "the run is at work")
    monkeypatch.setattr("workers.sandbox.supervisor.selector.STALL_SECONDS", 0.5)
    freed = threading.Event()
    in_thread(ours, lambda: freed.wait(60) and None)
    outcome = flight.outcome()
    monkeypatch.undo()
    assert (outcome.status, outcome.error.whose) == ("lost", "ours")
    assert "has been at one thing" in outcome.error.message
    freed.set()
    wait_until(lambda: attempt.ended is not None, "its child has ended")
    assert ours.run(Job(files={"main.py": "print(1)"}, entry="main.py")).facts.stdout == b"1\n"


@pytest.mark.usefixtures("sandbox")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_run_whose_watcher_dies_is_lost_and_nothing_of_it_lives(ours, wait_until):
    flight = Flight(ours, SLEEPS, wall_seconds=3600)
    attempt = wait_until(flight.attempt, "the run is at work")
    below = psutil.Process().children(recursive=True)
    warm = [process for process in below if process.pid == ours._watch.pool.current.link.process.pid]

    def die() -> None:
        ours._watch._selector.unregister(attempt.pipes["stdout"].descriptor)  # so its end fails too
        raise MemoryError

    in_thread(ours, die)
    assert flight.outcome().status == "lost"
    assert ours.run(Job(files={"main.py": ""}, entry="main.py")).status == "lost"
    wait_until(
        lambda: not any(process.is_running() and process.status() != "zombie" for process in warm),
        "its warm process has ended",
    )


def test_a_run_that_nobody_waits_for_any_more_is_ended(supervisor, wait_until):
    source = "import torch\nwhile True:\n    x = torch.ones(2)"

    def refuse(*_: object) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=Limits(wall_seconds=3600)), refuse)
    wait_until(lambda: not supervisor._watch._flying, "nothing is in flight")


@pytest.mark.usefixtures("sandbox")
def test_a_run_that_waits_for_a_warm_process_is_canceled_at_once():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    canceled = threading.Event()
    canceled.set()
    with theirs, Supervisor(lambda: Link(control=ours)) as supervisor:  # it boots for ever
        ours.setblocking(False)
        outcome = supervisor.run(Job(files={"main.py": ""}, entry="main.py"), None, canceled)
    assert outcome.status == "canceled"


def test_an_executor_that_takes_no_connection_does_not_hold_its_worker(tmp_path, monkeypatch):
    monkeypatch.setattr("workers.sandbox.remote.executor_client.ANSWER_SECONDS", 0.2)
    path = str(tmp_path / "sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as first:
            first.connect(path)  # its queue is full
            with pytest.raises(OSError, match=r"unavailable|timed out"):
                connect_executor(path)
