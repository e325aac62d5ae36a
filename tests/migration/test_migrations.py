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

from backprobe.record import SCHEMA_VERSION
from store.database.ids import new_id, part
from store.database.migrator import DatabaseTooNew, at_head, downgrade, head, known, upgrade
from store.database.session import Database
from store.records import storage
from store.records.expiry.partitions import ensure, name_of, tables_and_partitions
from store.runs import lifecycle
from store.runs.model import RunKey
from store.tables import METADATA
from tests.migration.many_snapshots import down_and_up
from tests.store.test_shares import counted_anew, in_all
from tests.support.databases import migrated_sqlite

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


def write_as_0001(transaction):
    """A record of version 1, row by row."""
    for name, columns in ROWS_OF_0001.items():
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(f":{column}" for column in columns)
        insert = f'insert into "{name}" (part, run_id, attempt, {names}) values (82, 1, 1, {values})'
        transaction.execute(sa.text(insert), columns)


@pytest.fixture
def at_first(empty_url):
    """A database at revision 0001, with a record of version 1 in it as the release before wrote it."""
    upgrade(empty_url, "0001")
    database = Database(empty_url)
    with database.begin() as transaction:
        write_as_0001(transaction)
    yield database
    database.close()


ROWS_OF_0001 = {
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


def test_a_record_of_the_release_before_is_there_after_the_migration(at_first, empty_url):
    upgrade(empty_url)
    with at_first.read() as reading:
        record = storage.load(reading, RunKey(part=82, run_id=1, attempt=1))
    assert record is not None
    assert (record.header.schema_version, record.header.first_version) == (SCHEMA_VERSION, 1)
    assert [(node.type, node.saved_bytes, node.candidates) for node in record.nodes] == [("MulBackward0", 12, ())]
    assert [(call.returned, call.returned_grads) for call in record.backward_calls] == [((True,), None)]
    (event,) = record.optimizer_events
    assert (event.kind, event.with_grad, event.learning_rates, event.scale_after) == ("step", 3, (), None)
    assert (record.streams, record.hooks, record.steps) == ((), (), ())


def test_what_the_release_before_wrote_survives_the_way_back(at_first, empty_url):
    before = rows_in(at_first)
    upgrade(empty_url)
    with at_first.begin() as transaction:
        transaction.execute(sa.text(
            "insert into optimizer_event (part, run_id, attempt, n, kind, moment, with_grad, without_grad, changed)"
            " values (82, 1, 1, 1, 'clip_grad_norm', 0, 1, 0, 0)"
        ))  # fmt: skip
    downgrade(empty_url, "0001")
    assert rows_in(at_first) == before
    assert all(len(rows) == 1 for rows in before.values())


def test_what_is_there_is_counted_on_the_way_up(empty_url):
    """And asked after: programs with files in a week, those whose files have gone never."""
    upgrade(empty_url, "0010")
    database = Database(empty_url)
    program = "insert into snippet (id, public_id, tenant_id, sha256, entry, files, size_bytes, created_at)"
    file = "insert into snippet_file (snippet_id, n, path, sha256, is_text, body)"
    audit = "insert into audit (public_id, tenant_id, project_id, name, status, items, labels, created_by, created_at, version)"
    with database.begin() as transaction:
        for number in (7, 8):
            values = " values (:id, :public_id, 1, :hash, 'a.py', 1, 9, '2026-11-20T19:52:29.123Z')"
            row = {"id": number, "public_id": f"snp_{number}", "hash": bytes([number])}
            transaction.execute(sa.text(program + values), row)
        transaction.execute(
            sa.text(f"{file} values (7, 0, 'a.py', :hash, true, :body)"), {"hash": b"h", "body": b"x" * 900}
        )
        values = "values ('aud_1', 1, 1, 'n', 'judged', 0, '{}', 'local', '2026-11-20T19:52:29.123Z', 1)"
        transaction.execute(sa.text(f"{audit} {values}".replace(":52:29", "\\:52\\:29")))
    upgrade(empty_url)
    with database.read() as reading:
        kept = dict(reading.execute(sa.text("select id, kept_until is not null from snippet")).all())
    assert {number: bool(one) for number, one in kept.items()} == {7: True, 8: False}
    assert in_all(database) == counted_anew(database)
    assert in_all(database)[1, "programs"] == 2 * 516 + 256 + 4 + 900
    database.close()


def test_snapshots_are_the_same_after_the_way_down_and_up(empty_url):
    """`make migration` does it with a million."""
    written, down, up = down_and_up(empty_url, 20_000)
    assert (written, down > 0, up > 0) == (19_680, True, True)


def test_what_was_a_table_is_the_first_partition_and_a_table_again(empty_postgres_url):
    """Rows of several months, and who may read them; nothing of the record is written again on the way up."""
    newest = part(new_id("run"))
    upgrade(empty_postgres_url, "0008")
    database = Database(empty_postgres_url)
    ask = "select part, e.tableoid::regclass::text, relfilenode from edge e join pg_class c on c.oid = e.tableoid"
    rows = "insert into edge (part, run_id, attempt, node, slot, input_nr) values (:part, 1, 1, 1, 1, 1)"
    granted = "select count(*) from information_schema.role_table_grants where grantee = 'PUBLIC' and table_name in ('edge', 'snapshot')"

    def all_of(query):
        with database.read() as reading:
            return sorted(map(tuple, reading.execute(sa.text(query))))

    with database.begin() as transaction:
        for month in (newest - 20, newest - 1, newest):
            transaction.execute(sa.text(rows), {"part": month})
        transaction.execute(sa.text("grant select on edge, snapshot to public"))
    before, made = all_of(ask), schema(database)
    upgrade(empty_postgres_url)
    first = f"edge_{name_of(newest)}"
    assert all_of(ask) == [(month, first, file) for month, _, file in before]
    with database.begin() as transaction:
        transaction.execute(sa.text(rows), {"part": newest + 1})
    assert all_of(ask)[-1][:2] == (newest + 1, f"edge_{name_of(newest + 1)}")
    assert all_of(granted) == [(2,)]
    downgrade(empty_postgres_url, "0008")
    assert [row[:2] for row in all_of(ask)] == [(newest + n, "edge") for n in (-20, -1, 0, 1)]
    assert (schema(database), all_of(granted)) == (made, [(2,)])
    database.close()


def rows_in(database):
    with database.read() as reading:
        return {
            name: [tuple(row) for row in reading.execute(sa.text(f'select * from "{name}"'))] for name in ROWS_OF_0001
        }


def test_code_of_the_release_before_can_write_to_the_new_schema(migrated):
    """Nothing new is demanded: the columns that 0001 knows are enough."""
    with migrated.begin() as transaction:
        ensure(transaction, 82)
        write_as_0001(transaction)
    assert all(len(rows) == 1 for rows in rows_in(migrated).values())


def test_there_is_one_head_and_every_revision_can_be_undone():
    scripts = ScriptDirectory(str(ROOT / "migrations"))
    assert scripts.get_heads() == [head()]
    assert [script.revision for script in scripts.walk_revisions()] == [*reversed(known())]
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
    code = "import sys; from store.database.migrator import upgrade; upgrade(sys.argv[1])"
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
