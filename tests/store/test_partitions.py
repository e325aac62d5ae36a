"""Months of the record on PostgreSQL: rows fall into theirs, a month goes whole when nothing of it stays, and only then."""

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

import store
from store import tables
from store.admin.health import checks
from store.database import ids
from store.database.ids import new_id, part
from store.database.session import Database
from store.recorders import record_uploads
from store.records.expiry import partitions, removal
from store.records.expiry.partitions import name_of
from store.records.expiry.sweep import RECORD_TABLES
from store.runs import completion, lifecycle, owner_changes

PAST, LATER = "2020-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"
NOW = part(new_id("run"))


@pytest.fixture
def database(postgres_url, monkeypatch):
    """A separate database: months of it are dropped, by an operator who waits for a busy machine."""
    monkeypatch.setattr(partitions, "PATIENCE_MS", 60_000)
    opened = Database(postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def month(monkeypatch):
    """`month(-3)`: ids are made three months ago from here on."""

    def set_to(ahead):
        year, of_year = divmod(NOW + ahead, 12)
        at = ids.datetime.datetime(2020 + year, of_year + 1, 15, tzinfo=ids.datetime.UTC)
        monkeypatch.setattr(ids.time, "time_ns", lambda: int(at.timestamp()) * 10**9)

    return set_to


@pytest.fixture
def ended_in(month, ended_run):
    """`ended_in(-3)`: a run of three months ago that has ended, with a record."""

    def submit_ahead(ahead, **more):
        month(ahead)
        return ended_run(**more)

    return submit_ahead


def places(database, run=None):
    """By table the partitions in which rows lie, of one run or of all."""
    found = {}
    with database.read() as reading:
        for table in RECORD_TABLES:
            query = sa.select(sa.text("tableoid::regclass::text")).select_from(table).distinct()
            query = query if run is None else query.where(table.c.run_id == run.run_id)
            found[table.name] = set(reading.execute(query).scalars())
    return found


def months(database):
    """By month the tables that have a partition for it."""
    found = {}
    with database.read() as reading:
        for row in reading.execute(sa.text("select parent.relname, child.relname from pg_inherits i"
            " join pg_class parent on parent.oid = inhparent join pg_class child on child.oid = inhrelid"
            " where child.relkind = 'r'")):  # fmt: skip
            found.setdefault(row[1].removeprefix(f"{row[0]}_"), set()).add(row[0])
    return found


ALL = {table.name for table in RECORD_TABLES}


def tables_of(database, name):
    with database.read() as reading:
        query = sa.text("select relname from pg_class where relkind = 'r' and relname like :like")
        return set(reading.execute(query, {"like": f"%{name}"}).scalars())


def test_rows_fall_into_the_partition_of_their_month(database, ended_in):
    old, new = ended_in(-5), ended_in(0)
    for run, ahead in ((old, -5), (new, 0)):
        there = places(database, run)
        assert {name: {f"{name}_{name_of(NOW + ahead)}"} for name in there if there[name]} == {
            name: found for name, found in there.items() if found
        }
        assert there["tensor"] and there["snapshot_chunk"] and there["record"]


def test_whoever_makes_a_run_sees_to_the_place_of_its_record():
    makers = [path for path in Path(store.__path__[0]).rglob("*.py") if "sa.insert(run)" in path.read_text()]
    assert len(makers) >= 2
    assert [path.name for path in makers if "partitions.ensure(" not in path.read_text()] == []


def test_an_upload_of_an_old_month_finds_its_place(database, month, a_record):
    month(-30)
    run = record_uploads.upload(database, a_record, None)
    assert run.record.state == "whole"
    assert places(database, run)["record"] == {f"record_{name_of(NOW - 30)}"}


def test_uploads_of_a_new_month_at_once_make_it_once(database, month, a_record):
    month(7)
    assert name_of(NOW + 7) not in months(database)
    barrier, found = threading.Barrier(4), []

    def upload():
        barrier.wait()
        found.append(record_uploads.upload(database, a_record, None))

    threads = [threading.Thread(target=upload) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [run.record.state for run in found] == ["whole"] * 4
    assert months(database)[name_of(NOW + 7)] == ALL


def test_a_month_goes_whole_and_nothing_else(database, ended_in, change, look, a_judgement):
    old, young = ended_in(-3, judgement=a_judgement), ended_in(-2)
    change(old, kept_until=PAST)
    before = places(database, young)
    assert partitions.drop(database) == ()
    assert [(expired.run, expired.rows) for expired in removal.expire(database)] == [(old.id, 0)]
    assert removal.leftovers(database) == 0
    assert [row.name for row in partitions.drop(database)] == [name_of(NOW - 3)]
    assert tables_of(database, name_of(NOW - 3)) == set()
    assert (look(old).record.state, look(old).findings.error) == ("expired", 1)
    assert (look(young).record.state, places(database, young)) == ("whole", before)
    assert set(months(database)) == {name_of(NOW + n) for n in (-2, 0, 1, 2)}
    with database.read() as reading:
        assert reading.execute(sa.select(tables.run_event.c.run_id).distinct()).scalars().all() == [young.run_id]


@pytest.mark.parametrize("stays", [{"pinned": True, "kept_until": PAST}, {"kept_until": LATER}])
def test_a_month_with_a_record_that_stays_loses_the_others_one_by_one(database, ended_in, change, look, stays):
    others = [ended_in(-3), ended_in(-3)]
    change(others[0], kept_until=PAST)
    change(others[1], **stays)
    before = places(database, others[1])
    (gone,) = removal.expire(database)
    assert (gone.run, gone.rows > 5) == (others[0].id, True)
    assert partitions.drop(database) == ()
    assert set().union(*places(database, others[0]).values()) == set()
    assert (look(others[1]).record.state, places(database, others[1])) == ("whole", before)


def test_a_month_with_an_unfinished_run_stays(database, month, submit, ended_in, change):
    change(ended_in(-3), kept_until=PAST)
    submit()
    list(removal.expire(database))
    assert partitions.drop(database) == ()
    assert months(database)[name_of(NOW - 3)] == ALL


def test_this_month_goes_one_by_one(database, ended_in, change):
    change(ended_in(0), kept_until=PAST)
    (gone,) = removal.expire(database)
    assert gone.rows > 5
    assert partitions.drop(database) == ()


def test_what_somebody_deleted_waits_for_no_month(database, ended_in, change, monkeypatch):
    monkeypatch.setattr(owner_changes, "AT_ONCE", 0)
    waits, run = ended_in(-3), ended_in(-3)
    change(waits, kept_until=PAST)
    list(removal.expire(database))
    with database.begin() as transaction:
        assert owner_changes.forget(transaction, run)
    assert removal.leftovers(database) == 1
    assert set().union(*places(database, run).values()) == set()
    assert places(database, waits)["record"]


def test_who_reads_is_waited_for_a_moment_and_the_end_is_finished_later(database, ended_in, change, monkeypatch):
    change(ended_in(-3), kept_until=PAST)
    list(removal.expire(database))
    with monkeypatch.context() as brief, database.begin() as reader:
        brief.setattr(partitions, "PATIENCE_MS", 1000)
        reader.execute(sa.select(tables.moment))  # locks it until the transaction ends
        assert partitions.drop(database) == ()
        assert tables_of(database, name_of(NOW - 3)) != set()
    partitions.drop(database)
    assert tables_of(database, name_of(NOW - 3)) == set()
    assert all(found == ALL for found in months(database).values())


@pytest.mark.parametrize("reads", [tables.record, tables.moment])
def test_a_run_of_a_month_whose_end_had_begun_keeps_its_record(database, ended_in, change, look, reads, monkeypatch):
    change(ended_in(-3), kept_until=PAST)
    list(removal.expire(database))
    with monkeypatch.context() as brief, database.begin() as reader:
        brief.setattr(partitions, "PATIENCE_MS", 1000)
        reader.execute(sa.select(reads))
        assert partitions.drop(database) == ()
    late = ended_in(-3)
    before = places(database, late)
    assert before["record"] == {f"record_{name_of(NOW - 3)}"}
    assert partitions.drop(database) == ()
    assert (places(database, late), months(database)[name_of(NOW - 3)]) == (before, ALL)
    change(late, kept_until=PAST)
    list(removal.expire(database))
    assert [row.name for row in partitions.drop(database)] == [name_of(NOW - 3)]


def test_a_run_that_is_being_submitted_holds_the_end_of_its_month_off(database, ended_in, change, claim, a_record):
    change(ended_in(-3), kept_until=PAST)
    list(removal.expire(database))
    with database.begin() as transaction:
        run = lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": ""}, entry="a.py"))
        assert partitions.drop(database) == ()
    assert partitions.drop(database) == ()
    held = claim()
    assert held.public_id == run.id
    assert completion.finish(database, held, completion.Ending(status="succeeded", exit_code=0), a_record, None)


def test_the_first_partition_goes_with_its_last_month(database, ended_in, change, postgres_url):
    runs_of = [ended_in(n) for n in (-4, -2)]
    with database.begin() as transaction:  # as the migration of a full database leaves it
        for name in ALL:
            first, oldest = f"{name}_{name_of(NOW - 2)}", f"{name}_{name_of(NOW - 4)}"
            for old in (first, oldest):
                transaction.execute(sa.text(f'alter table "{name}" detach partition "{old}"'))
            transaction.execute(sa.text(f'insert into "{first}" select * from "{oldest}"'))
            transaction.execute(sa.text(f'drop table "{oldest}"'))
            bound = ", ".join(str(NOW - n) for n in (4, 3, 2))
            transaction.execute(sa.text(f'alter table "{name}" attach partition "{first}" for values in ({bound})'))
    change(runs_of[0], kept_until=PAST)
    change(runs_of[1], kept_until=LATER)
    (gone,) = removal.expire(database)
    assert gone.rows > 5
    assert partitions.drop(database) == ()
    change(runs_of[1], kept_until=PAST)
    list(removal.expire(database))
    assert [partition.months for partition in partitions.drop(database)] == [(NOW - 4, NOW - 3, NOW - 2)]


def test_a_table_that_the_operator_took_out_stays_his(database, ended_in):
    ended_in(-3)
    name = f"tensor_{name_of(NOW - 3)}"
    with database.begin() as transaction:
        transaction.execute(sa.text(f'alter table tensor detach partition "{name}"'))
    partitions.drop(database)
    assert name in tables_of(database, name_of(NOW - 3))


def test_a_month_that_is_missing_is_said_and_made(database):
    def partition_check():
        return next(check for check in checks(database) if check.name == "partitions")

    assert partition_check().ok
    with database.begin() as transaction:
        for ahead in (1, 2):
            for name in ALL:
                transaction.execute(sa.text(f'drop table "{name}_{name_of(NOW + ahead)}"'))
    assert (partition_check().ok, "backprobe reaper" in partition_check().said) == (False, True)
    partitions.make_ahead(database)
    assert partition_check().ok
    assert {name: found for name, found in months(database).items() if found != ALL} == {}


def test_a_partition_is_like_its_parent(database):
    """Storage, checks and indices: what was made by the migration, by the reaper and by hand are alike."""
    with database.begin() as transaction:
        partitions.ensure(transaction, NOW - 9)
    ask = sa.text(
        "select a.attname, a.attstorage, a.attnotnull, (select count(*) from pg_index where indrelid = c.oid),"
        " (select count(*) from pg_constraint where conrelid = c.oid and contype = 'c') from pg_attribute a"
        " join pg_class c on c.oid = a.attrelid where c.relname = :name and attnum > 0 order by 1"
    )
    with database.read() as reading:
        for table in ALL:
            names = (table, f"{table}_{name_of(NOW)}", f"{table}_{name_of(NOW - 9)}")
            parent, first, late = (reading.execute(ask, {"name": name}).all() for name in names)
            assert parent == first == late
            assert parent


def test_questions_about_a_run_lock_its_month_only(database, ended_in, look):
    """Also of a statement that has been prepared, whose plan is no longer made for its values."""
    from store import queries

    run = [ended_in(ahead) for ahead in range(-6, 0)][-1]
    locked = sa.text("select relation::regclass::text from pg_locks where relation::regclass::text like 'tensor%'")
    with database.begin() as transaction:
        for _ in range(12):
            queries.tensors(transaction, run)
        found = set(transaction.execute(locked).scalars())
        months_locked = {name for name in found if name.removeprefix("tensor_")[:1].isdigit() and "_idx" not in name}
    assert {name for name in months_locked if not name.endswith("pkey")} == {f"tensor_{name_of(NOW - 1)}"}
