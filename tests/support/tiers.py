"""The two tiers of the tests: `make test` runs the default one, `make test-full` both.

A test is in the full tier when it asks, itself or through a fixture, for `full_tier`: fixtures of servers, browsers,
sandboxes, fresh interpreters with torch, forks of the gradient check and whole corpora do. A second database or the Python twin of the core is a parameter that
carries the mark `full`. Nothing else puts a test into a tier, so a test that stops needing a server changes its tier.
"""

from __future__ import annotations

import sys

import pytest

MARK = (
    "full: needs a server, a browser, a sandbox, a second database, the Python twin or a fresh interpreter with torch"
)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", MARK)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the full tier, before `-m` selects."""
    for item in items:
        if "full_tier" in getattr(item, "fixturenames", ()):
            item.add_marker("full")


@pytest.fixture(scope="session")
def full_tier() -> None:
    """Puts each test that asks for it into the full tier."""


@pytest.fixture(scope="session")
def fresh_python(full_tier: None) -> str:
    """Path of the interpreter, for a test that starts it with torch: that takes two seconds of processor time."""
    return sys.executable


@pytest.fixture(scope="session")
def sandbox(full_tier: None) -> None:
    """For tests that start a warm process or a worker of their own."""


@pytest.fixture(scope="session")
def sweep(full_tier: None) -> None:
    """For tests that run every program of a corpus, or judge every variant of a record."""


@pytest.fixture(scope="session")
def gradient_forks(full_tier: None) -> None:
    """For tests of the gradient check that recompute steps in many forks of a program."""
