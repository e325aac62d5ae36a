"""A whole Backprobe, started as a user starts it, on each of the two stacks that the product promises."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from backprobe.record import Record

READY_SECONDS = 90.0
LEASE_SECONDS = 3
STACKS = ("sqlite+embedded", "postgresql+redis")


class Stack:
    """`backprobe serve` in a process of its own, and a client of its API."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.environment = dict(environment)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home / "serve.test.log"
        self.client = httpx.Client(base_url=self.url, timeout=60)
        self.start()

    def start(self) -> None:
        """Start `backprobe serve` and wait until it takes runs.

        Raises:
            RuntimeError: it ended, or was not ready in time; the message has its log.
        """
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backprobe", "serve", "--port", str(self.port), "--home", str(self.home)],
                env=os.environ | self.environment | {"BACKPROBE_LEASE_SECONDS": str(LEASE_SECONDS)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.until(self._answers, READY_SECONDS, "serve is ready")

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"serve ended with {self.process.returncode}:\n{self.log.read_text()}")
        try:
            return self.client.get("/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End serve, and everything it started that outlives it."""
        children = self.processes()
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(45)
        _, alive = psutil.wait_procs(children, timeout=15)
        for process in [*alive, psutil.Process(self.process.pid)] if self.process.poll() is None else alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(15)

    def processes(self) -> list[psutil.Process]:
        """Every living descendant of serve."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def process_named(self, *words: str) -> psutil.Process:
        """The one descendant whose command line has all these words."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if all(word in process.cmdline() for word in words):
                    found.append(process)
        assert len(found) == 1, f"{words}: {found}"
        return found[0]

    def until(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """Look again and again until the condition gives something true; it is returned.

        Raises:
            RuntimeError: it never did; the message has the log of serve.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if got := condition():
                return got
            time.sleep(0.05)
        raise RuntimeError(f"not within {seconds:.0f} s: {what}\n{self.log.read_text()[-4000:]}")

    def submit(self, source: str | None = None, **body: Any) -> httpx.Response:
        """`POST /v1/runs` and wait for the end as long as the API does."""
        if source is not None:
            body["source"] = source
        return self.client.post("/v1/runs", json=body, headers={"Prefer": "wait=30"})

    def ended(self, run: str, seconds: float = 60) -> dict[str, Any]:
        """The run once it has ended."""

        def look() -> dict[str, Any] | None:
            answer = self.client.get(f"/v1/runs/{run}")
            assert answer.status_code == 200, answer.text
            body: dict[str, Any] = answer.json()
            return body if body["ended"] else None

        return self.until(look, seconds, f"{run} ended")

    def run(self, source: str | None = None, **body: Any) -> dict[str, Any]:
        """Submit a program and give the ended run."""
        answer = self.submit(source, **body)
        assert answer.status_code in (200, 202), answer.text
        return self.ended(answer.json()["id"])

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a read that must succeed."""
        answer = self.client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def items(self, path: str, **parameters: Any) -> list[dict[str, Any]]:
        """All items of a list, page by page."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.get(path, **parameters, **cursor)
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    def record(self, run: str) -> Record:
        """The stored record, as the database gives it back."""
        from store import runs
        from store.record import records
        from store.session import Database
        from store.settings import StoreSettings

        settings = StoreSettings.from_environment(os.environ | self.environment, home=self.home)
        database = Database(settings.database_url)
        try:
            with database.read() as tx:
                row = runs.get(tx, run)
                assert row is not None
                record = records.load(tx, row.key)
                assert record is not None
                return record
        finally:
            database.close()


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
def stack(stack_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running Backprobe."""
    running = Stack(tmp_path_factory.mktemp("home"), stack_environment)
    yield running
    running.stop()
    running.client.close()
