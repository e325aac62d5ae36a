"""The loss of a warm process costs no run, at whichever moment between the order and the end it comes."""

import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.addresses import own_uid
from tests.support.isolation import confined
from workers.sandbox.remote.boot import Link, exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

LONELY_UID = own_uid()
"""Of this run of the tests alone: its tasks are counted."""

WAITS = "import os, time\nprint('here', flush=True)\nwhile not os.path.exists({path!r}):\n    time.sleep(0.01)\nprint('end')"


class Flight:
    """A run in a thread of its own."""

    def __init__(self, supervisor: Supervisor, source: str) -> None:
        self.supervisor, self.ends, self.cancel = supervisor, list[Outcome](), threading.Event()
        job = Job(files={"main.py": source}, entry="main.py", limits=Limits(wall_seconds=300))
        self._thread = threading.Thread(target=lambda: self.ends.append(supervisor.run(job, cancel=self.cancel)))
        self._thread.start()

    def at_work(self) -> bool:
        flying = [one for one, _ in list(self.supervisor._watch._flying.values())]
        return any(one.locked and one.pipes["stdout"].count for one in flying)

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
    with Supervisor(exec_zygote, ahead=False) as one:
        assert one.wait_warm(120)
        yield one


def test_a_child_that_was_not_locked_in_time_by_a_warm_process_that_is_lost_is_started_again(ours, until, monkeypatch):
    stopped = warm_one(ours)
    stopped.send_signal(signal.SIGSTOP)
    until(lambda: stopped.status() == psutil.STATUS_STOPPED, "it stands still")
    monkeypatch.setattr("workers.sandbox.supervisor.attempt.LOCKDOWN_SECONDS", 0.1)
    flight = Flight(ours, "print(1)")
    flying = ours._watch._flying
    until(lambda: any(one.stop == "sandbox" for one, _ in list(flying.values())), "the child is given up")
    monkeypatch.undo()
    stopped.kill()
    outcome = flight.outcome()
    assert (outcome.status, outcome.facts.stdout, outcome.facts.tries) == ("succeeded", b"1\n", 2), outcome


def test_a_warm_process_that_cannot_fork_is_replaced_and_its_other_runs_go_on(until):
    if os.geteuid() != 0:
        pytest.skip("a uid of its own takes root")
    chosen = confined("process", LONELY_UID)
    boots = [lambda: with_two_tasks(lambda: exec_zygote("", chosen))]

    def boot() -> Link:
        return boots.pop()() if boots else exec_zygote("", chosen)

    with Supervisor(boot, confinement=chosen, ahead=False) as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        flight = Flight(supervisor, "print('here', flush=True)\nwhile True:\n    pass")
        until(flight.at_work, "the first run is at work")
        second = supervisor.run(Job(files={"main.py": "print(2)"}, entry="main.py"))
        flight.cancel.set()
        first = flight.outcome()
    assert (second.status, second.facts.stdout, second.facts.tries) == ("succeeded", b"2\n", 2), second
    assert (first.status, first.facts.stdout, first.facts.tries) == ("canceled", b"here\n", 1), first


def with_two_tasks(boot: Callable[[], Link]) -> Link:
    """What is started may be two tasks, once it is no root: itself and a child."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (2, before[1]))
    try:
        return boot()
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)


def test_a_run_outlives_a_boot_that_fails_after_its_warm_process_was_lost(until, open_folder):
    boots: list[Callable[[], Link]] = [exec_zygote, refuses, refuses, exec_zygote]
    path = open_folder / "again"
    source = WAITS.format(path=str(path))
    with Supervisor(lambda: boots.pop(0)() if boots else exec_zygote(), ahead=False) as supervisor:
        assert supervisor.wait_warm(120)
        flight = Flight(supervisor, source)
        until(flight.at_work, "the run is at work")
        warm_one(supervisor).kill()
        until(lambda: supervisor.failure is not None, "a boot has failed")
        Path(path).touch()
        outcome = flight.outcome()
    assert boots == []
    assert (outcome.status, outcome.facts.stdout, outcome.facts.tries) == ("succeeded", b"here\nend\n", 2), outcome


def refuses() -> Link:
    raise ConnectionRefusedError("nobody listens yet")
