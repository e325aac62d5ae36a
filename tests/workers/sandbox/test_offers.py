"""What a worker offers follows what its machine gives: a failure at the start, or later, lasts as long as its cause."""

import threading
from contextlib import closing

import pytest

from store.admin import workers
from store.runs.limits import Limits
from tests.support.addresses import own_uid
from tests.support.isolation import confined
from tests.support.machine_level import machine_level
from workers import node as nodes
from workers.node import Node
from workers.sandbox.levels import canary
from workers.sandbox.levels.probe import Proof
from workers.sandbox.process import landlock
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.start import better_supervisor, supervisor_for
from workers.settings import WorkerSettings

ATTEMPT = Job(files={"main.py": "print(1)"}, entry="main.py", limits=Limits(wall_seconds=300))


@pytest.fixture
def standing(database):
    def now() -> workers.Standing:
        with database.read() as transaction:
            return workers.standing(transaction, "cpu")

    return now


def worker(database, supervisor, **more) -> Node:
    return Node(database, supervisor, queue="cpu", slots=1, lease_seconds=30, publish=lambda _: None, **more)


def messages_with(caplog, text):
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


@pytest.mark.usefixtures("sandbox")
def test_a_worker_that_began_with_no_isolation_gives_it_once_the_machine_does(
    database, standing, wait_until, monkeypatch, caplog
):
    confined("process")
    monkeypatch.setattr(nodes, "SOON_SECONDS", 0.1)
    settings = WorkerSettings(trust_code=True, sandbox_uid=own_uid(), ahead=False)
    choosing = threading.Lock()

    def better(than):
        with choosing:  # the machine must not change between its answers for two levels
            return better_supervisor(settings, than)

    with monkeypatch.context() as lacking:
        lacking.setattr(landlock, "landlock_abi", lambda: 0)
        first = supervisor_for(settings, "cpu")
        node = worker(database, first, better=better)
        with first, closing(node):
            node.start()
            wait_until(lambda: standing().state == "ready", "it offers what it can", 180)
            assert standing().levels == ("none",)
            assert "Landlock is version 0 here" in standing().why[-1]
            lent = node.sandbox()
            held = lent.__enter__()
            with choosing:
                lacking.undo()
            try:
                wait_until(lambda: node.supervisor is not first, "it has gone over", 180)
                assert held.run(ATTEMPT).status == "succeeded"  # a run in hand goes on where it began
            finally:
                lent.__exit__(None, None, None)
            wait_until(lambda: standing().levels not in ((), ("none",)), "it says so", 180)
            assert standing().levels == (machine_level(),)
            wait_until(lambda: not first._thread.is_alive(), "the first has ended", 180)
            with node.sandbox() as now:
                outcome = now.run(ATTEMPT)
            assert (outcome.status, outcome.isolation["level"]) == ("succeeded", standing().levels[0])
    assert not node.supervisor._thread.is_alive()
    assert len(messages_with(caplog, "runs execute at isolation level none: ")) == 1
    assert len(messages_with(caplog, "is available now: every run gets it")) == 1


@pytest.mark.usefixtures("sandbox")
def test_a_better_level_that_does_not_hold_takes_nothing_from_what_runs_get(
    database, standing, locked, wait_until, monkeypatch, caplog
):
    """It was told as a sandbox that is broken, and the worker offered nothing, while it executed runs."""
    confined("namespace")
    settings = WorkerSettings(isolation="namespace", sandbox_uid=own_uid(), ahead=False)
    candidates = [supervisor_for(settings, "cpu") for _ in range(2)]
    tried = []

    def better(_):
        if not candidates:
            return None
        tried.append(candidates.pop())
        return tried[-1].__enter__()

    def prove(supervisor):
        breaches = () if supervisor is locked else ("files: it printed 'CANARY'",)
        return Proof(probe_id="probe_1", breaches=breaches, seconds=0.1)

    monkeypatch.setattr(canary, "prove", prove)
    monkeypatch.setattr(nodes, "SOON_SECONDS", 0.1)
    monkeypatch.setattr(nodes, "PROBE_SECONDS", 0.1)
    node = worker(database, locked, better=better)
    node.start()
    try:
        wait_until(lambda: len(tried) == 2 and not tried[1]._thread.is_alive(), "both were tried and closed", 180)
        wait_until(lambda: standing().state == "ready", "it offers its level", 120)
        assert standing().levels == ("process",)
        assert node.supervisor is locked
    finally:
        node.close()
    told = messages_with(
        caplog, "isolation namespace was tried and is not given: "
    )  # on a busy machine for two reasons
    assert told
    assert len(told) == len(set(told))
    assert not messages_with(caplog, "the sandbox does not work")


def test_a_canary_that_gets_through_is_told_once_with_its_cause_and_looked_at_again_soon(
    database, standing, locked, wait_until, monkeypatch, caplog
):
    breaches, looks = ["files: it printed 'CANARY'"], []

    def prove(_):
        looks.append(1)
        return Proof(probe_id="probe_1", breaches=tuple(breaches), seconds=0.1)

    monkeypatch.setattr(canary, "prove", prove)
    monkeypatch.setattr(nodes, "SOON_SECONDS", 0.1)
    node = worker(database, locked)
    node.start()
    try:
        wait_until(lambda: standing().state == "broken", "it says that it can execute nothing", 120)
        assert standing().why == ("isolation process does not hold: files: it printed 'CANARY'",)
        wait_until(lambda: len(looks) >= 3, "it has looked again")
        breaches.clear()
        wait_until(lambda: standing().state == "ready", "it offers its level", 120)
        assert (standing().levels, standing().why) == (("process",), ())
    finally:
        node.close()
    (line,) = messages_with(caplog, "does not hold")
    assert "files: it printed 'CANARY' (it is tried again, in pauses that grow to 60 s)" in line
