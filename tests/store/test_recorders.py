"""Watched runs: made by their recorder, sent frame by frame, ended once. On both databases."""

from __future__ import annotations

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import sqlalchemy as sa

from backprobe.record import batch_frames, encode, end_frame, frame_kind, header_frame
from store import tables
from store.access import shares, usage
from store.access.quotas import QuotaExceeded, Room, quotas
from store.database.ids import new_id, part
from store.findings import rejudging
from store.recorders import ending as recorder_end
from store.recorders import frames as recorder_frames
from store.recorders import recorders
from store.recorders import run_ids as recorder_ids
from store.recorders.ending import ReportedEnd
from store.recorders.recorder_requests import (
    Differs,
    Misplaced,
    Missing,
    Recording,
    RunEnded,
    SentFrame,
    TimeRefused,
    TooLarge,
    Unknown,
)
from store.records import storage
from store.runs import lifecycle
from store.runs.model import FencedOut
from tests.support.waiting import wait_until
from workers.upkeep import reaper as reaper_module
from workers.upkeep.reaper import Reaper

NOTHING = ReportedEnd()
DAY_MS = 86_400_000


@pytest.fixture
def begin(database):
    """`begin(id)`: make a watched run; its id."""

    def begin_run(public_id=None, **facts):
        public_id = public_id or new_id("run")
        asked = {"public_id": public_id, "asked": hashlib.sha256(b"x").digest(), "capture": {"tier": "full"}}
        asked |= {"environment": {"torch": "2.13.0"}, "labels": {"a": "b"}, "created_by": "local"}
        with database.begin() as transaction:
            recorders.begin(transaction, Recording(**asked | facts))
        return public_id

    return begin_run


@pytest.fixture
def send(database):
    """`send(run, n, frame)`: the number wanted next."""

    def to_sent_frame(run, n, body, **who):
        kind, rows = frame_kind(body)
        with database.begin() as transaction:
            return recorders.take(transaction, run, n, SentFrame(body=body, kind=kind, rows=rows), **who)

    return to_sent_frame


@pytest.fixture
def end(database):
    """`end(run, told)`: close and settle it."""

    def send_frames(run, told=NOTHING, **more):
        with database.begin() as transaction:
            claim = recorder_end.close(transaction, run, told, **more)
        return claim is not None and recorder_end.settle(database, claim)

    return send_frames


@pytest.fixture
def frames(a_record):
    return list(encode(a_record))


@pytest.fixture
def now(database):
    def read_row(run):
        with database.read() as reading:
            return lifecycle.get(reading, run)

    return read_row


def bodies(database, run):
    query = sa.select(tables.frame.c.body).join(tables.run, tables.run.c.id == tables.frame.c.run_id)
    with database.read() as reading:
        return reading.execute(query.where(tables.run.c.public_id == run)).scalars().all()


def test_what_a_recorder_sends_is_the_record_of_its_run(database, begin, send, end, frames, now, a_record, same):
    run = begin()
    assert (now(run).status, now(run).origin, now(run).attempt, now(run).labels) == (
        "running",
        "watched",
        1,
        {"a": "b"},
    )
    for n, body in enumerate(frames):
        assert send(run, n, body) == n + 1
    told = now(run)
    assert (told.recorder.next_frame, told.recorder.environment) == (len(frames), {"torch": "2.13.0"})
    assert told.record.bytes == sum(map(len, frames))
    assert end(run)
    told = now(run)
    assert (told.status, told.record.state, told.attempt, told.record.attempt) == ("succeeded", "whole", 1, 1)
    with database.read() as reading:
        assert same(storage.load(reading, told.key), a_record) in ([], ["streams"])
        assert [run.public_id for run in rejudging.due(reading)] == [run]
    assert bodies(database, run) == [None] * len(frames)
    assert end(run) is False


def test_a_frame_again_is_no_error_and_another_one_is(begin, send, end, frames):
    run = begin()
    for _ in range(2):
        assert send(run, 0, frames[0]) == 1
    assert send(run, 1, frames[1]) == 2
    assert send(run, 0, frames[0]) == 2
    with pytest.raises(Differs):
        send(run, 1, frames[2])
    end(run)
    assert send(run, 1, frames[1]) == 2
    for n, body in ((1, frames[2]), (2, frames[2])):
        with pytest.raises(RunEnded):
            send(run, n, body)


def test_frames_are_read_in_pieces_and_each_of_them_once(database, begin, send, frames):
    run = begin()
    for n, body in enumerate(frames):
        send(run, n, body)
    with database.read() as reading:
        number = reading.execute(sa.select(tables.run.c.id).where(tables.run.c.public_id == run)).scalar_one()
    whole = list(enumerate(frames))
    assert recorder_frames.bodies(database, number, 0) == whole
    assert recorder_frames.bodies(database, number, 1, most_frames=2) == whole[1:3]
    assert recorder_frames.bodies(database, number, 0, most_bytes=len(frames[0])) == whole[:1]
    assert recorder_frames.bodies(database, number, 0, most_bytes=len(frames[0]) + 1) == whole[:2]
    assert recorder_frames.bodies(database, number, len(frames)) == []


def test_a_gap_is_refused_with_the_number_wanted_and_nothing_is_lost(begin, send, end, frames, now):
    run = begin()
    send(run, 0, frames[0])
    with pytest.raises(Missing) as refused:
        send(run, 5, frames[1])
    assert refused.value.wanted == 1
    with pytest.raises(Missing) as refused:
        end(run, frames=len(frames))
    assert (refused.value.wanted, now(run).status) == (1, "running")
    for n, body in enumerate(frames):
        send(run, n, body)
    assert end(run, frames=len(frames))
    assert now(run).record.state == "whole"


def test_frames_stand_where_they_belong(begin, send, frames, a_record):
    run = begin()
    with pytest.raises(Misplaced) as refused:
        send(run, 0, frames[1])
    assert refused.value.code == "no-header"
    send(run, 0, frames[0])
    with pytest.raises(Misplaced) as refused:
        send(run, 1, frames[0])
    assert refused.value.code == "second-header"
    send(run, 1, end_frame(a_record.end))
    with pytest.raises(Misplaced) as refused:
        send(run, 2, frames[1])
    assert refused.value.code == "bytes-after-end"


@pytest.mark.parametrize("what", ["BYTES", "ROWS", "FRAMES"])
def test_a_run_has_so_many_bytes_rows_and_frames_at_most(begin, send, frames, monkeypatch, what):
    run = begin()
    send(run, 0, frames[0])
    rows = frame_kind(frames[1])[1]
    with_it = {"BYTES": len(frames[0]) + len(frames[1]), "ROWS": rows, "FRAMES": 2}[what]
    monkeypatch.setattr(recorders, f"MOST_{what}", with_it - 1)
    with pytest.raises(TooLarge, match=what.lower()):
        send(run, 1, frames[1])
    monkeypatch.setattr(recorders, f"MOST_{what}", with_it)
    assert send(run, 1, frames[1]) == 2


def test_the_same_request_makes_one_run_and_another_one_is_refused(begin, end, submit, now):
    run = begin()
    version = now(run).version
    begin(run)
    assert now(run).version == version
    with pytest.raises(Differs):
        begin(run, asked=hashlib.sha256(b"y").digest())
    with pytest.raises(Differs):
        begin(submit().id)
    end(run, ReportedEnd(status="succeeded"))
    with pytest.raises(RunEnded):
        begin(run)


def test_the_time_in_an_id_is_near_the_servers(begin, now):

    ms = time.time_ns() // 1_000_000
    for days in (-20, 0, 0.9):
        run = new_id("run", int(ms + days * DAY_MS))
        assert begin(run) == run
    for days in (-400, 1.1, 10_000):
        with pytest.raises(TimeRefused, match="the server's is 20"):
            begin(new_id("run", int(ms + days * DAY_MS)))
    assert recorder_ids.AHEAD_SECONDS == 86_400


def test_a_run_of_a_past_month_has_a_place_for_its_record(database, begin, send, end, frames, now):

    run = new_id("run", time.time_ns() // 1_000_000 - 31 * DAY_MS)
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.tenant).values(keep_days=90))
    begin(run)
    for n, body in enumerate(frames):
        send(run, n, body)
    assert end(run)
    assert now(run).key.part == part(run)
    with database.read() as reading:
        assert storage.load(reading, now(run).key) is not None


def test_nobody_else_sees_the_run(database, begin, send, end, frames):
    run = begin()
    for who in ({"tenant_id": 2}, {"sees_project": 2}):
        with pytest.raises(Unknown):
            send(run, 0, frames[0], **who)
        with pytest.raises(Unknown):
            end(run, **who)
        with pytest.raises(Unknown):
            begin(run, **who)


def test_who_sends_the_same_frame_at_the_same_time_is_told_the_same(begin, send, frames, now):
    run = begin()
    for n, body in enumerate(frames):
        together = threading.Barrier(4)

        def send_together(n=n, body=body, together=together):
            together.wait()
            return send(run, n, body)

        with ThreadPoolExecutor(4) as pool:
            assert [future.result() for future in [pool.submit(send_together) for _ in range(4)]] == [n + 1] * 4
    assert now(run).recorder.next_frame == len(frames)


def test_who_makes_the_same_run_at_the_same_time_is_told_the_same(database, begin):
    run, together = new_id("run"), threading.Barrier(4)

    def begin_together():
        together.wait()
        return begin(run)

    with ThreadPoolExecutor(4) as pool:
        assert {future.result() for future in [pool.submit(begin_together) for _ in range(4)]} == {run}
    with database.read() as reading:
        assert reading.execute(sa.select(sa.func.count()).select_from(tables.recorder)).scalar() == 1


def test_a_frame_at_the_time_of_the_end_is_in_the_record_or_refused(database, begin, send, end, a_record, now):
    for _ in range(6):
        run = begin()
        send(run, 0, header_frame(a_record.header))
        (source,) = batch_frames("sources", a_record.sources)
        together = threading.Barrier(2)

        def frame(run=run, source=source, together=together):
            together.wait()
            try:
                return send(run, 1, source)
            except RunEnded:
                return None

        def end_together(run=run, together=together):
            together.wait()
            return end(run, ReportedEnd(status="succeeded"))

        with ThreadPoolExecutor(2) as pool:
            taken, ended = pool.submit(frame), pool.submit(end_together)
            assert ended.result()
        with database.read() as reading:
            assert (len(storage.load(reading, now(run).key).sources) == 1) == (taken.result() is not None)


def test_an_end_is_written_by_one_and_taken_over_when_that_one_is_gone(database, begin, send, frames, now, change):
    run = begin()
    for n, body in enumerate(frames):
        send(run, n, body)
    with database.begin() as transaction:
        first = recorder_end.close(transaction, run, ReportedEnd())
    with pytest.raises(recorder_end.BeingEnded), database.begin() as transaction:
        recorder_end.close(transaction, run, ReportedEnd())
    with pytest.raises(RunEnded):
        send(run, len(frames), frames[1])
    assert recorder_end.overdue(database) == []
    change(now(run), lease_until=tables.Now(-1.0))
    assert recorder_end.overdue(database) == [recorder_end.Overdue(run, 1, was_told=True)]
    assert recorder_end.end_overdue(database, recorder_end.Overdue(run, 1, was_told=False))
    told = now(run)
    assert (told.status, told.record.state, told.attempt) == ("succeeded", "whole", 2)
    assert recorder_end.settle(database, first) is False
    assert now(run) == told


def test_an_end_that_fails_is_free_at_once(database, begin, send, frames, now, monkeypatch):
    run = begin()
    for n, body in enumerate(frames):
        send(run, n, body)
    with database.begin() as transaction:
        claim = recorder_end.close(transaction, run, ReportedEnd())
    with monkeypatch.context() as patched:
        patched.setattr(recorder_frames, "MOST_WEIGHT", "broken")
        with pytest.raises(TypeError):
            recorder_end.settle(database, claim)
    assert now(run).status == "running"
    assert recorder_end.end_overdue(database, recorder_end.Overdue(run, 1, was_told=False))
    assert (now(run).status, now(run).record.state) == ("succeeded", "whole")


@pytest.fixture
def reaper(database, tmp_path):
    return Reaper(database, tmp_path, lambda _queue: None)


def test_silence_ends_as_lost_and_keeps_what_had_come(database, begin, send, frames, now, change, reaper):
    run = begin()
    for n, body in enumerate(frames[:-1]):
        send(run, n, body)
    reaper.round()
    assert now(run).status == "running"
    change(now(run), lease_until=tables.Now(-1.0))
    assert lifecycle.expire_leases(database).lost == ()
    reaper.round()
    told = now(run)
    assert (told.status, told.error.code, told.error.whose) == ("lost", "recorder-silent", "ours")
    assert (
        told.error.message
        == f"the last heartbeat of its recorder was at {told.recorder.heard_at}; the record holds what had arrived"
    )
    assert (told.record.state, told.record.tensors) == ("partial", 3)


def test_an_end_that_is_handed_over_is_written_by_the_reaper_as_it_was_told(
    database, begin, send, frames, now, reaper, caplog
):
    run = begin()
    for n, body in enumerate(frames[:-1]):
        send(run, n, body)

    def hand_over(told, **more):
        with database.begin() as transaction:
            return recorder_end.hand_over(transaction, run, told, **more)

    with pytest.raises(Missing):
        hand_over(NOTHING, frames=len(frames))
    assert hand_over(ReportedEnd(status="canceled"), frames=len(frames) - 1)
    assert not hand_over(ReportedEnd(status="succeeded")), "what was told first holds"
    with pytest.raises(RunEnded):
        send(run, len(frames) - 1, frames[-1])
    assert now(run).status == "running"
    reaper.round()
    assert (now(run).status, now(run).record.state) == ("canceled", "partial")
    assert "silent" not in caplog.text
    assert not hand_over(NOTHING)


def test_ends_that_come_all_at_once_are_written_one_round_after_the_other(database, begin, now, reaper, monkeypatch):
    monkeypatch.setattr(reaper_module, "TURN_SECONDS", 3600.0)
    monkeypatch.setattr(reaper_module, "ENDING_SECONDS", 0.0)
    runs = [begin() for _ in range(4)]
    for run in runs:
        with database.begin() as transaction:
            recorder_end.hand_over(transaction, run, ReportedEnd(status="canceled"))
    stop = threading.Event()
    serving = threading.Thread(target=reaper.serve, args=(stop,))
    serving.start()
    wait_until(lambda: not any(now(run).status == "running" for run in runs), "none runs any more", 30)
    stop.set()
    serving.join()
    assert {now(run).status for run in runs} == {"canceled"}


def test_a_frame_keeps_its_run_for_another_day(database, begin, send, frames, now, change):
    run = begin()
    change(now(run), lease_until=tables.Now(-1.0))
    send(run, 0, frames[0])
    assert recorder_end.overdue(database) == []


def test_a_cancel_ends_it_with_what_had_come_and_takes_no_more(database, begin, send, frames, now, reaper):
    run = begin()
    for n, body in enumerate(frames[:-1]):
        send(run, n, body)
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, run)
    with pytest.raises(RunEnded):
        send(run, len(frames) - 1, frames[-1])
    threading.Event().wait(0.005)  # of the clock that a lease is measured by
    reaper.round()
    told = now(run)
    assert (told.status, told.error.whose, told.record.state) == ("canceled", "asked", "partial")


def test_a_run_without_a_frame_ends_too(begin, end, now):
    for told, status in (
        (ReportedEnd(), "failed"),
        (ReportedEnd(status="succeeded"), "succeeded"),
        (ReportedEnd(status="canceled"), "canceled"),
    ):
        run = begin()
        assert end(run, told)
        assert (now(run).status, now(run).record.state) == (status, "none")


def test_what_the_recorder_tells_wins_over_the_record(begin, send, end, frames, now):
    run = begin()
    for n, body in enumerate(frames):
        send(run, n, body)
    error = {"type": "OutOfMemoryError", "message": "CUDA out of memory", "path": "train.py", "line": 7}
    end(run, ReportedEnd(status="failed", exit_code=1, wall_seconds=12.5, error=error))
    told = now(run)
    assert (told.status, told.outcome.exit_code, told.outcome.wall_seconds) == ("failed", 1, 12.5)
    assert (told.error.code, told.error.type, told.error.line) == ("raised", "OutOfMemoryError", 7)


def test_frames_that_make_no_record_end_as_failed_with_the_reason(begin, send, end, a_record, now):
    run = begin()
    send(run, 0, header_frame(a_record.header))
    (lost,) = batch_frames("sites", [msgspec.structs.replace(a_record.sites[0], source=9)])
    send(run, 1, lost)
    assert end(run, ReportedEnd(status="succeeded"))
    told = now(run)
    assert (told.status, told.error.code, told.record.state, told.record.bytes) == ("failed", "bad-record", "none", 0)
    assert "source" in told.error.message


def test_recorders_are_no_workers(database, begin, submit, claim):
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.tenant).values(max_running=1))
    begin()
    with database.read() as reading:
        assert {quota.name: quota.used for quota in quotas(reading)}["running"] == 0
        assert [queue.running for queue in usage.queues(reading)] == [0, 0]
    submit()
    assert claim() is not None


def test_frames_count_in_the_quota_of_stored_bytes(database, begin, send, frames):
    run = begin()
    with database.begin() as transaction:
        stored = sum(shares.stored_bytes_by_kind(transaction).values())
        transaction.execute(sa.update(tables.tenant).values(max_record_bytes=stored + len(frames[0])))
    with database.read() as reading:
        Room().demand(reading)
    send(run, 0, frames[0])
    with database.read() as reading, pytest.raises(QuotaExceeded):
        Room().demand(reading)


def test_a_tenant_has_so_many_recorders_at_a_time(begin, end, monkeypatch):
    monkeypatch.setattr(recorders, "MOST_OPEN", 1)
    run = begin()
    with pytest.raises(QuotaExceeded, match="recorders"):
        begin()
    end(run)
    begin()


def test_bytes_that_a_crash_left_go_and_hashes_after_a_day(
    database, begin, send, end, frames, now, change, monkeypatch
):
    run = begin()
    for n, body in enumerate(frames):
        send(run, n, body)
    monkeypatch.setattr(recorder_end, "drop_bodies", lambda *_: None)
    end(run)
    assert None not in bodies(database, run)
    monkeypatch.setattr(recorder_frames, "PIECE_BYTES", 1)
    assert recorder_frames.drop_left(database) == 0
    assert set(bodies(database, run)) == {None}
    change(now(run), finished_at="2020-01-01T00:00:00.000Z")
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.frame).values(at="2020-01-01T00:00:00.000Z"))
    assert recorder_frames.drop_left(database) == len(frames)


def test_a_cut_of_the_sender_is_resumed_where_the_service_says(begin, send, frames, now):
    run = begin()
    send(run, 0, frames[0])
    for n in range(now(run).recorder.next_frame, len(frames)):
        assert send(run, n, frames[n]) == n + 1


def test_a_stale_writer_of_an_end_writes_nothing(database, begin, send, frames, now, change):
    run = begin()
    send(run, 0, frames[0])
    with database.begin() as transaction:
        stale = recorder_end.close(transaction, run, ReportedEnd(status="succeeded"))
    change(now(run), lease_until=tables.Now(-1.0))
    with database.begin() as transaction:
        fresh = recorder_end.close(transaction, run, ReportedEnd(status="failed"))
    assert fresh.attempt == 2
    with pytest.raises(FencedOut):
        lifecycle.heartbeat(database, stale)
    assert recorder_end.settle(database, fresh)
    assert now(run).status == "succeeded"  # what was told first
