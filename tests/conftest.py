"""What every test may ask for: the shared corpus, real servers, throwaway databases.

1. A server or program that a test needs is asked for by name through `require`. Absent, the test is skipped with that
   name, and fails instead when the environment variable BACKPROBE_REQUIRE lists it: a skip is never a pass.
2. What a fixture makes (a database, keys, queues) is gone when the test ends.
3. Tests that load no torch run first; see `QUICK`.
"""

import os
import shutil
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

ROOT = Path(__file__).parents[1]
QUICK = ("laws", "backprobe/record", "backprobe/rules", "backprobe/show", "store")
"""Folders of tests that need no torch, in the order in which they run; everything else follows."""

POSTGRES = os.environ.get("BACKPROBE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("BACKPROBE_TEST_REDIS", "redis://127.0.0.1:6379/0")
RABBITMQ = os.environ.get("BACKPROBE_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")

Require = Callable[[str], None]


def _answers(url: str) -> bool:
    """Something listens at this URL's host and port."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 0), timeout=2):
            return True
    except OSError:
        return False


def chromium_path() -> str | None:
    """Path of the browser's program, None without one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def cuda_works() -> bool:
    """torch finds a CUDA device here; asked only where a test needs one, for it loads torch."""
    import torch

    return torch.cuda.is_available()


PRESENT: dict[str, Callable[[], bool]] = {
    "postgres": lambda: _answers(POSTGRES),
    "redis": lambda: _answers(REDIS),
    "rabbitmq": lambda: _answers(RABBITMQ),
    "chromium": lambda: chromium_path() is not None,
    "curl": lambda: shutil.which("curl") is not None,
    "bubblewrap": lambda: shutil.which("bwrap") is not None,
    "runsc": lambda: shutil.which("runsc") is not None,
    "core": lambda: any((ROOT / "backprobe" / "capture").glob(f"_core{EXTENSION_SUFFIXES[0]}")),
    "cuda": cuda_works,
    "shared": lambda: shared_folder().is_dir(),
    "examples": lambda: examples_folder().is_dir(),
}
"""What a test may require, and how its presence is seen."""


def shared_folder() -> Path:
    """The corpus and design material beside the checkout, or where BACKPROBE_SHARED says."""
    return Path(os.environ.get("BACKPROBE_SHARED") or ROOT.parent / "shared")


def examples_folder() -> Path:
    """A checkout of github.com/pytorch/examples, where BACKPROBE_EXAMPLES says; nothing of it is kept here."""
    return Path(os.environ.get("BACKPROBE_EXAMPLES") or ROOT / "absent")


def require_now(name: str) -> None:
    """Skip the test, by name, when `name` is absent; fail it when BACKPROBE_REQUIRE lists it.

    Raises:
        KeyError: `name` is not in `PRESENT`.
    """
    if PRESENT[name]():
        return
    if name in os.environ.get("BACKPROBE_REQUIRE", "").replace(" ", "").split(","):
        pytest.fail(f"{name} is required (BACKPROBE_REQUIRE) and is not there", pytrace=False)
    pytest.skip(f"{name} is not there")


@pytest.fixture(scope="session")
def require() -> Require:
    """`require("chromium")` at the top of a test or fixture: skip by name, or fail where it is required."""
    return require_now


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the shared corpus."""
    require_now("shared")
    return shared_folder()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium."""
    require_now("chromium")
    return chromium_path() or ""


def _postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database of this test's own, as `postgresql://...`; dropped afterwards."""
    require_now("postgres")
    import psycopg
    from psycopg import sql

    name = f"backprobe_test_{uuid.uuid4().hex[:12]}"
    quoted = sql.Identifier(name)
    with psycopg.connect(POSTGRES, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(quoted))
        try:
            yield urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))
        finally:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(quoted))


def _redis_url() -> Iterator[str]:
    """A Redis database (1 to 15) that nobody else uses now, empty before and after."""
    require_now("redis")
    import redis

    owner = uuid.uuid4().hex
    deadline = time.monotonic() + 120
    with redis.Redis.from_url(REDIS) as claims:
        number = None
        while number is None:
            number = next((n for n in range(1, 16) if claims.set(f"backprobe-test-{n}", owner, nx=True, ex=900)), None)
            if number is None and time.monotonic() > deadline:
                pytest.fail("no free Redis database within 120 s", pytrace=False)
        url = urlunsplit(urlsplit(REDIS)._replace(path=f"/{number}"))
        with redis.Redis.from_url(url) as mine:
            mine.flushdb()
            yield url
            mine.flushdb()
        claims.delete(f"backprobe-test-{number}")


postgres_url = pytest.fixture(_postgres_url, name="postgres_url")
module_postgres_url = pytest.fixture(_postgres_url, name="module_postgres_url", scope="module")
redis_url = pytest.fixture(_redis_url, name="redis_url")
module_redis_url = pytest.fixture(_redis_url, name="module_redis_url", scope="module")


@pytest.fixture
def rabbitmq_url() -> Iterator[str]:
    """A RabbitMQ without our queues, before and after; one test at a time may have it."""
    require_now("rabbitmq")
    from kombu.connection import Connection

    def empty() -> None:
        with Connection(RABBITMQ) as connection:
            for queue in ("backprobe.cpu.v1", "backprobe.gpu.v1"):
                connection.channel().queue_delete(queue)

    empty()
    yield RABBITMQ
    empty()


class Clock:
    """A clock that stands until a test moves `now`, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """For what takes a clock, so that no test waits."""
    return Clock()


def _rank(item: pytest.Item) -> int:
    folder = item.path.relative_to(ROOT / "tests").as_posix() if item.path.is_relative_to(ROOT / "tests") else ""
    return next((n for n, quick in enumerate(QUICK) if folder.startswith(f"{quick}/")), len(QUICK))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first; inside a folder the order stays."""
    items.sort(key=_rank)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests did not run and why, counted by reason, so that a skip is read as what it is."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"not run: {count} tests, because {reason}", yellow=True)
