"""A whole Backprobe, started as a user starts it, and a client of its API."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from backprobe.record import Record
from tests.support.addresses import free_port, own_uid
from tests.support.processes import BACKPROBE, Processes, descendants

T = TypeVar("T")

READY_SECONDS = 120.0
LEASE_SECONDS = 3
SMALL = {"BACKPROBE_WARM_FURTHER": "0"}
"""For programs that train nothing: a warm process loads no more in its pauses than they need."""


class Served:
    """`backprobe serve` in a separate process, and a client of its API."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.environment = {"BACKPROBE_SANDBOX_UID": str(own_uid())} | dict(environment)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._processes = Processes(home)
        self.client = httpx.Client(base_url=self.url, timeout=60)
        self.start()

    def start(self) -> None:
        """Start `backprobe serve` and wait until it takes runs.

        Raises:
            RuntimeError: it ended; the message has its log.
        """
        command = [*BACKPROBE, "serve", "--port", str(self.port), "--home", str(self.home)]
        environment = os.environ | self.environment | {"BACKPROBE_LEASE_SECONDS": str(LEASE_SECONDS)}
        self.process = self._processes.start(command, environment, name="serve.test")
        try:
            self.wait_until(self._answers, "serve is ready", READY_SECONDS)
        except BaseException:  # no fixture has us yet that would end it
            self.stop()
            raise

    @property
    def log(self) -> str:
        """What serve has written since its last start."""
        return self._processes.read_output(self.process)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End serve, and everything it started that outlives it."""
        self._processes.stop(self.process, number)

    def close(self) -> None:
        """End everything."""
        self.stop()
        self.client.close()

    def processes(self) -> list[psutil.Process]:
        """Every living descendant of serve."""
        return descendants(self.process)

    def wait_until(self, condition: Callable[[], T], what: str, seconds: float = 120.0) -> T:
        """Wait for a condition; on failure show the end of serve's log."""
        return self._processes.wait_until(condition, what, seconds)

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"serve ended with {self.process.returncode}:\n{self.log}")
        try:
            return self.client.get("/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def process_named(self, *words: str) -> psutil.Process:
        """The one descendant whose command line has all these words."""
        found = []
        for process in descendants(self.process):
            with contextlib.suppress(psutil.NoSuchProcess):
                if all(word in process.cmdline() for word in words):
                    found.append(process)
        assert len(found) == 1, f"{words}: {found}"
        return found[0]

    def submit(self, source: str | None = None, **body: Any) -> httpx.Response:
        """`POST /v1/runs` and wait for the end as long as the API does."""
        if source is not None:
            body["source"] = source
        return self.client.post("/v1/runs", json=body, headers={"Prefer": "wait=30"})

    def wait_for_end(self, run: str, seconds: float = 180) -> dict[str, Any]:
        """Wait until the run has ended and return it."""

        def look() -> dict[str, Any] | None:
            answer = self.client.get(f"/v1/runs/{run}")
            assert answer.status_code == 200, answer.text
            body: dict[str, Any] = answer.json()
            return body if body["ended"] else None

        return self.wait_until(look, f"{run} ended", seconds)

    def run(self, source: str | None = None, **body: Any) -> dict[str, Any]:
        """Submit a program and give the ended run."""
        answer = self.submit(source, **body)
        assert answer.status_code in (200, 202), answer.text
        return self.wait_for_end(answer.json()["id"])

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
        from store.database.session import Database
        from store.database.settings import StoreSettings
        from store.records import storage
        from store.runs import lifecycle

        settings = StoreSettings.from_environment(os.environ | self.environment, home=self.home)
        database = Database(settings.database_url)
        try:
            with database.read() as tx:
                row = lifecycle.get(tx, run)
                assert row is not None
                record = storage.load(tx, row.key)
                assert record is not None
                return record
        finally:
            database.close()
