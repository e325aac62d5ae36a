"""The web process in this process, on both databases; runs are finished by the store's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import samples as hand_built
from tests.support.site import Site, make_site


@pytest.fixture(scope="session")
def samples() -> Any:
    """Records built by hand."""
    return hand_built


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes applications on SQLite, with other settings."""
    made: list[Site] = []

    def make_app(**settings: Any) -> Site:
        made.append(make_site(tmp_path / f"home{len(made)}", None, **settings))
        return made[-1]

    yield make_app
    for site in made:
        site.context.close()


@pytest.fixture
def served(make: Callable[..., Site], full_tier: None) -> Iterator[tuple[Site, str]]:
    """An application on SQLite behind the real server, and its address. Nobody works there."""
    from service.process.address import listen
    from service.server.http_server import Server

    site = make(threads=8)
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=8)
    server.start()
    yield site, f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.stop()


@pytest.fixture(scope="module")
def module_make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Site]]:
    """Makes applications for the tests of a module, on SQLite unless a URL is given."""
    made: list[Site] = []

    def make_app(database_url: str | None = None, **settings: Any) -> Site:
        made.append(make_site(tmp_path_factory.mktemp("home"), database_url, **settings))
        return made[-1]

    yield make_app
    for site in made:
        site.context.close()


@pytest.fixture(scope="module")
def plain_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One application on SQLite for tests that store nothing, or do not mind what others stored."""
    site = make_site(tmp_path_factory.mktemp("home"), None)
    yield site
    site.context.close()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
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
        transaction.execute(METADATA.tables["stored_bytes"].delete())  # last: each of the others was counted off in it
    return both


@pytest.fixture
def two(site: Site) -> list[dict[str, str]]:
    """Headers with a key of each of two new tenants, which may do all in it."""
    from store.access import tenants
    from store.database.ids import new_id

    headers = []
    for _ in range(2):
        with site.context.database.begin() as transaction:
            number = tenants.create(transaction, new_id("tnt"))
        headers.append({"Authorization": f"Bearer {site.make_key(tenant_id=number)[0]}"})
    return headers
