"""What has come of a run's record is shown while it goes on, on both databases; a dead attempt's never."""

from types import SimpleNamespace

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from backprobe import record as r
from store import queries, tables
from store.records import live_record, storage
from store.records.expiry.sweep import RECORD_TABLES
from store.records.live_record import LiveRecord
from store.runs import completion, lifecycle
from store.runs.reading import run_events

GOOD = completion.Ending(status="succeeded", exit_code=0)


def feed(writer, record, *, up_to=10**9, since=-1):
    """What a child sends of its record, in the order of its tables, between two moments."""
    if since < 0:
        writer.take("header", (record.header,))
    for table in r.TABLES:
        rows = [row for row in getattr(record, table) if since < (getattr(row, "moment", None) or 0) <= up_to]
        rows = rows or ([] if since >= 0 else [row for row in getattr(record, table) if not hasattr(row, "moment")])
        if rows:
            writer.take(table, rows)


@pytest.fixture
def show_run(database, look):
    """`show_run(run)`: its snapshots as (tensor, moment), its tensors' names, or None: it has no record to read."""

    def now(held):
        run = look(held)
        if run.key is None:
            return None
        with database.read() as reading:
            page = queries.snapshots(reading, run, limit=1000)
            tensors = queries.tensors(reading, run).items
        return [(row.tensor, row.moment) for row in page.items], [row.name for row in tensors]

    return now


@pytest.fixture
def held_claim(submit, claim):
    submit()
    return claim()


@pytest.fixture
def of_this_run(database):
    """`of_this_run(held)`: rows of all its record tables, counted by attempt."""

    def count(held):
        found = {}
        with database.read() as reading:
            for table in RECORD_TABLES:
                query = sa.select(table.c.attempt).where(table.c.run_id == held.run_id)
                for attempt in reading.execute(query).scalars():
                    found[attempt] = found.get(attempt, 0) + 1
        return found

    return count


def test_a_run_is_shown_as_it_comes_but_for_its_newest_moment(database, held_claim, show_run, look, a_record):
    assert show_run(held_claim) is None
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record, up_to=2)
    assert writer.flush() is not None
    assert show_run(held_claim) == ([(0, 0), (1, 1)], ["x", "w", "y"])
    now = look(held_claim)
    assert (now.record.live, now.record.attempt, now.record.state, now.status) == (True, 1, "none", "running")
    version = now.version
    assert (writer.flush(), look(held_claim).version) == (None, version)
    feed(writer, a_record, since=2)
    writer.take("snapshots", [msgspec.structs.replace(a_record.snapshots[0], moment=5)])
    writer.flush()
    assert show_run(held_claim)[0] == [(0, 0), (1, 1), (1, 4), (2, 2)]
    assert look(held_claim).version > version


def test_what_is_shown_is_what_the_record_says(database, held_claim, look, a_record):
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    writer.take("snapshots", [msgspec.structs.replace(a_record.snapshots[0], moment=5)])
    writer.flush()
    live = queries_of(database, look(held_claim))
    assert completion.finish(database, held_claim, GOOD, a_record, None, live=writer.written)
    assert live == queries_of(database, look(held_claim))


def queries_of(database, run):
    with database.read() as reading:
        return queries.snapshots(reading, run), [(row.name, row.line) for row in queries.tensors(reading, run).items]


def test_the_end_takes_the_place_of_what_was_shown(database, held_claim, look, of_this_run, a_record, same):
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    writer.flush()
    assert writer.written
    assert completion.finish(database, held_claim, GOOD, a_record, None, live=True)
    with database.read() as reading:
        assert same(storage.load(reading, held_claim.key), a_record) in ([], ["streams"])
    assert look(held_claim).record.live is False


@pytest.mark.parametrize("flush_rows", [1, 10_000])
def test_an_end_without_a_record_or_by_pieces_clears_it_too(
    database, held_claim, look, a_record, monkeypatch, flush_rows
):
    monkeypatch.setattr(completion, "FLUSH_ROWS", flush_rows)
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    writer.flush()
    record = a_record if flush_rows == 1 else None
    assert completion.finish(database, held_claim, GOOD, record, None, live=True)
    with database.read() as reading:
        assert (storage.load(reading, held_claim.key) is None) == (record is None)


def test_nothing_of_a_dead_attempt_is_visible_or_kept(
    database, submit, claim, change, show_run, look, of_this_run, a_record
):
    submit()
    dead = claim(lease_seconds=-1.0)
    writer = LiveRecord(database, dead)
    feed(writer, a_record, up_to=2)
    writer.flush()
    assert set(of_this_run(dead)) == {1}
    lifecycle.expire_leases(database)
    assert (show_run(dead), of_this_run(dead), look(dead).status) == (None, {}, "queued")
    change(dead, not_before="2020-01-01T00:00:00.000Z")
    fresh = claim(worker="w2")
    assert show_run(fresh) is None
    feed(writer, a_record, since=2)
    with pytest.raises(lifecycle.FencedOut):
        writer.flush()
    other = LiveRecord(database, fresh)
    feed(other, a_record, up_to=1)
    other.flush()
    assert set(of_this_run(fresh)) == {2}
    assert show_run(fresh) == ([(0, 0)], ["x", "w"])
    assert completion.finish(database, fresh, GOOD, a_record, None, live=other.written)
    assert set(of_this_run(fresh)) == {2}


def test_a_flush_whose_commit_was_in_doubt_is_made_again_and_shows_each_snapshot_once(
    database, held_claim, show_run, a_record, monkeypatch
):
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    committed = database.begin

    class Doubtful:
        """The transaction commits, and its answer is lost."""

        def __init__(self):
            self.inner = committed()

        def __enter__(self):
            return self.inner.__enter__()

        def __exit__(self, *error):
            self.inner.__exit__(*error)
            raise OperationalError("commit", {}, OSError("gone"))

    monkeypatch.setattr(database, "begin", Doubtful)
    with pytest.raises(OperationalError):
        writer.flush()  # the head's
    monkeypatch.undo()
    monkeypatch.setattr(writer._live, "_database", SimpleNamespace(begin=Doubtful))
    for _ in range(2):
        with pytest.raises(OperationalError):
            writer.flush()  # the snapshots'
    monkeypatch.undo()
    writer.take("snapshots", [msgspec.structs.replace(a_record.snapshots[0], moment=5)])
    writer.flush()
    assert show_run(held_claim)[0] == [(0, 0), (1, 1), (1, 4), (2, 2)]


def test_a_second_header_begins_anew(database, held_claim, show_run, of_this_run, a_record):
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    writer.flush()
    assert show_run(held_claim)[0] == [(0, 0), (1, 1), (2, 2)]
    feed(writer, a_record, up_to=1)
    writer.flush()
    assert show_run(held_claim) == ([(0, 0)], ["x", "w"])


def test_snapshots_that_refer_to_nothing_are_left_out(database, held_claim, show_run, a_record):
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    strange = [
        msgspec.structs.replace(a_record.snapshots[0], tensor=t, moment=m) for t, m in ((77, 1), (0, 3), (0, 99))
    ]
    writer.take("snapshots", strange)
    writer.flush()
    assert show_run(held_claim)[0] == [(0, 0), (0, 3), (1, 1), (1, 4), (2, 2)]


def test_more_rows_than_one_transaction_takes(database, held_claim, show_run, a_record, monkeypatch):
    monkeypatch.setattr(live_record, "ROWS", 2)
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    writer.flush()
    with database.read() as reading:
        assert len(reading.execute(sa.select(tables.moment)).all()) == 6


def test_how_far_it_has_come_is_an_event_now_and_then(database, held_claim, look, a_record, monkeypatch):
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    writer.flush()
    with database.read() as reading:
        assert "progress" not in {event.kind for event in run_events.since(reading, look(held_claim))}
    monkeypatch.setattr(live_record, "PROGRESS_SECONDS", 0.0)
    feed(writer, a_record)
    writer.flush()
    with database.read() as reading:
        *_, last = run_events.since(reading, look(held_claim))
    counts = {"tensors": 3, "moments": 6, "snapshots": 3, "backward_calls": 1, "steps": 0}
    assert (last.kind, last.attempt, dict(last.payload)) == ("progress", 1, counts)
    assert look(held_claim).ended is False


def test_what_was_printed_is_shown_as_it_comes(database, held_claim, look, a_record):
    writer = LiveRecord(database, held_claim)
    writer.take("output", [{"stdout": {"tail": "one", "total_bytes": 3}, "stderr": {"tail": "", "total_bytes": 0}}])
    feed(writer, a_record, up_to=2)
    writer.flush()
    version = look(held_claim).version
    writer.take(
        "output", [{"stdout": {"tail": "two", "total_bytes": 70_000}, "stderr": {"tail": "!", "total_bytes": 1}}]
    )
    assert writer.flush() is not None
    assert look(held_claim).version > version
    with database.read() as reading:
        streams = queries.streams(reading, look(held_claim))
    assert (streams.stdout.tail, streams.stdout.total_bytes, streams.stderr.tail) == ("two", 70_000, "!")


def test_progress_comes_sooner_while_a_run_is_young(database, held_claim, look, a_record, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(live_record, "time", SimpleNamespace(monotonic=lambda: now[0]))
    writer = LiveRecord(database, held_claim)
    feed(writer, a_record)
    seconds = []
    for second in (*range(1, 9), 300, 305, 309, 310, 320):
        now[0] = 100.0 + second
        feed(writer, a_record, since=0)
        writer.flush()
        with database.read() as reading:
            found = run_events.since(reading, look(held_claim))
        if sum(event.kind == "progress" for event in found) > len(seconds):
            seconds.append(second)
    assert seconds == [2, 4, 6, 8, 300, 310, 320]
