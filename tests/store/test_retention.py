"""Records past their time go, bit by bit; runs and findings stay; on both databases."""

import pytest
import sqlalchemy as sa

from store import tables
from store.judged import findings
from store.record import retention
from store.record.sweep import RECORD_TABLES

PAST = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def left(database):
    """`left(run)`: rows of its record, and of its events."""

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
    return [one.run for one in retention.expire(database, **asked)]


def test_a_record_past_its_time_goes_and_its_run_and_findings_stay(database, ended, change, look, left, a_judgement):
    old, young = ended(judgement=a_judgement), ended(judgement=a_judgement)
    change(old, kept_until=PAST)
    before = left(young)
    assert expired(database) == [old.id]
    now = look(old)
    assert (now.record.state, now.status, now.findings.error, left(old)) == ("expired", "succeeded", 1, 0)
    assert now.version > old.version
    with database.read() as reading:
        assert len(findings.page(reading, now).items) == 3
    assert (look(young).record.state, left(young)) == ("whole", before)
    assert expired(database) == []


def test_pinned_and_unfinished_runs_are_never_touched(database, submit, claim, ended, change, left):
    pinned = ended()
    change(pinned, kept_until=PAST, pinned=True)
    running = submit()
    claim()
    change(running, kept_until=PAST, record_state="partial")
    assert expired(database) == []
    assert left(pinned) > 0


def test_the_longest_overdue_go_first_and_only_so_many(database, ended, change):
    ids = [ended() for _ in range(3)]
    for run, year in zip(ids, (2022, 2020, 2021), strict=True):
        change(run, kept_until=f"{year}-01-01T00:00:00.000Z")
    assert expired(database, limit=2) == [ids[1].id, ids[2].id]


def test_many_rows_go_in_pieces(database, ended, change, left, monkeypatch):
    monkeypatch.setattr(retention, "ROWS", 1)
    run = ended()
    change(run, kept_until=PAST)
    rows = left(run)
    (gone,) = retention.expire(database)
    assert (left(run), gone.rows) == (0, rows - 3)  # its three events are no record


def test_what_a_crash_left_is_finished_and_never_shown(database, ended, change, look, left, monkeypatch):
    run = ended()
    change(run, kept_until=PAST)
    real = retention._emptied

    def dies(database, table, key):
        if table.name == "record":
            raise OSError("killed")
        return real(database, table, key)

    monkeypatch.setattr(retention, "_emptied", dies)
    with pytest.raises(OSError, match="killed"):
        expired(database)
    monkeypatch.undo()
    assert (look(run).record.state, left(run) > 0) == ("expired", True)
    assert retention.leftovers(database) == 1
    assert (left(run), retention.leftovers(database)) == (0, 0)


def test_a_database_over_its_cap_loses_its_oldest_records(database, ended, look, left):
    if not database.sqlite:
        return  # a cap of bytes is for one file on one disk; PostgreSQL's operator has quotas and tablespaces
    old, young = ended(), ended()
    used = retention.used_bytes(database)
    assert list(retention.shrink(database, used)) == []
    gone = [one.run for one in retention.shrink(database, 1, limit=1)]
    assert (gone, look(young).record.state) == ([old.id], "whole")
    assert [one.run for one in retention.shrink(database, 1)] == [young.id]
    free = sa.text("PRAGMA freelist_count")
    retention.give_back_pages(database)
    with database.read() as reading:
        assert reading.execute(free).scalar() == 0
        assert reading.execute(sa.text("PRAGMA auto_vacuum")).scalar() == 2


def test_events_that_left_long_ago_go_with_their_tries(database, ended):
    with database.begin() as transaction:
        values = {"event_id": "e", "tenant_id": 1, "kind": "run.ended", "subject": "r", "body": {}, "created_at": PAST}
        transaction.execute(sa.insert(tables.outbox).values(values | {"planned_at": PAST}))
        transaction.execute(sa.insert(tables.outbox).values(values | {"event_id": "f"}))
    assert (retention.drop_sent(database), retention.drop_sent(database)) == (1, 0)
    with database.read() as reading:
        assert reading.execute(sa.select(tables.outbox.c.event_id)).scalars().all() == ["f"]
