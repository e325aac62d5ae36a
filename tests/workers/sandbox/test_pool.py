"""A warm process that does not start is tried again in pauses that grow, and said once."""

import logging
import socket
from types import SimpleNamespace

import pytest

from workers.sandbox.process.messages import Ready
from workers.sandbox.remote.boot import Link
from workers.sandbox.supervisor import pool


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """The pool's clock, which stands still."""
    time_ = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: time_.now))
    return time_


class Boots:
    """Counts what is booted, and when; fails on command."""

    def __init__(self, clock: SimpleNamespace) -> None:
        self.clock, self.at, self.fails = clock, list[float](), True
        self.pool = pool.Pool(self.boot, lambda _: None, lambda _: None)

    def boot(self) -> Link:
        self.at.append(self.clock.now)
        if self.fails:
            raise OSError("nothing of the kind is here")
        ours, theirs = socket.socketpair()
        theirs.close()
        return Link(control=ours)

    def tend_for(self, seconds: float) -> list[float]:
        """Turns of an eighth of a second; the pauses between the boots in them."""
        self.at.clear()
        for _ in range(round(seconds * 8)):
            self.pool.tend(self.clock.now)
            self.clock.now += 0.125
        return [later - earlier for earlier, later in zip(self.at, self.at[1:], strict=False)]

    def starts(self) -> None:
        """The next one becomes warm, as soon as it is booted."""
        self.fails = False
        while self.pool._coming is None:
            self.tend_for(0.125)
        coming = self.pool._coming
        assert coming is not None
        self.pool.is_warm(coming, Ready(pid=1, vm_bytes=0, rss_bytes=0))


def test_the_pauses_between_boots_that_fail_grow_to_a_minute(clock, caplog):
    boots = Boots(clock)
    assert boots.tend_for(400) == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0, 60.0]
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert said == [
        "no warm process could be started: nothing of the kind is here (it is tried again, in pauses that grow to 60 s)"
    ]


def test_one_that_starts_ends_the_failure_and_one_that_had_a_run_the_pauses(clock):
    boots = Boots(clock)
    boots.tend_for(100)
    boots.starts()
    assert boots.pool.failure is None
    current = boots.pool.current
    assert current is not None
    boots.pool.note_fork(current)
    boots.pool.drop_zygote(current)
    boots.fails = True
    assert boots.tend_for(2) == [0.5, 1.0]


def test_those_that_end_before_they_had_a_run_are_not_started_without_a_pause(clock):
    boots = Boots(clock)
    pauses = list[float]()
    for _ in range(6):
        since = clock.now
        boots.starts()
        pauses += [at - since for at in boots.at]
        assert boots.pool.current is not None
        boots.pool.drop_zygote(boots.pool.current)
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
