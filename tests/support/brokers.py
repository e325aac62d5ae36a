"""Brokers of a test's own: a Redis database that nobody else uses, and a RabbitMQ without our queues."""

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.support.resources import RABBITMQ, REDIS, require

CLAIM_SECONDS = 900
"""A Redis database is given back so long after a test process was killed while it had it."""


def _claimed(claims: Any, owner: str) -> int:
    """A Redis database (1 to 15) that nobody else uses now."""
    deadline = time.monotonic() + CLAIM_SECONDS
    while time.monotonic() < deadline:
        for number in range(1, 16):
            if claims.set(f"backprobe-test-{number}", owner, nx=True, ex=CLAIM_SECONDS):
                return number
        time.sleep(0.1)
    return pytest.fail(f"no free Redis database within {CLAIM_SECONDS} s", pytrace=False)


def _redis_url() -> Iterator[str]:
    """A Redis database that nobody else uses, empty before and after; it stays ours however long the test takes."""
    require("redis")
    import redis

    owner, done = uuid.uuid4().hex, threading.Event()
    with redis.Redis.from_url(REDIS) as claims:
        number = _claimed(claims, owner)
        key = f"backprobe-test-{number}"

        def renew() -> None:
            while not done.wait(CLAIM_SECONDS / 10):
                claims.expire(key, CLAIM_SECONDS)

        renewing = threading.Thread(target=renew, name="claim of a Redis database", daemon=True)
        renewing.start()
        try:
            url = urlunsplit(urlsplit(REDIS)._replace(path=f"/{number}"))
            with redis.Redis.from_url(url) as mine:
                mine.flushdb()
                yield url
                mine.flushdb()
        finally:
            done.set()
            renewing.join()
            if claims.get(key) == owner.encode():
                claims.delete(key)


redis_of_its_own = contextlib.contextmanager(_redis_url)


@pytest.fixture
def redis_url(full_tier: None) -> Iterator[str]:
    """A Redis database of this test's own."""
    with redis_of_its_own() as url:
        yield url


@pytest.fixture(scope="module")
def module_redis_url(full_tier: None) -> Iterator[str]:
    """A Redis database of this module's own."""
    with redis_of_its_own() as url:
        yield url


@pytest.fixture
def rabbitmq_url(full_tier: None) -> Iterator[str]:
    """A RabbitMQ without our queues, before and after; its tests are one lane, so one at a time has it."""
    require("rabbitmq")
    from kombu.connection import Connection

    def empty() -> None:
        with Connection(RABBITMQ) as connection:
            for queue in ("backprobe.cpu.v1", "backprobe.gpu.v1"):
                connection.channel().queue_delete(queue)

    empty()
    yield RABBITMQ
    empty()
