"""Brokers of a test's own: a Redis database that nobody else uses, and a RabbitMQ without our queues."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.support.resources import RABBITMQ, REDIS, require

CLAIM_SECONDS = 900
"""A Redis database is given back so long after a test process was killed while it had it."""


def _redis_url() -> Iterator[str]:
    """A Redis database (1 to 15) that nobody else uses now, empty before and after."""
    require("redis")
    import redis

    owner = uuid.uuid4().hex
    deadline = time.monotonic() + CLAIM_SECONDS
    with redis.Redis.from_url(REDIS) as claims:
        number = None
        while number is None:
            number = next(
                (n for n in range(1, 16) if claims.set(f"backprobe-test-{n}", owner, nx=True, ex=CLAIM_SECONDS)), None
            )
            if number is None:
                if time.monotonic() > deadline:
                    pytest.fail(f"no free Redis database within {CLAIM_SECONDS} s", pytrace=False)
                time.sleep(0.1)
        url = urlunsplit(urlsplit(REDIS)._replace(path=f"/{number}"))
        with redis.Redis.from_url(url) as mine:
            mine.flushdb()
            yield url
            mine.flushdb()
        claims.delete(f"backprobe-test-{number}")


redis_of_its_own = contextlib.contextmanager(_redis_url)
redis_url = pytest.fixture(_redis_url, name="redis_url")
module_redis_url = pytest.fixture(_redis_url, name="module_redis_url", scope="module")


@pytest.fixture
def rabbitmq_url() -> Iterator[str]:
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
