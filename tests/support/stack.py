"""A migrated database and a broker, our processes on them, and the store's own door for what a test submits and sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from store.database import migrator
from store.database.session import Database
from store.database.settings import StoreSettings
from store.runs import lifecycle
from tests.support.addresses import own_uid
from tests.support.databases import migrated_sqlite
from tests.support.processes import BACKPROBE, Processes, inherited
from workers.app import make_app, publisher

STACKS = ("embedded", "postgres and redis")
"""SQLite with the embedded broker, and PostgreSQL with Redis."""


@dataclass(kw_only=True)
class Stack:
    """Our processes on a database and a broker; all are ended with the test.

    Attributes:
        environment: What names database and broker to a process, and its other settings.
        direct: The same for the test's own connection, where it differs.
    """

    environment: dict[str, str]
    folder: Path
    direct: dict[str, str] | None = None
    settings: StoreSettings = field(init=False)
    database: Database = field(init=False)
    publish: Callable[[str], None] = field(init=False)
    processes: Processes = field(init=False)

    def __post_init__(self) -> None:
        # where a machine can isolate nothing its workers are at work all the same: these tests are about the rest;
        # and their programs are too small for what a warm process would go on to load in its pauses
        own = {"BACKPROBE_SANDBOX_UID": str(own_uid()), "BACKPROBE_TRUST_CODE": "1", "BACKPROBE_WARM_FURTHER": "0"}
        self.environment = own | self.environment
        self.processes = Processes(self.folder)
        self.settings = StoreSettings.from_environment(self.direct or self.environment)
        self.settings.make_home()
        path = self.settings.home / "backprobe.db"
        if self.settings.database_url.endswith(f"///{path}") and not path.exists():
            path.write_bytes(migrated_sqlite())  # it has nothing left to migrate then, which takes half a second
        migrator.upgrade(self.settings.database_url)
        self.database = Database(self.settings.database_url)
        self.publish = publisher(make_app(self.settings))

    def start(self, *arguments: str, **environment: str) -> psutil.Popen:
        """Start `backprobe ARGUMENTS`."""
        command = [*BACKPROBE, *arguments]
        return self.processes.start(command, inherited() | self.environment | environment, name=arguments[0])

    def log(self) -> str:
        """What all processes have written."""
        return self.processes.read_output()

    def submit(self, source: str, *, wake: bool = True, **asked: Any) -> str:
        """Queue a run; its public id comes back."""
        with self.database.begin() as transaction:
            row = lifecycle.submit(
                transaction, lifecycle.Submission(files={"main.py": source}, entry="main.py", **asked)
            )
        if wake:
            self.publish(row.queue)
        return row.id

    def run(self, public_id: str) -> lifecycle.RunRow:
        """A run as it is now."""
        with self.database.read() as transaction:
            row = lifecycle.get(transaction, public_id)
        assert row is not None
        return row

    def wait_for_end(self, public_id: str, seconds: float = 180.0) -> lifecycle.RunRow:
        """Wait until a run has ended and return it."""
        return self.wait(lambda: (row := self.run(public_id)).ended and row, f"the end of {public_id}", seconds)

    def running(self, public_id: str) -> lifecycle.RunRow:
        """A run, once a worker has it."""
        return self.wait(lambda: (row := self.run(public_id)).status == "running" and row, f"{public_id} runs")

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = 180.0) -> Any:
        """Wait for a condition; on failure show what the processes wrote."""
        return self.processes.wait_until(condition, what, seconds)

    def close(self) -> None:
        """Kill the processes and let go of the database."""
        self.processes.kill()
        self.database.close()


def stack_in(folder: Path, request: pytest.FixtureRequest, *urls: str) -> Iterator[Stack]:
    """The stack that `request.param` names; `urls` are the fixtures of the database and the broker."""
    environment = {"BACKPROBE_HOME": str(folder / "home")}
    if request.param != "embedded":
        names = ("BACKPROBE_DATABASE_URL", "BACKPROBE_BROKER_URL")
        environment |= {name: request.getfixturevalue(url) for name, url in zip(names, urls, strict=True)}
    opened = Stack(environment=environment, folder=folder)
    yield opened
    opened.close()
