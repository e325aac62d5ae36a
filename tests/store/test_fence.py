"""A stale attempt writes nothing; our failures use up attempts; a cancel is heard in every state."""

import pytest

from store import queries
from store.records import storage
from store.runs import completion as finish
from store.runs import lifecycle
from store.runs.model import RunError

GOOD = finish.Ending(status="succeeded", exit_code=0)
PAST = -1.0
"""A lease of so many seconds has run out when it begins."""


@pytest.fixture
def expired(database, submit, claim, change):
    """A claim whose lease has run out and whose run another worker holds now: (stale, fresh)."""
    submit()
    stale = claim(lease_seconds=PAST)
    assert lifecycle.expire_leases(database).requeued == (stale.public_id,)
    change(stale, not_before="2020-01-01T00:00:00.000Z")
    return stale, claim(worker="w2")


def test_a_heartbeat_moves_the_lease(database, submit, claim):
    submit()
    held = claim(lease_seconds=PAST)
    assert lifecycle.heartbeat(database, held, lease_seconds=30).cancel_requested is False
    assert lifecycle.expire_leases(database) == lifecycle.Expired(requeued=(), lost=(), canceled=())


def test_a_run_whose_lease_ran_out_is_taken_again_by_another_attempt(expired, database, look):
    stale, fresh = expired
    assert (stale.public_id, stale.attempt) == (fresh.public_id, 1)
    assert fresh.attempt == 2
    with database.read() as reading:
        attempts = queries.attempts(reading, look(fresh))
    assert [(attempt.worker, attempt.outcome) for attempt in attempts] == [("w1", "worker-lost"), ("w2", None)]


ACTS = {
    "heartbeat": lifecycle.heartbeat,
    "release": lifecycle.release,
    "finish": lambda database, held: finish.finish(database, held, GOOD, None, None),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_stale_attempt_changes_nothing(expired, database, look, a_record, act):
    stale, fresh = expired
    before = look(fresh)
    with pytest.raises(lifecycle.FencedOut):
        ACTS[act](database, stale)
    assert look(fresh) == before
    with database.read() as reading:
        assert storage.load(reading, stale.key) is None
    assert finish.finish(database, fresh, GOOD, a_record, None)


def test_a_large_record_of_a_stale_attempt_is_refused_before_its_first_row(expired, database, a_record, monkeypatch):
    stale, _ = expired
    monkeypatch.setattr(finish, "FLUSH_ROWS", 5)
    with pytest.raises(lifecycle.FencedOut):
        finish.finish(database, stale, GOOD, a_record, None)
    with database.read() as reading:
        assert storage.load(reading, stale.key) is None


def test_nothing_of_a_dead_attempt_is_ever_readable(expired, database, look, a_record):
    stale, fresh = expired
    with database.begin() as transaction:
        storage.save(transaction, stale.key, a_record)  # as if it had flushed before it died
    assert finish.finish(database, fresh, GOOD, None, None)
    with database.read() as reading:
        assert storage.load(reading, stale.key) is None
        assert queries.tensors(reading, look(fresh)).items == ()


def test_a_large_record_goes_in_piece_by_piece_and_is_visible_at_once(
    database, submit, claim, look, a_record, same, monkeypatch
):
    monkeypatch.setattr(finish, "FLUSH_ROWS", 5)
    submit()
    held = claim()
    assert finish.finish(database, held, GOOD, a_record, None)
    with database.read() as reading:
        assert same(a_record, storage.load(reading, look(held).key)) == []


def test_finishing_twice_is_noticed_and_changes_nothing(database, submit, claim, look, a_record):
    submit()
    held = claim()
    assert finish.finish(database, held, GOOD, a_record, None) is True
    before = look(held)
    assert finish.finish(database, held, GOOD, a_record, None) is False
    assert look(held) == before


def test_attempts_that_our_failures_used_up_lose_the_run(database, submit, claim, change, look):
    run = submit(max_attempts=2)
    for _ in range(2):
        change(run, not_before="2020-01-01T00:00:00.000Z")
        claim(lease_seconds=PAST)
        expired = lifecycle.expire_leases(database)
    assert expired.lost == (run.id,)
    now = look(run)
    assert (now.status, now.error.whose, now.error.code, now.attempt) == ("lost", "ours", "worker-lost", 2)
    assert now.finished_at is not None
    assert lifecycle.expire_leases(database) == lifecycle.Expired(requeued=(), lost=(), canceled=())


def test_a_killed_workers_run_may_be_claimed_as_soon_as_its_lease_has_run_out(database, submit, claim):
    submit()
    claim(lease_seconds=PAST)
    lifecycle.expire_leases(database)
    assert claim().attempt == 2


def test_a_run_whose_sandbox_broke_pauses_before_its_next_attempt(database, submit, claim, change):
    run = submit()
    lifecycle.release(database, claim(), outcome="sandbox-broke", reason="zygote gone")
    assert claim() is None
    change(run, not_before="2020-01-01T00:00:00.000Z")
    assert claim().attempt == 2


def test_a_worker_that_shuts_down_costs_no_attempt(database, submit, claim, look):
    run = submit(max_attempts=1)
    assert lifecycle.release(database, claim()) == "queued"
    held = claim()
    assert (held.attempt, held.max_attempts) == (2, 2)
    assert finish.finish(database, held, GOOD, None, None)
    assert look(run).status == "succeeded"


def test_a_sandbox_that_broke_uses_up_attempts(database, submit, claim, change, look):
    run = submit(max_attempts=2)
    assert lifecycle.release(database, claim(), outcome="sandbox-broke", reason="zygote gone") == "queued"
    change(run, not_before="2020-01-01T00:00:00.000Z")
    assert lifecycle.release(database, claim(), outcome="sandbox-broke", reason="zygote gone") == "lost"
    assert "zygote gone" in look(run).error.message


def test_a_run_that_nobody_came_for_is_lost(database, submit, look):
    run, other = submit(queue_seconds=-1), submit()
    assert lifecycle.expire_queued(database) == (run.id,)
    assert (look(run).status, look(run).error.code) == ("lost", "never-started")
    assert look(other).status == "queued"


def cancel(database, run):
    with database.begin() as transaction:
        return lifecycle.request_cancel(transaction, getattr(run, "public_id", None) or run.id)


def test_a_queued_run_is_canceled_at_once(database, submit, claim):
    now = cancel(database, submit())
    assert (now.status, now.ended, now.error.whose) == ("canceled", True, "asked")
    assert claim() is None


def test_a_running_run_hears_its_cancel_by_the_heartbeat(database, submit, claim):
    submit()
    held = claim()
    asked = cancel(database, held)
    assert (asked.status, asked.cancel_requested_at is not None) == ("running", True)
    assert lifecycle.heartbeat(database, held).cancel_requested is True
    error = RunError(whose="asked", code="canceled", message="canceled on request")
    assert finish.finish(database, held, finish.Ending(status="canceled", error=error, signal=9), None, None)


def test_a_second_cancel_changes_nothing(database, submit, claim):
    submit()
    held = claim()
    assert cancel(database, held) == cancel(database, held)


@pytest.mark.parametrize("gone", ["expired", "released"])
def test_a_canceled_run_whose_worker_went_is_not_tried_again(database, submit, claim, look, gone):
    submit()
    held = claim(lease_seconds=PAST if gone == "expired" else 30)
    cancel(database, held)
    if gone == "expired":
        assert lifecycle.expire_leases(database).canceled == (held.public_id,)
    else:
        assert lifecycle.release(database, held) == "canceled"
    assert look(held).status == "canceled"


@pytest.mark.parametrize("status", ["succeeded", "failed", "exceeded", "canceled", "lost"])
def test_an_ended_run_is_not_canceled_and_not_finished_again(database, submit, claim, look, status):
    submit()
    held = claim()
    error = None if status == "succeeded" else RunError(whose="program", code="raised", message="\0", line=3)
    assert finish.finish(database, held, finish.Ending(status=status, error=error), None, None)
    before = look(held)
    assert (before.status, before.error) == (status, error)
    assert cancel(database, held) == before
    with pytest.raises(lifecycle.FencedOut):
        lifecycle.heartbeat(database, held)


def test_canceling_a_run_that_is_not_there_says_so(database):
    with database.begin() as transaction:
        assert lifecycle.request_cancel(transaction, "run_00000000000000000000000000") is None
