"""Slots of live workers and memory of one worker are shared among tenants, whoever claims and whenever.

A tenant alone may have all; beside others it leaves a quarter, before they come: what runs is not ended for them.
"""

import threading

import pytest
import sqlalchemy as sa

from store import tables
from store.access.worker_shares import MemoryRoom
from store.admin import workers
from store.runs import lifecycle
from store.runs.limits import LIMITS, WARM_BYTES, Limits, tenant_memory_bytes

GIB = 1 << 30
DEFAULT = Limits().promised_bytes


@pytest.fixture
def tenant(database):
    """`tenant("b")`: the numbers of a new tenant and of its project, as `Submission` takes them."""

    def make(name, **facts):
        wide = {"max_queued": 999, "max_running": 999, "weight": 1, "max_record_bytes": 1 << 30, "keep_days": 30}
        with database.begin() as transaction:
            row = sa.insert(tables.tenant).values(
                public_id=f"tnt_{name}", name=name, created_at=tables.Now(), **(wide | facts)
            )
            number = transaction.execute(row.returning(tables.tenant.c.id)).scalar_one()
            row = sa.insert(tables.project).values(
                public_id=f"prj_{name}", tenant_id=number, name=name, settings={}, created_at=tables.Now()
            )
            project = transaction.execute(row.returning(tables.project.c.id)).scalar_one()
        return {"tenant_id": number, "project_id": project}

    return make


@pytest.fixture
def worker(database):
    """`worker("w1", 4)`: a worker with so many slots has beaten."""

    def beat(name, slots, queue="cpu", **facts):
        node = {"levels": ("none",), "devices": (queue,), "queues": (queue,)} | facts
        with database.begin() as transaction:
            workers.beat(transaction, workers.WorkerNode(id=name, slots=slots, **node))

    return beat


def claimed(claim, times, **asked):
    """Whose runs are claimed, one after the other, until there is none to be had."""
    taken = [claim(**asked) for _ in range(times)]
    return [row.tenant_id for row in taken if row is not None]


@pytest.mark.parametrize(("slots", "share"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6)])
def test_a_tenant_leaves_a_quarter_of_the_slots_before_another_comes(submit, claim, tenant, worker, slots, share):
    worker("w1", slots)
    greedy, other = tenant("greedy"), tenant("other")
    for _ in range(slots + 1):
        submit(**greedy)
    assert claimed(claim, slots + 1) == [greedy["tenant_id"]] * share
    submit(**other)
    assert claimed(claim, 1) == [other["tenant_id"]]


def test_a_tenant_that_is_alone_has_every_slot(submit, claim, tenant, worker):
    worker("w1", 4)
    tenant("gone", disabled_at="2020-01-01T00:00:00.000Z")
    for _ in range(4):
        submit()
    assert claimed(claim, 5) == [1] * 4


def test_slots_that_nobody_offers_are_not_counted(submit, claim, tenant, worker, database):
    worker("w1", 4)
    worker("gpu", 100, "gpu")
    worker("leaving", 100, draining=True)
    worker("broken", 100, levels=())
    worker("silent", 100)
    with database.begin() as transaction:
        silent = sa.update(tables.worker_node).where(tables.worker_node.c.id == "silent")
        transaction.execute(silent.values(heartbeat_at=tables.Now(-600)))
    greedy = tenant("greedy")
    for _ in range(8):
        submit(**greedy)
    assert claimed(claim, 8) == [greedy["tenant_id"]] * 3


def test_the_slots_of_two_workers_are_shared_together(submit, claim, tenant, worker):
    worker("w1", 4), worker("w2", 4)
    greedy = tenant("greedy")
    for _ in range(8):
        submit(**greedy)
    assert claimed(claim, 4, worker="w1") + claimed(claim, 4, worker="w2") == [greedy["tenant_id"]] * 6


def test_claims_at_the_same_moment_take_no_more_than_the_share(submit, tenant, worker, database):
    worker("w1", 4)
    greedy = tenant("greedy")
    for _ in range(12):
        submit(**greedy)
    begin, taken = threading.Barrier(8), []

    def take():
        begin.wait()
        taken.append(lifecycle.claim(database, "w1"))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(claim is not None for claim in taken) == 3


def test_a_worker_takes_no_run_that_it_has_no_memory_for(submit, claim):
    large = submit(limits=Limits(memory_bytes=8 * GIB))
    small = submit(limits=Limits(memory_bytes=1 * GIB))
    room = MemoryRoom(free_bytes=4 * GIB)
    assert claim(memory=room).public_id == small.id
    assert claim(memory=room) is None
    assert claim(memory=MemoryRoom(free_bytes=8 * GIB)) is None, "the private folders and the warm process count too"
    enough = 8 * GIB + LIMITS["disk_bytes"].default + WARM_BYTES
    assert claim(memory=MemoryRoom(free_bytes=enough)).public_id == large.id


def test_a_private_folder_is_memory_too(submit, claim):
    submit(limits=Limits(memory_bytes=1 * GIB, disk_bytes=4 * GIB))
    assert claim(memory=MemoryRoom(free_bytes=4 * GIB)) is None
    assert claim(memory=MemoryRoom(free_bytes=6 * GIB)) is not None


def test_a_tenant_leaves_a_part_of_the_memory_to_others(submit, claim, tenant):
    greedy, other = tenant("greedy"), tenant("other")
    for _ in range(4):
        submit(limits=Limits(memory_bytes=3 * GIB, disk_bytes=0), **greedy)
    each = 3 * GIB + WARM_BYTES
    room = MemoryRoom(free_bytes=16 * GIB, tenant_bytes=tenant_memory_bytes(16 * GIB))
    assert claimed(claim, 4, memory=room) == [greedy["tenant_id"]] * 3
    submit(**other)
    left = MemoryRoom(free_bytes=16 * GIB - 3 * each, tenant_bytes=room.tenant_bytes)
    assert claimed(claim, 2, memory=left) == [other["tenant_id"]]


def test_a_tenant_with_no_run_on_a_worker_may_have_one_that_is_above_its_part(submit, claim, tenant):
    greedy = tenant("greedy")
    for _ in range(2):
        submit(**greedy)
    room = MemoryRoom(free_bytes=4 * GIB, tenant_bytes=1 * GIB)
    assert claimed(claim, 2, memory=room) == [greedy["tenant_id"]]


@pytest.mark.parametrize(
    ("there_is", "has"),
    [
        (64 * GIB, 48 * GIB),  # three quarters
        (5 * GIB, 5 * GIB - DEFAULT),  # a quarter has no room for a run of somebody else
        (3 * GIB, DEFAULT),  # there is room for one run only, and tenants take turns
        (1 * GIB, 1 * GIB),
    ],
)
def test_what_a_tenant_leaves_has_room_for_a_run_with_the_default_limits(there_is, has):
    assert tenant_memory_bytes(there_is) == has


def test_runs_that_want_too_much_do_not_hide_the_others_of_their_tenant(submit, claim):
    for _ in range(20):
        submit(limits=Limits(memory_bytes=8 * GIB))
    small = submit()
    assert claim(memory=MemoryRoom(free_bytes=4 * GIB)).public_id == small.id


def test_tenants_take_turns_at_the_slots(submit, claim, tenant, worker):
    worker("w1", 8)
    first, second, third = tenant("first"), tenant("second"), tenant("third")
    for _ in range(4):
        submit(**first), submit(**second), submit(**third)
    taken = claimed(claim, 6)
    for tenants in (taken[:3], taken[3:]):
        assert sorted(tenants) == sorted(each["tenant_id"] for each in (first, second, third))
