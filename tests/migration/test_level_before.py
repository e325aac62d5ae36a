"""For one release, code of the level before works on the schema of this one: while workers are replaced one by one."""

import msgspec
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from store.database.migrator import head, upgrade
from store.database.session import Database
from store.records import storage
from store.records.expiry.partitions import tables_and_partitions
from store.runs import completion, lifecycle
from tests.migration.test_migrations import ROOT
from tests.store.small_record import a_record

__all__ = ["a_record"]

LEVELS = sorted(script.revision for script in ScriptDirectory(str(ROOT / "migrations")).walk_revisions())
APART = {"alembic_version", "delivery_try", "audit_log"}


def columns(database):
    """By table and column: whether an INSERT may leave it out, and its type."""
    found, months = sa.inspect(database.engine), []
    if not database.sqlite:
        with database.read() as reading:
            whole, _ = tables_and_partitions(reading)
            months = set(found.get_table_names()) - set(whole)
    return {
        (table, column["name"]): (
            column["nullable"] or column["default"] is not None or column.get("autoincrement") is True,
            str(column["type"]),
        )
        for table in found.get_table_names()
        if table not in months
        for column in found.get_columns(table)
    }


def test_each_level_takes_nothing_from_the_one_before_and_demands_nothing_of_it(empty_url):
    database, before = Database(empty_url), None
    for level in LEVELS:
        upgrade(empty_url, level)
        now = columns(database)
        if before is not None:
            assert [place for place in before if now.get(place, (False, ""))[1] != before[place][1]] == [], level
            assert [place for place in before if before[place][0] and not now[place][0]] == [], level
            tables = {table for table, _ in before}
            demanded = [place for place in now.keys() - before.keys() if place[0] in tables and not now[place][0]]
            assert demanded == [], level
        before = now
    database.close()
    assert LEVELS[-1] == head()


@pytest.fixture(params=sorted({LEVELS[0], *LEVELS[-2:-1]}))
def previous_columns(request, empty_url):
    """The columns of each table at a level before, and a database at head."""
    upgrade(empty_url, request.param)
    database = Database(empty_url)
    known: dict[str, list[str]] = {}
    for table, column in columns(database):
        known.setdefault(table, []).append(column)
    upgrade(empty_url)
    yield known, database
    database.close()


def test_a_run_whose_rows_the_level_before_wrote_lives_on(previous_columns, a_record):
    known, database = previous_columns
    with database.begin() as transaction:
        queued, ended = (
            lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": "1\n"}, entry="a.py")) for _ in range(2)
        )
    held = lifecycle.claim(database, "w1")
    assert held is not None
    assert completion.finish(database, held, completion.Ending(status="succeeded", exit_code=0), a_record, None)
    rows = written_again(database, known)
    assert rows["run"] == 2
    assert rows["tensor"] == len(a_record.tensors)
    assert rows["snapshot_chunk"] > 0
    with database.read() as reading:
        again = storage.load(reading, held.key)
    assert again is not None
    moments = [msgspec.structs.replace(moment, stack=None) for moment in a_record.moments]
    assert (again.tensors, again.moments, len(again.snapshots)) == (
        a_record.tensors,
        a_record.moments if "stack" in known["moment"] else tuple(moments),
        len(a_record.snapshots),
    )
    other = lifecycle.claim(database, "w2")
    assert other is not None
    assert {held.public_id, other.public_id} == {queued.id, ended.id}
    assert (other.attempt, other.files) == (1, {"a.py": "1\n"})
    assert completion.finish(database, other, completion.Ending(status="succeeded", exit_code=0), a_record, None)


def written_again(database, known) -> dict[str, int]:
    """Each row is taken out and put back by an INSERT of the columns that the level before knows: how many by table."""
    metadata = sa.MetaData()
    metadata.reflect(database.engine)
    tables = [table for table in metadata.sorted_tables if table.name in known and table.name not in APART]
    with database.begin() as transaction:
        if database.sqlite:
            transaction.execute(sa.text("pragma defer_foreign_keys = on"))
        kept = {}
        for table in tables:
            names = ", ".join(f'"{name}"' for name in known[table.name])
            found = transaction.exec_driver_sql(f'select {names} from "{table.name}"')
            kept[table.name] = [tuple(row) for row in found]
        for table in reversed(tables):
            transaction.execute(sa.delete(table))
        for table in tables:
            some = known[table.name]
            mark = "?" if database.sqlite else "%s"
            names, places = ", ".join(f'"{name}"' for name in some), ", ".join([mark] * len(some))
            for row in kept[table.name]:
                insert = f'insert into "{table.name}" ({names}) values ({places})'
                transaction.exec_driver_sql(insert, plain(database, row))
    return {name: len(rows) for name, rows in kept.items()}


def plain(database, row):
    """Values as a driver takes them: JSON comes from PostgreSQL as objects."""
    if database.sqlite:
        return row
    from psycopg.types.json import Jsonb

    return tuple(Jsonb(value) if isinstance(value, dict | list) else value for value in row)
