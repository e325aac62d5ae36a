"""What workers count for themselves is added up, and does not fall when a worker ends."""

import pytest

from store.admin.tenant_slots import slots_by_tenant
from store.admin.worker_tally import WorkerTally
from store.admin.workers import WorkerNode


def node(name, queue="cpu", **counts):
    return WorkerNode(id=name, queues=(queue,), levels=(), devices=(), probe={"counts": counts} if counts else {})


def test_only_what_comes_after_the_first_look_counts():
    tally = WorkerTally()
    assert tally.look([node("a", oom_kills=5, warm_losses=2)]).starts == {"cpu": 0, "gpu": 0}
    so_far = tally.look([node("a", oom_kills=6, warm_losses=2), node("b", queue="gpu", oom_kills=1, warm_losses=0)])
    assert so_far.starts == {"cpu": 0, "gpu": 1}
    assert so_far.oom_kills == {"cpu": 1, "gpu": 1}
    assert so_far.warm_losses == {"cpu": 0, "gpu": 0}


def test_a_worker_that_ends_and_one_that_starts_in_its_place():
    tally = WorkerTally()
    tally.look([node("a", oom_kills=5, warm_losses=2)])
    tally.look([])
    so_far = tally.look([node("c", oom_kills=2, warm_losses=1)])
    assert (so_far.starts["cpu"], so_far.oom_kills["cpu"], so_far.warm_losses["cpu"]) == (1, 2, 1)


def test_a_worker_of_an_older_version_counts_nothing():
    tally = WorkerTally()
    tally.look([])
    assert tally.look([node("old")]).oom_kills == {"cpu": 0, "gpu": 0}


@pytest.fixture
def hold_look(database):
    def look():
        with database.read() as reading:
            return [(found.queue, found.name, found.slots) for found in slots_by_tenant(reading)]

    return look


def test_tenants_are_listed_by_the_slots_that_they_hold(database, submit, claim, hold_look):
    from store.access import tenants

    with database.begin() as transaction:
        other = tenants.create(transaction, "busy")
        project = tenants.first_project(transaction, other)
    submit()
    for _ in range(3):
        submit(tenant_id=other, project_id=project)
    assert hold_look() == []
    for _ in range(3):
        claim()
    assert hold_look() == [("cpu", "busy", 2), ("cpu", "default", 1)]
