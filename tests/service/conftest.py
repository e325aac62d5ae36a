"""The web process in this process, on both databases; runs are finished by the store's own functions."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from backprobe.record import Record
    from service.context import Context


def _load(name: str) -> Any:
    """A module of this folder: tests are no package, and two folders use the same samples."""
    known = f"service_tests_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return sys.modules[known]


samples_module = _load("samples")


@pytest.fixture(scope="session")
def samples() -> Any:
    """Records built by hand."""
    return samples_module


@dataclasses.dataclass
class Site:
    """One application on one database, and what a worker would do to it."""

    app: Any
    client: FlaskClient
    context: Context

    def post(self, body: dict[str, Any] | None = None, **more: Any) -> Any:
        """`POST /v1/runs`."""
        return self.client.post("/v1/runs", json={"source": samples_module.TUTORIAL} if body is None else body, **more)

    def submit(self, **body: Any) -> str:
        """Submit a good snippet; its id."""
        answer = self.post({"source": samples_module.TUTORIAL, **body})
        assert answer.status_code == 202, answer.text
        return answer.json["id"]

    def worker(self, levels: tuple[str, ...] = ("none",), queues: tuple[str, ...] = ("cpu",), **facts: Any) -> str:
        """A worker that has just beaten."""
        from store import workers

        name = f"test:1:{uuid.uuid4().hex[:8]}"
        devices = ("cuda:test",) if "gpu" in queues else ("cpu",)
        with self.context.database.begin() as transaction:
            workers.beat(
                transaction, workers.WorkerNode(id=name, queues=queues, levels=levels, devices=devices, **facts)
            )
        return name

    def finish(self, run: str, record: Record | None = None, **ending: Any) -> None:
        """End a queued run as a worker would, with this record, judged."""
        from backprobe.rules import judge, why_none
        from store import runs
        from store.finish import Ending, Stream, finish

        claim = runs.claim(self.context.database, self.worker())
        assert claim is not None
        assert claim.public_id == run
        judgement = ending.pop("judgement", judge(record) if record is not None else None)
        facts = {
            "status": "succeeded", "exit_code": 0, "wall_seconds": 0.25, "cpu_seconds": 0.2,
            "max_rss_bytes": 310 << 20, "isolation": {"level": "none"}, "stdout": Stream(tail="None\n", total_bytes=5),
            "torch": "2.13.0+cpu", **ending,
        }  # fmt: skip
        whys = why_none(record) if record is not None else None
        assert finish(self.context.database, claim, Ending(**facts), record, judgement, whys)

    def finished(self, record: Record | None = None, *, body: dict[str, Any] | None = None, **ending: Any) -> str:
        """A run that has ended; its id."""
        run = self.submit(**(body or {}))
        self.finish(run, samples_module.tutorial() if record is None else record, **ending)
        return run


def make_site(home: Path, database_url: str | None, networks: str = "", **settings: Any) -> Site:
    """A migrated, empty application with its home there."""
    from service.app import create_app
    from service.settings import Settings
    from store import migrate

    environ = {"BACKPROBE_DATABASE_URL": database_url or "", "BACKPROBE_WEBHOOK_NETWORKS": networks}
    found = dataclasses.replace(Settings.from_environment(environ, home), **settings)
    migrate.upgrade(found.store.database_url)
    app = create_app(found)
    app.testing = True
    return Site(app=app, client=app.test_client(), context=app.extensions["backprobe"])


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes applications on SQLite, with other settings."""
    made: list[Site] = []

    def one(**settings: Any) -> Site:
        made.append(make_site(tmp_path / f"home{len(made)}", None, **settings))
        return made[-1]

    yield one
    for site in made:
        site.context.close()


@pytest.fixture(scope="module")
def module_make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Site]]:
    """Makes applications for the tests of a module, on SQLite unless a URL is given."""
    made: list[Site] = []

    def one(database_url: str | None = None, **settings: Any) -> Site:
        made.append(make_site(tmp_path_factory.mktemp("home"), database_url, **settings))
        return made[-1]

    yield one
    for site in made:
        site.context.close()


@pytest.fixture(scope="module")
def plain_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One application on SQLite for tests that store nothing, or do not mind what others stored."""
    site = make_site(tmp_path_factory.mktemp("home"), None)
    yield site
    site.context.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One application per module and database: migrating takes longer than a test."""
    url = request.getfixturevalue("module_postgres_url") if request.param == "postgresql" else None
    made = make_site(tmp_path_factory.mktemp("home"), url)
    yield made
    made.context.close()


@pytest.fixture
def site(both: Site) -> Site:
    """An empty application, on either database."""
    from store.tables import METADATA

    kept = {"tenant", "project", "audit_log"}  # the last only grows: the database refuses to delete from it
    with both.context.database.begin() as transaction:
        for table in reversed(METADATA.sorted_tables):
            if table.name not in kept:
                transaction.execute(table.delete())
    return both
