"""What a recorder has sent is shown while its run goes on, on both databases; its end takes the place of that."""

import hashlib
import itertools

import pytest
import sqlalchemy as sa

from backprobe.record import TABLES, batch_frames, encode, frame_kind, header_frame
from store import queries, tables
from store.access import tenants
from store.database.ids import new_id
from store.recorders import ending, judging, live_view, recorders
from store.recorders.live_view import Views
from store.recorders.recorder_requests import Recording, SentFrame
from store.records import storage
from store.runs import lifecycle
from workers.upkeep.reaper import Reaper

ALL = 60.0


@pytest.fixture
def begin_watched(database):
    """`begin_watched(frames)`: a watched run that has sent these; `tenant_id` and `project_id`: of another tenant."""

    def begin_one(frames, **whose):
        public_id = new_id("run")
        asked = Recording(
            public_id=public_id, asked=hashlib.sha256(b"x").digest(), capture={"tier": "full"}, environment={}, labels={},
            created_by="local", **whose,
        )  # fmt: skip
        with database.begin() as transaction:
            recorders.begin(transaction, asked)
        send_frames(database, public_id, frames, tenant_id=asked.tenant_id)
        return public_id

    return begin_one


def send_frames(database, run, frames, first=0, tenant_id=1):
    for n, body in enumerate(frames, first):
        kind, rows = frame_kind(body)
        with database.begin() as transaction:
            recorders.take(transaction, run, n, SentFrame(body=body, kind=kind, rows=rows), tenant_id=tenant_id)


@pytest.fixture
def frames(a_record):
    return list(encode(a_record))


@pytest.fixture
def show_run(database):
    """`show_run(run)`: names of its tensors and how many snapshots can be read; None: nothing."""

    def now(public_id, tenant_id=1):
        with database.read() as reading:
            run = lifecycle.get(reading, public_id, tenant_id=tenant_id)
            if run.key is None:
                return None
            names = [row.name for row in queries.tensors(reading, run).items]
            return names, len(queries.snapshots(reading, run, limit=1000).items)

    return now


def close(database, run, told=None, **more):
    with database.begin() as transaction:
        return ending.close(transaction, run, told or ending.ReportedEnd(), **more)


def test_what_has_come_is_shown_and_the_end_has_all_of_it_once(
    database, begin_watched, frames, show_run, a_record, same
):
    run, views = begin_watched(frames[:1]), Views(database)
    views.turn(ALL)
    assert show_run(run) in (None, ([], 0))
    send_frames(database, run, frames[1:-1], 1)
    views.turn(ALL)
    names, snapshots = show_run(run)
    assert len(names) == len(a_record.tensors)
    last = max(row.moment for row in a_record.snapshots)
    assert snapshots == sum(row.moment < last for row in a_record.snapshots)
    with database.read() as reading:
        assert lifecycle.get(reading, run).record.live
    views.turn(ALL)
    assert show_run(run) == (names, snapshots)
    send_frames(database, run, frames[-1:], len(frames) - 1)
    assert ending.settle(database, close(database, run))
    with database.read() as reading:
        told = lifecycle.get(reading, run)
        assert (told.record.live, told.record.state) == (False, "whole")
        assert same(storage.load(reading, told.key), a_record) in ([], ["streams"])
    views.turn(ALL)
    assert show_run(run)[1] == len(a_record.snapshots)


def test_another_process_shows_it_anew_and_doubles_nothing(database, begin_watched, show_run, a_record):
    tables_ = [(name, getattr(a_record, name)) for name in TABLES if name != "snapshots"]
    rest = [body for name, rows in tables_ if rows for body in batch_frames(name, rows)]
    moments = sorted({row.moment for row in a_record.snapshots})
    of = [[row for row in a_record.snapshots if row.moment == moment] for moment in moments]
    run, views = begin_watched([header_frame(a_record.header), *rest]), Views(database)
    count = 1 + len(rest)
    for rows in of:  # a chunk of each moment
        bodies = list(batch_frames("snapshots", rows))
        send_frames(database, run, bodies, count)
        count += len(bodies)
        views.turn(ALL)
    before = show_run(run)
    assert before[1] > 0
    Views(database).turn(ALL)
    assert show_run(run) == before
    chunk = tables.snapshot_chunk.c
    with database.read() as reading:
        places = reading.execute(sa.select(chunk.tensor, chunk.first_moment, chunk.last_moment)).all()
    for place, following in itertools.pairwise(sorted(tuple(row) for row in places)):
        assert place[0] != following[0] or place[2] < following[1], (
            place,
            following,
        )  # chunks of a tensor do not overlap


def test_the_reaper_shows_them(database, begin_watched, frames, show_run, tmp_path):
    run = begin_watched(frames[:-1])
    Reaper(database, tmp_path, lambda _: None).round()
    assert show_run(run)[1] > 0


def test_once_the_end_is_begun_nothing_more_is_shown(database, begin_watched, frames, show_run):
    run, views = begin_watched(frames[:2]), Views(database)
    views.turn(ALL)
    send_frames(database, run, frames[2:], 2)
    with database.read() as reading:
        rows = reading.execute(live_view._OPEN).all()
    claim = close(database, run)
    views._show(rows[0], ALL)  # it had looked before the end was begun
    assert rows[0].id not in views._open
    with database.read() as reading:
        lease = reading.execute(sa.select(tables.run.c.lease_owner)).scalar_one()
    assert lease.startswith("ending ")
    assert ending.settle(database, claim)


def test_what_is_shown_keeps_no_silent_or_canceled_recorder_alive(database, begin_watched, frames):
    run = begin_watched(frames[:1])
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.run).values(lease_until="2026-01-01T00:00:00.000Z"))
    Views(database).turn(ALL)
    assert [run.public_id for run in ending.overdue(database)] == [run]
    send_frames(database, run, frames[1:-1], 1)
    views = Views(database)
    views.turn(ALL)
    assert ending.overdue(database) == []  # nor does it end one
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, run)
    views.turn(ALL)
    (late,) = ending.overdue(database)
    assert late.public_id == run
    assert ending.end_overdue(database, late)
    with database.read() as reading:
        assert lifecycle.get(reading, run).status == "canceled"


def test_a_recorder_that_would_fill_the_memory_is_shown_no_further_and_others_are(
    database, begin_watched, frames, show_run, monkeypatch, caplog
):
    monkeypatch.setattr(live_view, "MOST_HELD", 3)
    monkeypatch.setattr(live_view, "PIECE_FRAMES", 2)
    views, run = Views(database), begin_watched(frames[:-1])
    views.turn(ALL)
    assert "no more of" in caplog.text
    assert run in caplog.text
    monkeypatch.setattr(live_view, "MOST_HELD", 50_000)
    two = begin_watched(frames[:-1])
    views.turn(ALL)
    assert show_run(two)[1] > (show_run(run) or ([], 0))[1]
    assert ending.settle(database, close(database, run))
    with database.read() as reading:
        assert lifecycle.get(reading, run).record.state in {"whole", "partial"}


def test_frames_that_fit_no_column_stop_the_view_and_not_the_others(
    database, begin_watched, frames, show_run, monkeypatch
):
    broken, whole = begin_watched(frames[:-1]), begin_watched(frames[:-1])
    flush = live_view.LiveRecord.flush

    def failing(self):
        if self._claim.public_id == broken:
            raise ValueError("it does not fit")
        return flush(self)

    monkeypatch.setattr(live_view.LiveRecord, "flush", failing)
    views = Views(database)
    views.turn(ALL)
    assert show_run(whole)[1] > 0
    monkeypatch.setattr(live_view.LiveRecord, "flush", flush)
    views.turn(ALL)
    assert show_run(broken) is None


def test_only_the_runs_heard_of_last_are_shown_and_a_turn_ends_in_time(database, begin_watched, frames, show_run):
    made = [begin_watched(frames[:-1]) for _ in range(live_view.MOST_SHOWN + 1)]
    views = Views(database)
    views.turn(0.0)
    assert len(views._open) == 1
    views.turn(ALL)
    assert [show_run(run) is None for run in made] == [True] + [False] * live_view.MOST_SHOWN
    send_frames(database, made[0], frames[-1:], len(frames) - 1)
    views.turn(ALL)
    assert show_run(made[0])[1] > 0
    assert len(views._open) == live_view.MOST_SHOWN


@pytest.fixture
def other_recording(database):
    """Whose a run of another tenant is, as `Recording` takes it."""
    with database.begin() as transaction:
        number = tenants.create(transaction, "other")
        return {"tenant_id": number, "project_id": tenants.first_project(transaction, number)}


def test_however_many_recorders_one_tenant_has_another_s_run_is_shown_and_judged(
    database, begin_watched, frames, show_run, other_recording
):
    theirs = begin_watched(frames[:-1], **other_recording)
    for _ in range(max(live_view.MOST_SHOWN, judging.MOST_OPEN)):
        begin_watched(frames[:-1])  # each with a later heartbeat
    Views(database).turn(ALL)
    assert show_run(theirs, other_recording["tenant_id"])[1] > 0
    assert theirs in {open_run.claim.public_id for open_run in judging.open_runs(database)}


def test_a_run_that_takes_all_of_a_turn_does_not_take_the_next(database, begin_watched, frames, monkeypatch):
    monkeypatch.setattr(live_view, "PIECE_FRAMES", 2)
    for _ in range(2):
        begin_watched(frames[:-1])
    assert len(frames) - 1 > 2 * live_view.PIECE_FRAMES, "one turn of no time does not decode all of a run"
    views = Views(database)
    views.turn(0.0)
    assert len(views._open) == 1
    views.turn(0.0)
    assert len(views._open) == 2
