"""The database of a test, SQLite and PostgreSQL alike.

1. Every test that takes `database` runs twice, each time on a migrated database with nothing but its first rows in it.
2. On SQLite that is a copy of a file that a test process migrates once. On PostgreSQL all tests of a process share one
   database, which is emptied before each: to make one takes 1.5 s where several work. A test that changes the schema
   makes its own.
3. `postgres_url` is a migrated database of the test's own, made as a copy of a template; `empty_postgres_url` has nothing
   in it. Both are dropped afterwards.
4. No test sleeps: a lease of less than nothing has run out, and rows are moved in time by hand.
"""

import contextlib
import functools
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.support.resources import POSTGRES, require


def in_database(name: str) -> str:
    """The server's URL with this database."""
    return urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))


@contextlib.contextmanager
def postgres_of_its_own(template: str | None = None) -> Iterator[str]:
    """The URL of a PostgreSQL database that is dropped at the end: empty, or a copy of `template`."""
    require("postgres")
    import psycopg
    from psycopg import sql

    name = f"backprobe_test_{uuid.uuid4().hex[:12]}"
    quoted = sql.Identifier(name)
    made = sql.SQL("CREATE DATABASE {}").format(quoted)
    if template is not None:
        made += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
    with psycopg.connect(POSTGRES, autocommit=True) as admin:
        admin.execute(made)
        # what a crash of the server would lose is nothing to a test, and a commit waits for no disk
        admin.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit TO off").format(quoted))
        try:
            yield in_database(name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(quoted))


@functools.cache
def migrated_sqlite() -> bytes:
    """The bytes of a migrated SQLite file; migrating takes half a second, writing them a millisecond."""
    from store.database.migrator import upgrade

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backprobe.db"
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()


@pytest.fixture(scope="session")
def postgres_template(full_tier: None) -> Iterator[str]:
    """The name of a migrated PostgreSQL database to which nobody is connected."""
    from store.database.migrator import upgrade

    with postgres_of_its_own() as url:
        upgrade(url)
        yield urlsplit(url).path.lstrip("/")


def _copy(postgres_template: str) -> Iterator[str]:
    """A migrated PostgreSQL database of this test's own, as `postgresql://...`; dropped afterwards."""
    with postgres_of_its_own(postgres_template) as url:
        yield url


postgres_url = pytest.fixture(_copy, name="postgres_url")
module_postgres_url = pytest.fixture(_copy, name="module_postgres_url", scope="module")


def _empty(full_tier: None) -> Iterator[str]:
    """A PostgreSQL database of this test's own with nothing in it; dropped afterwards."""
    with postgres_of_its_own() as url:
        yield url


empty_postgres_url = pytest.fixture(_empty, name="empty_postgres_url")
module_empty_postgres_url = pytest.fixture(_empty, name="module_empty_postgres_url", scope="module")


@pytest.fixture(scope="session")
def postgres_database(postgres_template: str) -> Iterator[Callable[[], str]]:
    """`postgres_database()`: the URL of this process's database, emptied."""
    import psycopg

    with postgres_of_its_own(postgres_template) as url, psycopg.connect(url, autocommit=True) as inside:
        yield emptied(inside, url)


def emptied(inside: Any, url: str) -> Callable[[], str]:
    """What brings a fresh database back to its first rows and numbers."""
    found = inside.execute(
        "select relname from pg_class where relkind in ('r', 'p') and not relispartition"
        " and relnamespace = 'public'::regnamespace"
    )
    tables = sorted(row[0] for row in found if row[0] != "alembic_version")
    first = {}
    for table in tables:
        with inside.cursor().copy(f'COPY (SELECT * FROM "{table}") TO STDOUT') as copy:
            first[table] = b"".join(copy)
    sequences = inside.execute(
        "select sequencename, coalesce(last_value, 1), last_value is not null from pg_sequences"
    ).fetchall()
    empty = "".join(f'DELETE FROM "{table}";' for table in tables)

    def again() -> str:
        inside.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        )
        with inside.transaction(), inside.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger, no order among foreign keys
            cursor.execute(empty)
            for table, rows in first.items():
                if rows:
                    with cursor.copy(f'COPY "{table}" FROM STDIN') as copy:
                        copy.write(rows)
            for sequence, value, used in sequences:
                cursor.execute("select setval(%s::regclass, %s, %s)", [sequence, value, used])
        return url

    return again


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a migrated database with nothing of another test in it."""
    if request.param == "sqlite":
        path = tmp_path / "backprobe.db"
        path.write_bytes(migrated_sqlite())
        return f"sqlite:///{path}"
    return request.getfixturevalue("postgres_database")()


@pytest.fixture
def database(database_url: str) -> Iterator[Any]:
    """A connection pool on it."""
    from store.database.session import Database

    opened = Database(database_url)
    yield opened
    opened.close()
