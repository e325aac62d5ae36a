"""What the revisions make is what the tables say, to the letter, and goes up and down."""

import importlib.resources
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from store import runs
from store.migrate import DatabaseTooNew, at_head, downgrade, head, upgrade
from store.session import Database
from store.tables import METADATA

ROOT = Path(__file__).parents[2]


def schema(database) -> list[tuple]:
    """Everything that stands in the catalogue, as text."""
    with database.read() as reading:
        if database.sqlite:
            rows = reading.execute(sa.text("select type, name, sql from sqlite_master where name not like 'sqlite_%'"))
            found = [(kind, name, *sorted(pieces(sql))) for kind, name, sql in rows]
        else:
            found = [tuple(row) for query in CATALOGUE for row in reading.execute(sa.text(query))]
    return sorted(row for row in found if "alembic_version" not in str(row))


def pieces(sql: str) -> list[str]:
    """Lines of a CREATE statement: the order of its constraints is no difference."""
    return [line.strip().rstrip(",") for line in sql.splitlines()]


CATALOGUE = (
    "select 'index', indexname, indexdef from pg_indexes where schemaname = 'public'",
    "select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace",
    "select 'trigger', tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal",
    "select 'function', proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace",
    (
        "select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, col_description(c.oid, a.attnum)"
        " from pg_attribute a join pg_class c on c.oid = a.attrelid"
        " where c.relkind = 'r' and a.attnum > 0 and c.relnamespace = 'public'::regnamespace"
    ),
    "select 'table', relname, obj_description(oid) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
)


@pytest.fixture
def migrated(empty_url):
    upgrade(empty_url)
    database = Database(empty_url)
    yield database
    database.close()


def test_models_and_migrations_agree(migrated):
    with migrated.read() as reading:
        assert compare_metadata(MigrationContext.configure(reading, opts={"compare_type": True}), METADATA) == []


def test_models_and_migrations_agree_to_the_letter(migrated):
    """Also where Alembic does not look: checks, partial indices, triggers, comments, storage."""
    made = schema(migrated)
    downgrade(migrated.url.render_as_string(hide_password=False), "base")
    with migrated.begin() as transaction:
        METADATA.create_all(transaction)
    assert made == schema(migrated)
    assert len(made) > 50


def test_up_and_down_and_up_again(migrated, empty_url):
    first = schema(migrated)
    downgrade(empty_url, "base")
    assert schema(migrated) == []
    upgrade(empty_url)
    assert schema(migrated) == first


def test_there_is_one_head_and_every_revision_can_be_undone():
    scripts = ScriptDirectory(str(ROOT / "migrations"))
    assert scripts.get_heads() == [head()]
    for script in scripts.walk_revisions():
        assert "pass" not in script.module.downgrade.__code__.co_names
        assert script.doc


def test_a_migrated_database_can_queue_a_run_at_once(migrated):
    with migrated.begin() as transaction:
        run = runs.submit(transaction, runs.Submission(files={"a.py": ""}, entry="a.py"))
    assert (run.status, run.project) == ("queued", "prj_default")


def test_a_database_at_head_is_left_alone(migrated, empty_url):
    assert at_head(empty_url)
    upgrade(empty_url)
    assert at_head(empty_url)


def test_an_empty_database_is_not_at_head(empty_url):
    assert not at_head(empty_url)


def test_a_database_newer_than_the_code_is_refused_in_one_line(migrated, empty_url):
    with migrated.begin() as transaction:
        transaction.execute(sa.text("update alembic_version set version_num = '9999'"))
    before = schema(migrated)
    with pytest.raises(DatabaseTooNew, match=r"revision 9999.*upgrade Backprobe") as refused:
        upgrade(empty_url)
    assert "\n" not in str(refused.value)
    assert schema(migrated) == before
    assert not at_head(empty_url)


def test_a_sqlite_file_is_copied_before_a_migration_that_is_due(tmp_path):
    path = tmp_path / "backprobe.db"
    url = f"sqlite:///{path}"
    upgrade(url)
    assert [one.name for one in tmp_path.glob("*.before-*")] == []  # a new database has nothing to copy
    downgrade(url, "base")
    copy = tmp_path / f"backprobe.db.before-{head()}"
    with closing(sqlite3.connect(copy)) as kept:
        assert kept.execute("select name from project").fetchall() == [("default",)]
    assert copy.stat().st_mode == path.stat().st_mode


def test_processes_that_migrate_at_once_do_it_once(empty_url):
    code = "import sys; from store.migrate import upgrade; upgrade(sys.argv[1])"
    processes = [subprocess.Popen([sys.executable, "-c", code, empty_url]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert at_head(empty_url)


def test_the_wheel_carries_the_revisions(tmp_path):
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    (built,) = hatchling.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(built).namelist()
    for path in importlib.resources.files("migrations").joinpath("versions").iterdir():
        if path.name.endswith(".py"):
            assert f"migrations/versions/{path.name}" in names
    assert {"migrations/env.py", "migrations/__init__.py", "migrations/script.py.mako"} <= set(names)


def test_a_revision_imports_nothing_of_ours():
    for path in (ROOT / "migrations" / "versions").glob("*.py"):
        assert not {"store", "backprobe", "service", "workers"} & {
            word
            for line in path.read_text().splitlines()
            if line.startswith(("import ", "from "))
            for word in line.replace(".", " ").split()
        }
