"""The database of a test, SQLite and PostgreSQL alike.

1. Every test that takes `database` runs twice, each time on a migrated database with nothing but its first rows in it.
2. On SQLite that is a file of its own. On PostgreSQL all tests of a session share one database, which is emptied before
   each: to make one takes 1.5 s where several work. A test that changes the schema makes its own.
3. No test sleeps: a lease of less than nothing has run out, and rows are moved in time by hand.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from store.migrate import upgrade
from store.session import Database

POSTGRES = os.environ.get("BACKPROBE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


def in_database(name: str) -> str:
    return urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("template") / "backprobe.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_database(require) -> Iterator[Callable[[], str]]:
    """`postgres_database()`: the URL of the session's database, emptied."""
    require("postgres")
    import psycopg

    name = f"backprobe_test_{uuid.uuid4().hex[:12]}"
    admin: Any = psycopg.connect(POSTGRES, autocommit=True)
    with admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            upgrade(in_database(name))
            with psycopg.connect(in_database(name), autocommit=True) as inside:
                yield emptied(inside, in_database(name))
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


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


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """URL of a migrated database with nothing of another test in it."""
    if request.param == "sqlite":
        path = tmp_path / "backprobe.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    return request.getfixturevalue("postgres_database")()


@pytest.fixture
def database(database_url):
    database = Database(database_url)
    yield database
    database.close()
