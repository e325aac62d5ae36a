"""A whole Backprobe, started as a user starts it, on each of the two stacks that the product promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.support.served import Served

STACKS = ("sqlite+embedded", "postgresql+redis")


@pytest.fixture(scope="module", params=STACKS)
def stack_environment(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """What the environment of one stack says; the second needs real servers."""
    if request.param == "sqlite+embedded":
        return {"BACKPROBE_DATABASE_URL": "", "BACKPROBE_BROKER_URL": ""}
    return {
        "BACKPROBE_DATABASE_URL": request.getfixturevalue("module_postgres_url"),
        "BACKPROBE_BROKER_URL": request.getfixturevalue("module_redis_url"),
    }


@pytest.fixture(scope="module")
def stack(stack_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running Backprobe."""
    running = Served(tmp_path_factory.mktemp("home"), stack_environment)
    yield running
    running.close()
