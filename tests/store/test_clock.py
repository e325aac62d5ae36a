"""A database's clock that was set costs no run: leases and deadlines move with it, on both databases."""

import time

import pytest
import sqlalchemy as sa

from store.admin import workers
from store.runs import lifecycle
from store.runs.clock import Clock, move_times
from store.runs.expiry import seconds_since
from store.tables import Moved, Now, run, worker_node

HOUR = 3600.0


def submit(database):
    with database.begin() as transaction:
        return lifecycle.submit(transaction, lifecycle.Submission(files={"main.py": "print(1)"}, entry="main.py")).id


def written_before(database, seconds):
    """All that was written until now was written by a clock that has been set by so much since."""
    with database.begin() as transaction:
        for table, names in (
            (run, ("queued_at", "rank_at", "not_before", "queue_deadline", "lease_until", "heartbeat_at")),
            (worker_node, ("heartbeat_at",)),
        ):
            transaction.execute(sa.update(table).values({name: Moved(table.c[name], -seconds) for name in names}))


def seconds_left(database, column):
    """Seconds from now on."""
    with database.read() as reading:
        (at,) = reading.execute(sa.select(column)).scalars().all()
        return -seconds_since(reading, at)


@pytest.mark.parametrize("set_by", [HOUR, -HOUR, 3 * 24 * HOUR])
def test_a_clock_that_is_set_is_seen_and_one_that_goes_on_is_not(database, set_by):
    behind = 0.0
    watched = Clock(database, lambda: time.monotonic() - behind)
    assert [watched.look() for _ in range(3)] == [0.0, 0.0, 0.0]
    behind = set_by  # beside this one the database's clock is so much further on
    assert watched.look() == pytest.approx(set_by, abs=60)
    assert watched.look() == 0.0


@pytest.mark.parametrize("set_by", [HOUR, -HOUR])
def test_a_lease_holds_as_long_as_it_would_have(database, set_by):
    submit(database)
    assert lifecycle.claim(database, "w1", lease_seconds=600) is not None
    written_before(database, set_by)
    if set_by > 0:
        assert seconds_left(database, run.c.lease_until) < 0
    else:
        assert seconds_left(database, run.c.lease_until) > HOUR
    assert move_times(database, set_by) == 1
    assert 300 < seconds_left(database, run.c.lease_until) <= 600
    assert lifecycle.expire_leases(database).requeued == ()


@pytest.mark.parametrize("set_by", [HOUR, -HOUR])
def test_what_was_written_since_is_left_alone(database, set_by):
    submit(database)
    assert lifecycle.claim(database, "w1", lease_seconds=600) is not None
    assert move_times(database, set_by) == 0
    assert 300 < seconds_left(database, run.c.lease_until) <= 600


def test_a_run_that_waits_is_not_lost_by_a_day_that_did_not_pass(database):
    submit(database)
    written_before(database, 30 * HOUR)
    assert seconds_left(database, run.c.queue_deadline) < 0
    assert move_times(database, 30 * HOUR) == 1
    assert lifecycle.expire_queued(database) == ()
    assert seconds_left(database, run.c.queue_deadline) > 23 * HOUR
    assert -600 < seconds_left(database, run.c.queued_at) <= 0


@pytest.mark.parametrize("set_by", [HOUR, -HOUR])
def test_a_worker_that_beats_is_no_silent_one(database, set_by):
    node = workers.WorkerNode(id="h:1:a", queues=("cpu",), levels=("none",), devices=("cpu",))
    with database.begin() as transaction:
        workers.beat(transaction, node)
    written_before(database, set_by)
    move_times(database, set_by)
    assert -60 < seconds_left(database, worker_node.c.heartbeat_at) <= 1
    with database.begin() as transaction:
        assert workers.drop_silent(transaction) == []


def test_a_lease_that_a_clock_ran_out_in_the_very_moment_is_not_taken(database):
    public_id = submit(database)
    assert lifecycle.claim(database, "w1", lease_seconds=600) is not None
    written_before(database, HOUR)
    assert lifecycle.expire_leases(database, unless=lambda: True).requeued == ()
    assert lifecycle.expire_leases(database).requeued == (public_id,)


def test_a_time_is_moved_as_written(database):
    with database.read() as reading:
        now, later = reading.execute(sa.select(Now(), Moved(Now(), 1.5))).one()
        assert seconds_since(reading, now) - seconds_since(reading, later) == pytest.approx(1.5, abs=0.5)
