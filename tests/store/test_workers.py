"""A worker is what its heartbeat says."""

import sqlalchemy as sa

from store import tables
from store.admin import workers


def node(name="h:1:a", **fields):
    base = {
        "queues": ("cpu",),
        "levels": ("none",),
        "devices": ("cpu",),
        "slots": 2,
        "probe": {"x": 1},
        "versions": {"torch": "2"},
    }
    return workers.WorkerNode(id=name, **(base | fields))


def test_a_worker_that_beats_is_live_and_offers_what_it_says(database):
    with database.begin() as transaction:
        workers.beat(transaction, node())
        workers.beat(
            transaction, node("h:2:b", levels=("process", "none"), devices=("h100",), queues=("cpu", "gpu"), busy=1)
        )
        workers.beat(transaction, node("h:3:c", levels=("gvisor",), draining=True))
        workers.beat(transaction, node(busy=1))
        live = workers.live(transaction)
        cpu, gpu = workers.combine_offers(transaction, "cpu"), workers.combine_offers(transaction, "gpu")
    assert [(row.id, row.busy, row.draining) for row in live] == [
        ("h:1:a", 1, False),
        ("h:2:b", 1, False),
        ("h:3:c", 0, True),
    ]
    assert (live[0].probe, live[0].versions, live[0].started_at <= live[0].heartbeat_at) == (
        {"x": 1},
        {"torch": "2"},
        True,
    )
    assert live[0].silent_seconds < 60
    assert (cpu.levels, cpu.devices, cpu.workers, cpu.idle_slots) == (("none", "process"), ("cpu", "h100"), 2, 2)
    assert (gpu.devices, gpu.workers) == (("h100",), 1)


def test_a_silent_worker_is_gone(database):
    with database.begin() as transaction:
        workers.beat(transaction, node())
        workers.beat(transaction, node("h:2:b"))
        long_ago = sa.update(tables.worker_node).where(tables.worker_node.c.id == "h:1:a")
        transaction.execute(long_ago.values(heartbeat_at="2020-01-01T00:00:00.000Z"))
        assert [row.id for row in workers.live(transaction)] == ["h:2:b"]
        assert list(workers.drop_silent(transaction)) == ["h:1:a"]
        workers.leave(transaction, "h:2:b")
        assert workers.live(transaction, silent_seconds=1e9) == ()
