"""The loss of a warm process costs no run, at whichever moment between the order and the end it comes."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.resources import ROOT
from workers.sandbox.levels.names import as_arguments
from workers.sandbox.remote.boot import TRUSTED, Link, exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("sandbox")

WAITS = "import os, time\nprint('here', flush=True)\nwhile not os.path.exists({path!r}):\n    time.sleep(0.01)\nprint('end')"


class Flight:
    """A run in a new thread."""

    def __init__(self, supervisor: Supervisor, source: str) -> None:
        self.supervisor, self.ends, self.cancel = supervisor, list[Outcome](), threading.Event()
        job = Job(files={"main.py": source}, entry="main.py", limits=Limits(wall_seconds=300))
        self._thread = threading.Thread(target=lambda: self.ends.append(supervisor.run(job, cancel=self.cancel)))
        self._thread.start()

    def at_work(self) -> bool:
        flying = [attempt for attempt, _ in list(self.supervisor._watch._flying.values())]
        return any(attempt.locked and attempt.pipes["stdout"].count for attempt in flying)

    def outcome(self) -> Outcome:
        self._thread.join(120)
        assert self.ends, "the run has not come back"
        return self.ends[0]


def warm_one(supervisor: Supervisor) -> psutil.Process:
    """The zygote that a run would be forked from."""
    current = supervisor._watch.pool.current
    assert current is not None
    assert current.link.process is not None
    return psutil.Process(current.link.process.pid)


@pytest.fixture
def ours() -> Iterator[Supervisor]:
    """One that a test may break, at level `none`."""
    with Supervisor(lambda: exec_zygote(further=False), ahead=False) as supervisor:
        assert supervisor.wait_warm(120)
        yield supervisor


def test_a_child_that_was_not_locked_in_time_by_a_warm_process_that_is_lost_is_started_again(
    ours, wait_until, monkeypatch
):
    stopped = warm_one(ours)
    stopped.send_signal(signal.SIGSTOP)
    wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, "it stands still")
    monkeypatch.setattr("workers.sandbox.supervisor.attempt.LOCKDOWN_SECONDS", 0.1)
    flight = Flight(ours, "print(1)")
    flying = ours._watch._flying
    wait_until(lambda: any(attempt.stop == "sandbox" for attempt, _ in list(flying.values())), "the child is given up")
    monkeypatch.undo()
    stopped.kill()
    outcome = flight.outcome()
    assert (outcome.status, outcome.facts.stdout, outcome.facts.tries) == ("succeeded", b"1\n", 2), outcome


FORKS_ONCE = """
import errno, os
from workers.sandbox.process import zygote

fork, pids = os.fork, []

def once():
    if pids:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    pids.append(0)
    return fork()

os.fork = once
zygote.main()
"""
"""A zygote whose second fork fails, as the kernel makes it fail where no task may be added."""


def test_a_warm_process_that_cannot_fork_is_replaced_and_its_other_runs_go_on(wait_until):
    started: list[Link] = []

    def boot() -> Link:
        started.append(exec_zygote(further=False) if started else zygote_that_forks_once())
        return started[-1]

    with Supervisor(boot, ahead=False) as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        assert len(started) == 1, "the one that forks once did not become warm"
        flight = Flight(supervisor, "print('here', flush=True)\nwhile True:\n    pass")
        wait_until(flight.at_work, "the first run is at work")
        second = supervisor.run(Job(files={"main.py": "print(2)"}, entry="main.py"))
        flight.cancel.set()
        first = flight.outcome()
    assert (second.status, second.facts.stdout, second.facts.tries) == ("succeeded", b"2\n", 2), second
    assert (first.status, first.facts.stdout, first.facts.tries) == ("canceled", b"here\n", 1), first


def zygote_that_forks_once() -> Link:
    """As `exec_zygote` starts one, with a fault planted in its `os.fork`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-c", FORKS_ONCE, str(theirs.fileno()), *as_arguments(TRUSTED, None)],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    return Link(control=ours, process=process)


def test_a_run_outlives_a_boot_that_fails_after_its_warm_process_was_lost(wait_until, open_folder):
    boots: list[Callable[[], Link]] = [exec_zygote, refuses, refuses, exec_zygote]
    path = open_folder / "again"
    source = WAITS.format(path=str(path))
    with Supervisor(lambda: boots.pop(0)() if boots else exec_zygote(further=False), ahead=False) as supervisor:
        assert supervisor.wait_warm(120)
        flight = Flight(supervisor, source)
        wait_until(flight.at_work, "the run is at work")
        warm_one(supervisor).kill()
        wait_until(lambda: supervisor.failure is not None, "a boot has failed")
        Path(path).touch()
        outcome = flight.outcome()
    assert boots == []
    assert (outcome.status, outcome.facts.stdout, outcome.facts.tries) == ("succeeded", b"here\nend\n", 2), outcome


def refuses() -> Link:
    raise ConnectionRefusedError("nobody listens yet")
