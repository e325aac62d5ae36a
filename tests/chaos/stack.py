"""A stack under chaos: servers behind forwarders, worker and reaper processes, and what the test itself sees of them.

The test's own connection goes straight to the server, so that it sees what is true while the workers are cut off.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import psutil
import sqlalchemy as sa

from store.audits import audit_uploads, audits
from store.audits.audits import NewAudit, NewItem
from store.database.session import Transaction, is_unavailable
from store.runs import lifecycle
from store.runs.limits import Limits
from store.tables import audit, run
from tests.chaos.forwarder import Forwarder
from tests.chaos.programs import Program
from tests.chaos.servers import Server
from tests.support.stack import Stack

AWAY_SECONDS = 120.0
T = TypeVar("T")


def with_forwarder(url: str) -> tuple[str, Forwarder]:
    """The same URL through a forwarder."""
    parts = urlsplit(url)
    forwarder = Forwarder(parts.hostname or "127.0.0.1", parts.port or 0)
    login, _, _ = parts.netloc.rpartition("@")
    netloc = f"{login}@127.0.0.1:{forwarder.port}" if login else f"127.0.0.1:{forwarder.port}"
    return urlunsplit(parts._replace(netloc=netloc)), forwarder


@dataclass(kw_only=True)
class Besieged(Stack):
    """A stack whose servers lie behind forwarders; `to_database` and `to_broker` are None on the embedded stack.

    Attributes:
        wrong_clock: Environment of a worker whose clock is wrong.
        meanwhile: Called again and again while a server is waited for: it may be the one who starts it.
        audit: Public id of the audit of all that is submitted; None: nothing was.
    """

    name: str
    environment: dict[str, str] = field(init=False)
    database_url: str | None
    broker_url: str | None
    lease_seconds: float
    servers: dict[str, Server] = field(default_factory=dict)
    wrong_clock: dict[str, str] = field(default_factory=dict)
    reaper: psutil.Popen | None = None
    workers: list[psutil.Popen] = field(default_factory=list)
    to_database: Forwarder | None = None
    to_broker: Forwarder | None = None
    meanwhile: Callable[[], None] = lambda: None
    audit: str | None = None

    def __post_init__(self) -> None:
        common = {
            "BACKPROBE_HOME": str(self.folder / "home"),
            "BACKPROBE_ISOLATION": "none",  # the programs are ours, and queue and store do not ask for more
            "BACKPROBE_TRUST_CODE": "1",
            "BACKPROBE_LEASE_SECONDS": str(self.lease_seconds),
        }
        direct, through = dict(common), dict(common)
        if self.database_url is not None:
            direct["BACKPROBE_DATABASE_URL"] = self.database_url
            through["BACKPROBE_DATABASE_URL"], self.to_database = with_forwarder(self.database_url)
        if self.broker_url is not None:
            direct["BACKPROBE_BROKER_URL"] = self.broker_url
            through["BACKPROBE_BROKER_URL"], self.to_broker = with_forwarder(self.broker_url)
        self.environment, self.direct = through, direct
        super().__post_init__()
        self.ids: dict[int, str] = {}

    @property
    def sqlite(self) -> bool:
        return self.database.sqlite

    def start_worker(self, *, wrong: bool = False) -> psutil.Popen:
        environment = self.wrong_clock if wrong else {}
        worker = self.start("worker", "--concurrency", "2", **environment)
        self.workers.append(worker)
        return worker

    def start_reaper(self) -> None:
        self.reaper = self.start("reaper")

    def submit_all(self, programs: list[Program]) -> None:
        """Queue them as items of one audit, in one transaction.

        One whose commit is in doubt is looked for before it is made again.
        """
        numbers = [str(program.number) for program in programs]

        def enqueue_all() -> dict[int, str]:
            with self.database.read() as reading:
                rows = reading.execute(sa.select(run.c.custom_id, run.c.public_id).where(run.c.custom_id.in_(numbers)))
                return {int(row.custom_id): row.public_id for row in rows}

        def submitted() -> dict[int, str]:
            if found := enqueue_all():
                return found
            with self.database.begin() as transaction:
                queued = [lifecycle.enqueue(transaction, _submission(program)) for program in programs]
                items = [NewItem(custom_id=name, run_id=row.number) for name, row in zip(numbers, queued, strict=True)]
                _grow(transaction, items)
                return {row.number: run.id for row, run in zip(programs, queued, strict=True)}

        self.ids |= self.patiently(submitted)

    def close_audit(self) -> None:
        """Nothing more is submitted: the audit waits for what is."""

        def close_open_audit() -> str | None:
            with self.database.begin() as transaction:
                found = _audit(transaction)
                if found is not None and found.status == "open":
                    audit_uploads.close(transaction, found.number, found.items)
                return None if found is None else found.id

        self.audit = self.patiently(close_open_audit)

    def is_judged(self) -> bool:
        """The audit has its verdict."""
        waiting = sa.select(sa.func.count()).where(audit.c.status != "judged")
        return not self.all(waiting)[0][0]

    def wake(self) -> bool:
        """Send a wake-up; False: the broker is away, which is no error of a submission."""
        try:
            self.publish("cpu")
        except Exception:
            return False
        return True

    def cancel(self, number: int) -> None:
        def ask_cancel() -> None:
            with self.database.begin() as transaction:
                lifecycle.request_cancel(transaction, self.ids[number])

        self.patiently(ask_cancel)

    def all(self, query: Any) -> Any:
        """Rows of a query."""

        def rows() -> Any:
            with self.database.read() as reading:
                return reading.execute(query).all()

        return self.patiently(rows)

    def count_left(self) -> int:
        """Runs that have not ended."""
        waiting = sa.select(sa.func.count()).where(run.c.status.in_(("queued", "running")))
        return int(self.all(waiting)[0][0])

    def patiently(self, call: Callable[[], T]) -> T:
        """What a call gives; a server that restarts meanwhile is waited for."""
        deadline = time.monotonic() + AWAY_SECONDS
        while True:
            try:
                return call()
            except Exception as error:
                if not is_unavailable(error) or time.monotonic() > deadline:
                    raise
            self.meanwhile()
            time.sleep(0.2)

    def kill(self, process: psutil.Popen) -> None:
        process.kill()
        process.wait()
        if process in self.workers:
            self.workers.remove(process)

    def close(self) -> None:
        self.processes.kill()
        for forwarder in (self.to_database, self.to_broker):
            if forwarder is not None:
                forwarder.close()
        super().close()
        for server in self.servers.values():
            server.kill()


def _audit(transaction: Transaction) -> audits.Audit | None:
    """The audit of this stack; None: there is none yet."""
    page = audits.page(transaction, limit=1).items
    return page[0] if page else None


def _grow(transaction: Transaction, items: list[NewItem]) -> None:
    found = _audit(transaction)
    if found is None:
        project = transaction.execute(sa.select(sa.func.min(run.c.project_id))).scalar_one()
        new = NewAudit(name="chaos", project_id=project, created_by="chaos")
        audits.begin(transaction, new)
        found = _audit(transaction)
    assert found is not None
    audit_uploads.hold(transaction, found.number, found.items)
    audit_uploads.grow(transaction, found.number, found.items, items)


def _submission(program: Program) -> lifecycle.Submission:
    return lifecycle.Submission(
        files={"main.py": program.source},
        entry="main.py",
        limits=Limits(**(program.limits or {})),
        max_attempts=program.most_attempts,
        priority=random.randrange(10),
        custom_id=str(program.number),
    )
