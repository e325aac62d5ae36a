"""Records past their time go, bit by bit; runs and findings stay; on both databases."""

import pytest
import sqlalchemy as sa

from store import tables
from store.access import shares, tenants
from store.findings import findings
from store.records.expiry import removal
from store.records.expiry.sweep import RECORD_TABLES
from store.runs import completion, expiry, snippets

PAST = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def count_left(database):
    """`count_left(run)`: rows of its record, and of its events."""

    def count(run):
        with database.read() as reading:
            return sum(
                reading.execute(
                    sa.select(sa.func.count()).select_from(table).where(table.c.run_id == run.run_id)
                ).scalar()
                for table in (*RECORD_TABLES, tables.run_event)
            )

    return count


def expired(database, **asked):
    return [row.run for row in removal.expire(database, **asked)]


def test_a_record_past_its_time_goes_and_its_run_and_findings_stay(
    database, ended_run, change, look, count_left, a_judgement
):
    old, young = ended_run(judgement=a_judgement), ended_run(judgement=a_judgement)
    change(old, kept_until=PAST)
    before = count_left(young)
    assert expired(database) == [old.id]
    now = look(old)
    assert (now.record.state, now.status, now.findings.error, count_left(old)) == ("expired", "succeeded", 1, 0)
    assert now.version > old.version
    with database.read() as reading:
        assert len(findings.page(reading, now).items) == 3
    assert (look(young).record.state, count_left(young)) == ("whole", before)
    assert expired(database) == []


def test_pinned_and_unfinished_runs_are_never_touched(database, submit, claim, ended_run, change, count_left):
    pinned = ended_run()
    change(pinned, kept_until=PAST, pinned=True)
    running = submit()
    claim()
    change(running, kept_until=PAST, record_state="partial")
    assert expired(database) == []
    assert count_left(pinned) > 0


def test_the_longest_overdue_go_first_and_only_so_many(database, ended_run, change):
    ids = [ended_run() for _ in range(3)]
    for run, year in zip(ids, (2022, 2020, 2021), strict=True):
        change(run, kept_until=f"{year}-01-01T00:00:00.000Z")
    assert expired(database, limit=2) == [ids[1].id, ids[2].id]


def test_many_rows_go_in_pieces(database, ended_run, change, count_left, monkeypatch):
    monkeypatch.setattr(removal, "ROWS", 1)
    run = ended_run()
    change(run, kept_until=PAST)
    rows = count_left(run)
    (gone,) = removal.expire(database)
    assert (count_left(run), gone.rows) == (0, rows - 3)  # its three events are no record


def test_what_a_crash_left_is_finished_and_never_shown(database, ended_run, change, look, count_left, monkeypatch):
    run = ended_run()
    change(run, kept_until=PAST)
    real = removal._empty_table

    def dies(database, table, key):
        if table.name == "record":
            raise OSError("killed")
        return real(database, table, key)

    monkeypatch.setattr(removal, "_empty_table", dies)
    with pytest.raises(OSError, match="killed"):
        expired(database)
    monkeypatch.undo()
    assert (look(run).record.state, count_left(run) > 0) == ("expired", True)
    assert removal.leftovers(database) == 1
    assert (count_left(run), removal.leftovers(database)) == (0, 0)


def used_bytes(database):
    with database.read() as reading:
        return shares.used_bytes(reading)


def test_a_database_near_its_cap_loses_the_oldest_records_of_who_has_too_much(database, ended_run, look, count_left):
    old, young = ended_run(), ended_run()
    used = used_bytes(database)
    assert list(removal.shrink(database, 2 * used)) == []
    gone = [row.run for row in removal.shrink(database, 1, limit=1)]
    assert (gone, look(young).record.state, count_left(old)) == ([old.id], "whole", 0)
    assert look(old).record_gone == "database-full"
    assert [row.run for row in removal.shrink(database, 1)] == [young.id]
    if not database.sqlite:
        assert used_bytes(database) < used
        return
    free = sa.text("PRAGMA freelist_count")
    removal.give_back_pages(database)
    with database.read() as reading:
        assert reading.execute(free).scalar() == 0
        assert reading.execute(sa.text("PRAGMA auto_vacuum")).scalar() == 2


def test_a_record_of_who_has_its_share_is_never_dropped_for_another(
    database, ended_run, submit, claim, a_record, look, tenant
):
    """The other one's records go, then the programs that it never ran, and then nothing."""
    mine = ended_run()
    with database.read() as reading:
        project = tenants.first_project(reading, tenant)
    submit(tenant_id=tenant, project_id=project)
    theirs = claim()
    assert completion.finish(database, theirs, completion.Ending(status="succeeded", exit_code=0), a_record, None)
    most = int(used_bytes(database) * 1.08)  # so far nobody has too much
    assert list(removal.shrink(database, most)) == []
    with database.begin() as transaction:
        for n in range(3):
            text = {"a.py": f"x = {n}\n" + "#" * 300_000}
            snippets.keep(transaction, text, "a.py", tenant_id=tenant)
    assert [row.run for row in removal.shrink(database, most)] == [theirs.public_id]
    assert (look(mine).record.state, programs(database)) == ("whole", 2)
    assert list(removal.shrink(database, most)) == []
    assert [row.run for row in removal.shrink(database, 1)] == [mine.id]  # nobody has a share of nothing


@pytest.fixture
def tenant(database):
    with database.begin() as transaction:
        return tenants.create(transaction, "other")


def programs(database):
    with database.read() as reading:
        return reading.execute(sa.select(sa.func.count()).select_from(tables.snippet_file)).scalar()


def due(database):
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.snippet).values(kept_until=PAST))


def test_a_program_that_nobody_ran_goes_after_its_time_and_not_before(database, submit):
    with database.begin() as transaction:
        kept = snippets.keep(transaction, {"a.py": "x = 1\n"}, "a.py")
    assert (snippets.expire_unused(database), programs(database)) == (0, 1)
    due(database)
    assert (snippets.expire_unused(database), programs(database)) == (1, 0)
    with database.read() as reading:
        assert snippets.get(reading, snippets.Scope(), kept.id) is None
        assert shares.stored_bytes_by_kind(reading).get("programs", 0) == 0
    with database.begin() as transaction:
        again = snippets.keep(transaction, {"a.py": "x = 1\n"}, "a.py")
    assert again.fresh


def test_a_program_goes_with_the_record_of_its_last_run(database, submit, claim, ended_run, change, look):
    run = ended_run()
    waiting = submit()
    due(database)
    assert (snippets.expire_unused(database), programs(database)) == (0, 1)
    change(run, kept_until=PAST)
    assert expired(database) == [run.id]
    assert snippets.expire_unused(database) == 0  # the other one waits for it
    with database.begin() as transaction:
        expiry.request_cancel(transaction, waiting.id)
    due(database)
    assert snippets.expire_unused(database) == 0  # it could be run again for as long as its record would be kept
    change(waiting, kept_until=PAST)
    due(database)
    assert (snippets.expire_unused(database), programs(database)) == (1, 0)
    assert (look(run).snippet, look(run).record_gone) == (run.snippet, "kept-until")
    due(database)
    assert snippets.expire_unused(database) == 1  # its files have gone; it is asked after no more
    assert claim() is None
    again = submit()
    assert (again.snippet, programs(database)) == (run.snippet, 1)
    assert claim().files == {"train.py": "x = 1\n"}


def test_a_record_that_expires_takes_its_program_with_it(database, ended_run, change):
    run = ended_run()
    change(run, kept_until=PAST)
    list(removal.expire(database))
    assert (snippets.expire_unused(database), programs(database)) == (1, 0)


def test_events_that_left_long_ago_go_with_their_tries(database, ended_run):
    with database.begin() as transaction:
        values = {"event_id": "e", "tenant_id": 1, "kind": "run.ended", "subject": "r", "body": {}, "created_at": PAST}
        transaction.execute(sa.insert(tables.outbox).values(values | {"planned_at": PAST}))
        transaction.execute(sa.insert(tables.outbox).values(values | {"event_id": "f"}))
    assert (removal.drop_sent(database), removal.drop_sent(database)) == (1, 0)
    with database.read() as reading:
        assert reading.execute(sa.select(tables.outbox.c.event_id)).scalars().all() == ["f"]
