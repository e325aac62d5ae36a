"""Threads of one process take turns at writing to a SQLite file."""

import threading
import time

from store.database.writers import Writers

SECONDS = 60


def test_who_wrote_last_lets_one_go_first_that_waits():
    writers, order = Writers(), []

    def hold_other():
        assert writers.acquire(SECONDS)
        order.append("other")
        writers.release()

    for _ in range(20):
        assert writers.acquire(SECONDS)
        waiting = threading.Thread(target=hold_other)
        waiting.start()
        deadline = time.monotonic() + SECONDS
        while not writers._waiting:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        writers.release()
        assert writers.acquire(SECONDS)
        order.append("mine")
        writers.release()
        waiting.join(SECONDS)
    assert order == ["other", "mine"] * 20


def test_alone_it_writes_again_at_once_and_one_at_a_time_writes():
    writers = Writers()
    for _ in range(3):
        assert writers.acquire(SECONDS)
        writers.release()
    assert writers.acquire(SECONDS)
    found = []
    waiting = threading.Thread(target=lambda: found.append(writers.acquire(0.01)))
    waiting.start()
    waiting.join(SECONDS)
    writers.release()
    assert found == [False]
    assert writers.acquire(SECONDS), "who gave up holds up nobody"
    writers.release()
