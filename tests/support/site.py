"""The web process in a test's own process: one application on one database, and what a worker would do to it.

Runs are ended by the store's own functions with records built by hand, so that nothing here needs torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.support import samples
from tests.support.databases import migrated_sqlite

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from backprobe.record import Record
    from service.context import Context


PROGRAM = {"source": samples.TUTORIAL, "entry": "snippet.py"}
"""What is run where a test does not say what: a program of one file, with its name."""


@dataclasses.dataclass
class Site:
    """One application on one database, and what a worker would do to it."""

    app: Any
    client: FlaskClient
    context: Context

    def post(self, body: dict[str, Any] | None = None, **more: Any) -> Any:
        """`POST /v1/runs`."""
        return self.client.post("/v1/runs", json=PROGRAM if body is None else body, **more)

    def submit(self, **body: Any) -> str:
        """Submit a good snippet; its id."""
        answer = self.post(({} if {"files", "source"} & body.keys() else PROGRAM) | body)
        assert answer.status_code == 202, answer.text
        return answer.json["id"]

    def worker(self, levels: tuple[str, ...] = ("none",), queues: tuple[str, ...] = ("cpu",), **facts: Any) -> str:
        """A worker that has just beaten."""
        from store.admin import workers

        name = f"test:1:{uuid.uuid4().hex[:8]}"
        devices = ("cuda:test",) if "gpu" in queues else ("cpu",)
        with self.context.database.begin() as transaction:
            workers.beat(
                transaction, workers.WorkerNode(id=name, queues=queues, levels=levels, devices=devices, **facts)
            )
        return name

    def make_key(self, *, tenant_id: int = 1, name: str = "t", scopes: tuple[str, ...] = ("admin",)) -> tuple[str, str]:
        """A key of a tenant: its secret, its id."""
        from service.auth.caller import digest_of, new_key
        from store.access import keys

        secret, prefix = new_key()
        digest = digest_of(secret, self.context.settings.secret)
        new = keys.NewKey(name=name, prefix=prefix, digest=digest, scopes=scopes, created_by="test")
        with self.context.database.begin() as transaction:
            return secret, keys.create(transaction, new, tenant_id=tenant_id).id

    def finish(self, run: str, record: Record | None = None, **ending: Any) -> None:
        """End a queued run as a worker would, with this record, judged."""
        from backprobe.rules import judge, why_none
        from store.runs import lifecycle
        from store.runs.completion import Ending, Stream, finish

        claim = lifecycle.claim(self.context.database, self.worker())
        assert claim is not None
        assert claim.public_id == run
        judged = None if record is None or "judgement" in ending else judge(record)
        judgement = ending.pop("judgement", judged)
        facts = {
            "status": "succeeded", "exit_code": 0, "wall_seconds": 0.25, "cpu_seconds": 0.2,
            "max_rss_bytes": 310 << 20, "isolation": {"level": "none"}, "stdout": Stream(tail="None\n", total_bytes=5),
            "torch": "2.13.0+cpu", **ending,
        }  # fmt: skip
        whys = why_none(record) if record is not None else None
        assert finish(self.context.database, claim, Ending(**facts), record, judgement, whys)

    @contextlib.contextmanager
    def judging(self) -> Iterator[None]:
        """Audits are settled meanwhile, again and again as a worker does it: one may begin after the first look."""
        from store.audits.judging import settle

        over = threading.Event()

        def work() -> None:
            while not over.wait(0.1):
                settle(self.context.database)

        with ThreadPoolExecutor(1) as pool:
            worker = pool.submit(work)
            try:
                yield
            finally:
                over.set()
            worker.result()

    def finished(self, record: Record | None = None, *, body: dict[str, Any] | None = None, **ending: Any) -> str:
        """A run that has ended; its id."""
        run = self.submit(**(body or {}))
        self.finish(run, samples.tutorial() if record is None else record, **ending)
        return run


def make_site(home: Path, database_url: str | None, networks: str = "", **settings: Any) -> Site:
    """An empty application with its home there, on a migrated database: SQLite unless a URL is given."""
    from service.app import create_app
    from service.settings import Settings

    environ = {"BACKPROBE_DATABASE_URL": database_url or "", "BACKPROBE_WEBHOOK_NETWORKS": networks}
    if networks:  # receivers of tests listen where the machine lets them
        environ["BACKPROBE_WEBHOOK_PORTS"] = "1-65535"
    found = dataclasses.replace(Settings.from_environment(environ, home), **settings)
    if database_url is None:
        found.store.make_home()
        Path(urlsplit(found.store.database_url).path).write_bytes(migrated_sqlite())
    app = create_app(found)
    app.testing = True
    return Site(app=app, client=app.test_client(), context=app.extensions["backprobe"])
