"""What the revisions make is what the tables say, to the letter, and goes up and down."""

import hashlib
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

from backprobe.record import SCHEMA_VERSION
from store.database.migrator import UnknownRevision, at_head, downgrade, head, list_revisions, upgrade
from store.database.session import Database
from store.records import storage
from store.records.expiry.partitions import ensure, tables_and_partitions
from store.runs import lifecycle
from store.runs.model import RunKey
from store.tables import METADATA
from tests.support.databases import migrated_sqlite

ROOT = Path(__file__).parents[2]


def schema(database) -> list[tuple]:
    """Everything in the catalogue, as text."""
    with database.read() as reading:
        if database.sqlite:
            rows = reading.execute(sa.text("select type, name, sql from sqlite_master where name not like 'sqlite_%'"))
            found = [(kind, name, *sorted(pieces(sql))) for kind, name, sql in rows]
        else:
            found = [tuple(row) for query in CATALOGUE for row in reading.execute(sa.text(query))]
    return sorted(row for row in found if "alembic_version" not in str(row))


def pieces(sql: str) -> list[str]:
    """Lines of a CREATE statement: the order of its constraints is no difference."""
    return [line.strip().rstrip(",") for line in sql.splitlines() if line.strip()]


OURS = "c.relnamespace = 'public'::regnamespace and not c.relispartition"
"""Partitions of months come and go."""

CATALOGUE = (
    f"select 'index', c.relname, pg_get_indexdef(c.oid) from pg_class c where c.relkind in ('i', 'I') and {OURS}",
    (
        "select 'constraint', c.relname, conname, pg_get_constraintdef(o.oid) from pg_constraint o"
        f" join pg_class c on c.oid = conrelid where {OURS}"
    ),
    "select 'trigger', tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal",
    "select 'function', proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace",
    "select 'view', viewname, definition from pg_views where schemaname = 'public'",
    (
        "select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, col_description(c.oid, a.attnum)"
        f" from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relkind in ('r', 'p') and a.attnum > 0"
        f" and not a.attisdropped and {OURS}"
    ),
    f"select 'table', c.relname, c.relkind, obj_description(c.oid) from pg_class c where c.relkind in ('r', 'p') and {OURS}",
)


@pytest.fixture
def migrated(empty_url):
    upgrade(empty_url)
    database = Database(empty_url)
    yield database
    database.close()


def test_models_and_migrations_agree(migrated):
    with migrated.read() as reading:
        months = set() if migrated.sqlite else set(tables_and_partitions(reading)[1]) - set(METADATA.tables)
        opts = {"compare_type": True, "include_name": lambda name, kind, _: kind != "table" or name not in months}
        assert compare_metadata(MigrationContext.configure(reading, opts=opts), METADATA) == []


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


def test_each_level_is_undone_to_the_letter(empty_url):
    database, made = Database(empty_url), {}
    for level in list_revisions():
        upgrade(empty_url, level)
        made[level] = schema(database)
    for level in reversed(list_revisions()):
        downgrade(empty_url, level)
        assert schema(database) == made[level], level
    database.close()


def test_a_record_that_the_level_before_the_checks_stored_has_none(empty_url):
    upgrade(empty_url, "0016")
    database = Database(empty_url)
    with database.begin() as transaction:
        ensure(transaction, 82)
        write_version_1(transaction)
    upgrade(empty_url)
    with database.read() as reading:
        assert reading.execute(sa.text("select streams is null, checks is null from record")).all() == [(False, True)]
        assert storage.load(reading, RunKey(part=82, run_id=1, attempt=1)) is not None
    database.close()


def write_version_1(transaction):
    """A record of version 1, row by row."""
    for name, columns in ROWS_OF_VERSION_1.items():
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(f":{column}" for column in columns)
        insert = f'insert into "{name}" (part, run_id, attempt, {names}) values (82, 1, 1, {values})'
        transaction.execute(sa.text(insert), columns)


ROWS_OF_VERSION_1 = {
    "record": {
        "schema_version": 1, "backprobe_version": "0.1.0", "tier": "full", "entry": "run", "started_at": "now",
        "reached_end": False, "environment": '{"python": "3.11", "platform": "linux"}',
        "threads": '[{"thread": 0, "name": "Main", "main": true, "first_seq": 0}]',
        "sources": "[]", "hooks": "[]", "exceptions": "[]", "warnings": "[]",
        "streams": '{"stdout": {"tail": "hello", "total_bytes": 5}}', "truncations": "[]", "fallbacks": "[]",
        "deviations": "[]", "growth": "[]", "grad_reads": "[]", "tensor_notes": "[]", "grad_fns": "[]",
        "rules_not_run": "[]",
    },
    "moment": {
        "moment": 0, "kind": "end", "k": 0, "thread": 0, "step": 1, "time_ns": 5, "grad_mode": True,
        "inference_mode": False,
    },
    "node": {
        "node": 0, "thread": 0, "type": "MulBackward0", "proof": "seen", "born_in": "forward", "grad_order": 0,
        "outputs": "[]", "first_seen": 0, "saved_bytes": 12,
    },
    "backward_call": {
        "call": 0, "entry": "autograd.grad", "thread": 0, "roots": "[]", "retain_graph": False, "create_graph": False,
        "accumulate_grad": False, "allow_unused": False, "returned": "[true]", "nodes_met": 1, "nodes_run": 1,
        "nodes_freed": 1, "held_bytes": 1, "freed_bytes": 1, "duration_ns": 1, "own_ns": 1, "outcome": "finished",
        "truncated": False, "moment_before": 0,
    },
    "optimizer": {"optimizer": 0, "class": "SGD", "moment": 0, "groups": "[]", "tensors": "[]"},
    "optimizer_event": {
        "n": 0, "optimizer": 0, "kind": "step", "moment": 0, "with_grad": 3, "without_grad": 1, "changed": 3,
    },
}  # fmt: skip


def test_a_record_of_version_1_is_read(migrated):
    with migrated.begin() as transaction:
        ensure(transaction, 82)
        write_version_1(transaction)
    with migrated.read() as reading:
        record = storage.load(reading, RunKey(part=82, run_id=1, attempt=1))
    assert record is not None
    assert (record.header.schema_version, record.header.first_version) == (SCHEMA_VERSION, 1)
    assert [(node.type, node.saved_bytes, node.candidates) for node in record.nodes] == [("MulBackward0", 12, ())]
    assert [(call.returned, call.returned_grads) for call in record.backward_calls] == [((True,), None)]
    (event,) = record.optimizer_events
    assert (event.kind, event.with_grad, event.learning_rates, event.scale_after) == ("step", 3, (), None)
    assert (record.streams, record.hooks, record.steps) == ((), (), ())


def test_there_is_one_head_and_every_revision_can_be_undone():
    scripts = ScriptDirectory(str(ROOT / "migrations"))
    assert scripts.get_heads() == [head()]
    assert [script.revision for script in scripts.walk_revisions()] == [*reversed(list_revisions())]
    for script in scripts.walk_revisions():
        assert "pass" not in script.module.downgrade.__code__.co_names
        assert script.doc


def test_a_migrated_database_can_queue_a_run_at_once(migrated):
    with migrated.begin() as transaction:
        run = lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": ""}, entry="a.py"))
    assert (run.status, run.project) == ("queued", "prj_default")


def test_a_database_at_head_is_left_alone(migrated, empty_url):
    assert at_head(empty_url)
    upgrade(empty_url)
    assert at_head(empty_url)


def test_what_only_asks_for_the_schema_loads_no_alembic(tmp_path):
    path = tmp_path / "backprobe.db"
    path.write_bytes(migrated_sqlite())
    asks = (
        f"import sys; from store.database.migrator import at_head, upgrade; upgrade('sqlite:///{path}')\n"
        f"assert at_head('sqlite:///{path}'); assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", asks], check=True, cwd=ROOT)


def test_an_empty_database_is_not_at_head(empty_url):
    assert not at_head(empty_url)


@pytest.mark.parametrize(
    ("revision", "advice"),
    [
        ("9999", "newer than this Backprobe, .* Upgrade Backprobe"),
        ("0008", "written before the first release.* empty database"),
    ],
)
def test_a_database_of_an_unknown_revision_is_refused_in_one_line(migrated, empty_url, revision, advice):
    with migrated.begin() as transaction:
        transaction.execute(sa.text("update alembic_version set version_num = :it"), {"it": revision})
    before = schema(migrated)
    with pytest.raises(UnknownRevision, match=f"revision {revision}, {advice}") as refused:
        upgrade(empty_url)
    assert "\n" not in str(refused.value)
    assert schema(migrated) == before
    assert not at_head(empty_url)


def test_a_sqlite_file_is_copied_before_a_migration_that_is_due(tmp_path):
    path = tmp_path / "backprobe.db"
    url = f"sqlite:///{path}"
    upgrade(url)
    assert [path.name for path in tmp_path.glob("*.before-*")] == []  # a new database has nothing to copy
    downgrade(url, "base")
    copy = tmp_path / f"backprobe.db.before-{head()}"
    with closing(sqlite3.connect(copy)) as kept:
        assert kept.execute("select name from project").fetchall() == [("default",)]
    assert copy.stat().st_mode == path.stat().st_mode


def test_processes_that_migrate_at_once_do_it_once(empty_url):
    code = "import sys; from store.database.migrator import upgrade; upgrade(sys.argv[1])"
    processes = [subprocess.Popen([sys.executable, "-c", code, empty_url]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert at_head(empty_url)


def test_the_wheel_carries_the_revisions(tmp_path):
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    (built,) = hatchling.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(built).namelist()
    for path in importlib.resources.files("migrations").joinpath("versions").iterdir():
        if path.suffix in {".py", ".sql"}:
            assert f"migrations/versions/{path.name}" in names
    assert {"migrations/env.py", "migrations/__init__.py", "migrations/script.py.mako"} <= set(names)


def test_no_released_revision_was_edited():
    """`sha256sum *` in `migrations/versions` writes the lines; a release adds those of its revisions."""
    versions = ROOT / "migrations" / "versions"
    lines = (ROOT / "tests" / "migration" / "released.txt").read_text().splitlines()
    released = {name: digest for digest, name in (line.split() for line in lines)}
    assert released == {name: hashlib.sha256((versions / name).read_bytes()).hexdigest() for name in released}


def test_a_revision_imports_nothing_of_ours():
    for path in (ROOT / "migrations" / "versions").glob("*.py"):
        assert not {"store", "backprobe", "service", "workers"} & {
            word
            for line in path.read_text().splitlines()
            if line.startswith(("import ", "from "))
            for word in line.replace(".", " ").split()
        }
