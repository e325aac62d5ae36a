"""A service of recorders that is quick, real HTTP, and fails on command; and a sender of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backprobe.record import dumps, split
from backprobe.recorder import pace, record_sender
from backprobe.recorder.record_sender import Sender
from backprobe.recorder.target import Target
from tests.support import samples
from tests.support.frame_server import FrameServer
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for seconds that only spare a service."""
    monkeypatch.setattr(pace, "LEAST_SECONDS", 0.05)
    monkeypatch.setattr(pace, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(record_sender, "_LOOK_SECONDS", 0.02)


@pytest.fixture
def service() -> Iterator[FrameServer]:
    server = FrameServer()
    yield server
    server.stop()


@pytest.fixture
def frames() -> list[bytes]:
    """Of a whole record."""
    return list(split(dumps(samples.tutorial())))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of the spool."""
    return tmp_path / "spool"


@pytest.fixture
def make(service: FrameServer, home: Path) -> Iterator[Callable[..., Sender]]:
    """Makes senders; those that a test leaves open are closed after it."""
    made: list[Sender] = []

    def build_sender(url: str | None = None, key: str | None = None, **more: Any) -> Sender:
        target = Target(url=url or service.url, key=key, labels={"job": "a"}, capture={"tier": "full"})
        made.append(Sender(target, **{"home": home, "source": "full", **more}))
        return made[-1]

    yield build_sender
    service.free.set()
    for each in made:
        each.close(None, seconds=2.0)


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[..., Any]:
    return wait_until
