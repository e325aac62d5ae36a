"""What a worker offers follows what its machine gives: a failure at the start, or later, lasts as long as its cause."""

from functools import partial

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


def said(caplog, text):
    return [one.getMessage() for one in caplog.records if text in one.getMessage()]


@pytest.mark.usefixtures("sandbox")
def test_a_worker_that_began_with_no_isolation_gives_it_once_the_machine_does(
    database, standing, until, monkeypatch, caplog
):
    confined("process")
    monkeypatch.setattr(nodes, "SOON_SECONDS", 0.1)
    settings = WorkerSettings(trust_code=True, sandbox_uid=own_uid(), ahead=False)
    with monkeypatch.context() as lacking:
        lacking.setattr(landlock, "landlock_abi", lambda: 0)
        first = supervisor_for(settings, "cpu")
        node = worker(database, first, better=partial(better_supervisor, settings))
        with first:
            node.start()
            until(lambda: standing().state == "ready", "it offers what it can", 180)
            assert standing().levels == ("none",)
            assert "Landlock is version 0 here" in standing().why[-1]
            lent = node.sandbox()
            held = lent.__enter__()
            lacking.undo()
            try:
                until(lambda: node.supervisor is not first, "it has gone over", 180)
                assert held.run(ATTEMPT).status == "succeeded"  # a run in hand goes on where it began
            finally:
                lent.__exit__(None, None, None)
            until(lambda: standing().levels not in ((), ("none",)), "it says so", 180)
            assert standing().levels == (machine_level(),)
            until(lambda: not first._thread.is_alive(), "the first has ended", 180)
            with node.sandbox() as now:
                outcome = now.run(ATTEMPT)
            assert (outcome.status, outcome.isolation["level"]) == ("succeeded", standing().levels[0])
            node.close()
    assert not node.supervisor._thread.is_alive()
    assert len(said(caplog, "runs get isolation none: ")) == 1
    assert len(said(caplog, "can be given now, and every run gets it")) == 1


@pytest.mark.usefixtures("sandbox")
def test_a_better_level_that_does_not_hold_takes_nothing_from_what_runs_get(
    database, standing, locked, until, monkeypatch, caplog
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
        until(lambda: len(tried) == 2 and not tried[1]._thread.is_alive(), "both were tried and closed", 180)
        until(lambda: standing().state == "ready", "it offers its level", 120)
        assert standing().levels == ("process",)
        assert node.supervisor is locked
    finally:
        node.close()
    told = said(caplog, "isolation namespace was tried and is not given: ")  # on a busy machine for two reasons
    assert told
    assert len(told) == len(set(told))
    assert not said(caplog, "the sandbox does not work")


def test_a_canary_that_gets_through_is_told_once_with_its_cause_and_looked_at_again_soon(
    database, standing, locked, until, monkeypatch, caplog
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
        until(lambda: standing().state == "broken", "it says that it can execute nothing", 120)
        assert standing().why == ("isolation process does not hold: files: it printed 'CANARY'",)
        until(lambda: len(looks) >= 3, "it has looked again")
        breaches.clear()
        until(lambda: standing().state == "ready", "it offers its level", 120)
        assert (standing().levels, standing().why) == (("process",), ())
    finally:
        node.close()
    (line,) = said(caplog, "does not hold")
    assert "files: it printed 'CANARY' (it is tried again, in pauses that grow to 60 s)" in line
