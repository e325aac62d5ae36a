"""A run in hand is shown while it goes on, on both databases; what cannot be written stops neither it nor its end."""

import threading
from contextlib import nullcontext

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from store import queries
from store.records.live_record import LiveRecord
from store.runs import lifecycle
from store.telemetry.spans import Spans
from workers import live_feed as feeds
from workers import tasks
from workers.lease import Lease
from workers.live_feed import Feed, Feeds

WAITS = """\
import os, sys, time
import torch
w = torch.ones(3, requires_grad=True)
print("begun")
while not os.path.exists(sys.argv[1]):
    (w * w).sum().backward()
    time.sleep(0.005)
"""
"""It goes on until the test has seen enough."""


class OneNode:
    """As much of a worker as one run needs: the keeper's part is the test's."""

    def __init__(self, database, supervisor):
        self.database, self.supervisor = database, supervisor
        self.keeper = self
        self.feeds = Feeds(database)
        self.spans = Spans(None, "")
        self.lease = None

    def hold(self, claim):
        self.lease = Lease(claim)
        return self.lease

    def drop(self, lease):
        pass

    def sandbox(self):
        return nullcontext(self.supervisor)


@pytest.fixture
def at_work(database, supervisor, open_folder):
    """`at_work()`: a run in the middle of its program, its worker, its thread, and the file that ends it."""
    flag = open_folder / "enough"
    threads = []

    def begin():
        with database.begin() as transaction:
            asked = {"files": {"main.py": WAITS}, "entry": "main.py", "arguments": (str(flag),)}
            lifecycle.submit(transaction, lifecycle.Submission(**asked))
        claim = lifecycle.claim(database, "w1", lease_seconds=300)
        node = OneNode(database, supervisor)
        thread = threading.Thread(target=tasks.execute, args=(node, claim))
        thread.start()
        threads.append(thread)
        return claim, node, thread, flag

    yield begin
    flag.touch()
    for thread in threads:
        thread.join()


@pytest.fixture
def look(database):
    def now(claim):
        with database.read() as reading:
            return lifecycle.get(reading, claim.public_id)

    return now


def feed_of(node, claim):
    return node.feeds._open.get(claim.run_id)


def show_run(database, run):
    with database.read() as reading:
        return len(queries.snapshots(reading, run, limit=1000).items)


def test_a_long_run_is_read_while_it_goes_on_and_whole_at_its_end(database, at_work, look, wait_until):
    claim, node, thread, flag = at_work()
    wait_until(lambda: feed_of(node, claim), "its feed")

    def grown():
        feed_of(node, claim).flush()
        run = look(claim)
        return run.record.live and show_run(database, run) >= 4 and show_run(database, run)

    first = wait_until(grown, "snapshots of a run that goes on")
    wait_until(lambda: grown() > first, "more of them")
    assert look(claim).status == "running"

    def printed():
        feed_of(node, claim).flush()
        with database.read() as reading:
            return queries.streams(reading, look(claim)).stdout.tail

    wait_until(lambda: printed() == "begun\n", "what it has printed")
    flag.touch()
    thread.join()
    run = look(claim)
    assert (run.status, run.record.live, run.record.state) == ("succeeded", False, "whole")
    with database.read() as reading:
        page, seen = queries.snapshots(reading, run, limit=1000), 0
        while True:
            seen += len(page.items)
            if page.next is None:
                break
            page = queries.snapshots(reading, run, after=page.next, limit=1000)
    assert seen == run.record.snapshots > first


def test_an_attempt_that_was_fenced_out_in_its_middle_leaves_nothing(database, at_work, look, wait_until):
    claim, node, thread, _flag = at_work()
    wait_until(lambda: feed_of(node, claim), "its feed")
    wait_until(lambda: feed_of(node, claim).flush() or look(claim).record.live, "what has come of it")
    assert lifecycle.heartbeat(database, claim, lease_seconds=-1.0)
    assert lifecycle.expire_leases(database).requeued == (claim.public_id,)
    assert look(claim).key is None
    feed = feed_of(node, claim)
    wait_until(lambda: feed.flush() or node.lease.why, "the fence")
    thread.join()
    run = look(claim)
    assert (node.lease.why, run.status, run.key) == ("fenced-out", "queued", None)


def test_what_a_record_cannot_hold_is_given_up_and_a_database_that_is_away_is_not(database, look, monkeypatch, caplog):
    with database.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": ""}, entry="a.py"))
    lease = Lease(lifecycle.claim(database, "w1"))
    calls = []

    def broken(self):
        calls.append(self)
        raise errors.pop()

    monkeypatch.setattr(LiveRecord, "flush", broken)
    errors = [IntegrityError("insert", {}, OSError()), OperationalError("insert", {}, OSError("a stranger's text"))]
    feed = Feed(database, lease)
    for _ in range(3):
        feed.flush()
    assert len(calls) == 2  # again after the database was away, not after a row that no table takes
    assert (lease.why, feed.close(), "stranger" in caplog.text) == (None, False, False)


def test_a_run_that_ends_within_a_pause_is_not_written_as_it_goes(database, monkeypatch):
    with database.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": ""}, entry="a.py"))
    lease = Lease(lifecycle.claim(database, "w1"))
    flushed, looked = [], threading.Event()
    monkeypatch.setattr(Feed, "flush", lambda self: (flushed.append(self), looked.set()))
    monkeypatch.setattr(feeds, "FLUSH_SECONDS", 0.01)
    open_feeds = Feeds(database)
    short = open_feeds.open(lease)
    assert open_feeds.close(lease) is False
    open_feeds.start()
    long = open_feeds.open(lease)
    assert looked.wait(60)
    open_feeds.stop()
    assert (short in flushed, long in flushed) == (False, True)
