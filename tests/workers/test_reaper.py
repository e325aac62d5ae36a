"""The reaper's round, in this process, on both databases: what is due is done, and one duty's failure stops no other."""

import datetime
import threading

import pytest
import sqlalchemy as sa

from backprobe.rules import RuleTooSlow
from store import tables
from store.access import idempotency, shares, tenants
from store.audits import audits
from store.database.ids import new_id
from store.database.session import Database
from store.runs import completion, lifecycle, snippets
from store.webhooks import digest, outbox
from store.webhooks.destination import Allowed
from tests.store.small_record import a_record
from tests.support.waiting import wait_until
from workers.upkeep import reaper as reapers
from workers.upkeep.leader import Leadership
from workers.upkeep.reaper import Reaper
from workers.upkeep.sender import Sender

__all__ = ["a_record"]


@pytest.fixture
def reaper(database, tmp_path):
    return Reaper(database, tmp_path, lambda _: None)


@pytest.fixture
def waiting(database):
    """An event that a webhook wants, and an idempotency key that has expired beside one that has not."""
    values = {"public_id": new_id("wh"), "tenant_id": 1, "url": "https://example.org", "events": ["run.ended"]}
    values |= {"secret": b"s", "enabled": True, "failures": 0, "created_at": tables.Now(), "version": 1}
    with database.begin() as transaction:
        transaction.execute(sa.insert(tables.webhook).values(values))
        outbox.enqueue(transaction, "run.ended", "run_1", {})
        idempotency.begin(transaction, "old", b"1", keep_seconds=-1)
        idempotency.begin(transaction, "new", b"1")


def column(database, selected):
    with database.read() as reading:
        return reading.execute(sa.select(selected)).scalars().all()


def test_a_round_plans_deliveries_and_drops_keys_that_have_expired(database, reaper, waiting):
    reaper.round()
    assert column(database, tables.delivery.c.state) == ["pending"]
    assert column(database, tables.idempotency.c.key) == ["new"]
    reaper.round()
    assert len(column(database, tables.delivery.c.id)) == 1


def test_the_digest_of_a_week_reaches_its_webhook_once_however_often_the_reaper_starts(database, tmp_path, waiting):
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.webhook).values(events=["digest.weekly"]))
        lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": "x = 1\n"}, entry="a.py"))
    monday = digest.week_before(datetime.datetime.now(datetime.UTC))
    then = f"{monday}T00:00:00.000Z"
    values = {"public_id": "fg_1", "tenant_id": 1, "project_id": 1, "fingerprint": "f", "rule": "r", "level": "error"}
    values |= {"state": "open", "first_seen_at": then, "last_seen_at": then, "runs": 1, "returned": 0, "version": 1}
    values |= {"path": "a.py", "line": 1, "message": "m"}
    with database.begin() as transaction:
        number = transaction.execute(sa.select(tables.run.c.id)).scalar_one()
        values |= {"first_run_id": number, "last_run_id": number}
        transaction.execute(sa.insert(tables.finding_group).values(values))
    for _ in range(3):
        Reaper(database, tmp_path, lambda _: None).round()
    kinds = sa.select(tables.outbox.c.kind).join_from(tables.delivery, tables.outbox)
    with database.read() as reading:
        assert reading.execute(kinds).scalars().all() == ["digest.weekly"]


def test_a_duty_that_fails_stops_no_other(database, reaper, waiting, monkeypatch, caplog):
    def broken(*_, **__):
        raise OSError("a stranger's text")

    monkeypatch.setattr(reapers.outbox, "plan", broken)
    monkeypatch.setattr(reapers.lifecycle, "expire_leases", broken)
    reaper.round()
    assert column(database, tables.idempotency.c.key) == ["new"]
    assert "planning deliveries failed: OSError" in caplog.text
    assert "stranger" not in caplog.text


def test_a_round_deletes_programs_that_are_due_and_folds_what_is_stored(database, reaper):
    with database.begin() as transaction:
        for n in range(3):
            snippets.keep(transaction, {"a.py": f"x = {n}\n"}, "a.py")
    programs = column(database, tables.snippet.c.id)
    with database.begin() as transaction:
        old = sa.update(tables.snippet).where(tables.snippet.c.id == programs[0])
        transaction.execute(old.values(kept_until="2020-01-01T00:00:00.000Z"))
    with database.read() as reading:
        before = shares.stored_bytes_by_kind(reading)
    reaper.round()
    assert column(database, tables.snippet.c.id) == programs[1:]
    with database.read() as reading:
        after = shares.stored_bytes_by_kind(reading)
    assert after["programs"] * 3 == before["programs"] * 2
    assert sorted(column(database, tables.stored_bytes.c.kind)) == ["programs", "projects"]


def test_a_round_drops_records_of_a_database_beyond_its_cap(database, tmp_path, a_record):
    with database.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": "x = 1\n"}, entry="a.py"))
    held = lifecycle.claim(database, "w1")
    assert completion.finish(database, held, completion.Ending(status="succeeded", exit_code=0), a_record, None)
    Reaper(database, tmp_path, lambda _: None, max_database_bytes=1 << 40).round()
    assert column(database, tables.run.c.record_state) == ["whole"]
    Reaper(database, tmp_path, lambda _: None, max_database_bytes=1).round()
    assert column(database, tables.run.c.record_state) == ["expired"]
    assert column(database, tables.run.c.record_gone) == ["database-full"]
    assert column(database, tables.snippet_file.c.n) == []  # the program went with its last run's record


def test_a_database_that_is_away_is_one_line_of_the_reaper_s_process(tmp_path, caplog):
    """All duties of some rounds, the leader's lock and the sender beside it."""
    away = Database("postgresql://nobody@127.0.0.1:1/none", told=True)
    reaper, sender = Reaper(away, tmp_path, lambda _: None), Sender(away, b"s" * 32, Allowed())
    stop = threading.Event()
    serving = threading.Thread(target=reaper.serve, args=(stop,))
    serving.start()
    for _ in range(3):
        reaper.round()
        assert sender.turn() == 0
    stop.set()
    serving.join(60)
    (line,) = caplog.messages
    assert "Connection refused" in line


@pytest.fixture
def serving(database, tmp_path):
    """`serving()`: a reaper at work in a thread, as `backprobe reaper` is."""
    stop, threads = threading.Event(), []

    def serve(reaper=None):
        reaper = reaper or Reaper(database, tmp_path, lambda _: None)
        threads.append(threading.Thread(target=reaper.serve, args=(stop,)))
        threads[-1].start()

    yield serve
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "slow", ["Rejudging.turn", "WatchedJudging.turn", "Views.turn", "recorder_end.overdue"], ids=lambda name: name
)
def test_a_duty_that_takes_long_holds_up_no_lease_no_delivery_and_no_audit(
    database, waiting, serving, monkeypatch, slow
):
    """Judging one record may take 80 s, and so may what a recorder sent: both are strangers'."""
    begun, goes_on = threading.Event(), threading.Event()

    def judged_for_long(*_):
        begun.set()
        goes_on.wait(600)
        return ()

    monkeypatch.setattr(f"workers.upkeep.reaper.{slow}", judged_for_long)
    with database.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": "x = 1\n"}, entry="a.py"))
        where = tenants.first_project(transaction, 1)
        audit = audits.create(transaction, audits.NewAudit(name="a", project_id=where, created_by="t"), ())
    try:
        serving()
        assert begun.wait(30)
        lifecycle.claim(database, "w1", lease_seconds=0.0)
        with database.begin() as transaction:
            outbox.enqueue(transaction, "run.ended", "run_2", {})
        wait_until(lambda: column(database, tables.run.c.status) == ["queued"], "the run is taken back")
        wait_until(lambda: column(database, tables.delivery.c.state) == ["pending"] * 2, "the deliveries are planned")
        wait_until(lambda: column(database, tables.audit.c.status) == ["judged"], "the audit has its verdict")
        with database.read() as reading:
            assert audits.get(reading, audit).verdicts[0].verdict == "passed"
    finally:
        goes_on.set()


def beats(home):
    """Of the reaper, one a round."""
    file = home / reapers.BEAT_FILE
    return file.stat().st_mtime_ns if file.exists() else 0


def test_judging_begins_again_after_what_no_fence_holds_and_rests_while_another_leads(
    database, serving, monkeypatch, tmp_path
):
    """An exception for a record that took too long may come late: it is none that a fence catches."""
    turns = []

    def ends_its_thread(_):
        turns.append(threading.current_thread())
        raise RuleTooSlow

    monkeypatch.setattr(reapers.Rejudging, "turn", ends_its_thread)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    leader = Leadership(database, tmp_path)
    assert leader.mine()
    serving()
    for _ in range(3):
        before = beats(tmp_path)
        wait_until(lambda before=before: beats(tmp_path) != before, "another round of the reaper")
    assert turns == []
    leader.close()
    wait_until(lambda: len(set(turns)) >= 2, "a second thread judges")
