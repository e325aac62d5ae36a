"""What every test may ask for: servers and programs by name, throwaway databases and brokers, a clock that stands.

1. A server or program that a test needs is asked for by name through `require`. Absent, the test is skipped with that
   name, and fails instead when the environment variable BACKPROBE_REQUIRE lists it: a skip is never a pass.
2. What a fixture makes (a database, keys, queues) is gone when the test ends.
3. Nothing outside this repository is read, but what a variable of the environment names.
"""

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.support import resources

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads of torch that wait leave the core to other tests

pytest_plugins = (
    "tests.support.brokers",
    "tests.support.databases",
    "tests.support.folders",
    "tests.support.lanes",
    "tests.support.summary",
    "tests.support.tiers",
)


@pytest.fixture(scope="session")
def require() -> Callable[[str], None]:
    """`require("chromium")` at the top of a test or fixture: skip by name, or fail where it is required."""
    return resources.require


@pytest.fixture(scope="session")
def chromium(full_tier: None) -> str:
    """Path of a Chromium."""
    resources.require("chromium")
    return resources.chromium_path() or ""


@pytest.fixture(scope="module", autouse=True)
def _thawed() -> None:
    """What tests of another file froze for speed is found again by those that search for what holds a graph."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _restore_logging() -> Iterator[None]:
    """Undo what a test file's commands set: a command run in the test process logs as a separate process would."""
    loggers = [logging.getLogger(name) for name in ("", "backprobe", "service", "store", "workers", "kombu.connection")]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    hooks = sys.excepthook, threading.excepthook
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers
    sys.excepthook, threading.excepthook = hooks


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
