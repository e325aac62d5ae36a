"""A whole Backprobe, started as a user starts it, on each of the two stacks that the product promises."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import pytest

from tests.support.brokers import redis_of_its_own
from tests.support.databases import postgres_of_its_own
from tests.support.served import Served

STACKS = ("sqlite+embedded", "postgresql+redis")
UNLIMITED = {f"BACKPROBE_RATE_{what}": "0" for what in ("READS", "SUBMITS", "TENANT_READS", "TENANT_SUBMITS")}
"""Tests ask more in a minute than a tenant may."""


@contextlib.contextmanager
def environment_of(name: str, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    """What the environment of a stack says; the second needs real servers."""
    if name == "sqlite+embedded":
        yield {"BACKPROBE_DATABASE_URL": "", "BACKPROBE_BROKER_URL": ""}
        return
    template = request.getfixturevalue("postgres_template")
    with postgres_of_its_own(template) as database_url, redis_of_its_own() as broker_url:
        yield {"BACKPROBE_DATABASE_URL": database_url, "BACKPROBE_BROKER_URL": broker_url}


@pytest.fixture(scope="session", params=[STACKS[0], pytest.param(STACKS[1], marks=pytest.mark.full)])
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running Backprobe, for all tests that leave it as it was."""
    with environment_of(request.param, request) as environment:
        running = Served(tmp_path_factory.mktemp("home"), {**environment, **UNLIMITED})
        try:
            yield running
        finally:
            running.close()
