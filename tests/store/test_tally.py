"""What happened is counted once, on both databases; what may not have been committed yet waits."""

import pytest
import sqlalchemy as sa

from store import tables
from store.admin.tally import RUN_SECONDS, Tally
from store.runs import completion, lifecycle

LONG_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def look(database):
    """`look(tally)`."""

    def looked(tally):
        with database.read() as reading:
            return tally.look(reading)

    return looked


def test_runs_and_attempts_that_ended_are_counted_once(database, submit, claim, ended_run, look):
    ended_run(ending=completion.Ending(status="failed", wall_seconds=0.3))
    ended_run(ending=completion.Ending(status="succeeded", wall_seconds=7000.0))
    submit(max_attempts=1)
    claim(lease_seconds=-1.0)
    lifecycle.expire_leases(database)
    waiting = submit()
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, waiting.id)
    submit()
    tally = Tally(LONG_AGO, lag_seconds=0.0)
    for _ in range(2):
        found = look(tally)
        assert found.runs == {"failed": 1, "succeeded": 1, "lost": 1, "canceled": 1, "exceeded": 0}
        assert found.attempts["finished"] == 2
        assert (found.attempts["worker-lost"], found.attempts["released"]) == (1, 0)
        assert (found.timed, found.seconds) == (2, pytest.approx(7000.3))
        assert dict(zip(RUN_SECONDS, found.run_seconds, strict=True)) == {
            most: int(most >= 0.3) for most in RUN_SECONDS
        }
        assert found.snapshots == 8


def test_the_first_look_counts_nothing_and_the_last_seconds_wait(ended_run, change, look):
    change(ended_run(), finished_at=LONG_AGO)
    behind, fresh = Tally("2020-01-02T00:00:00.000Z", lag_seconds=3600.0), Tally(lag_seconds=0.0)
    ended_run()
    assert look(behind).runs["succeeded"] == 0
    assert look(fresh).runs["succeeded"] == 0
    assert look(Tally(LONG_AGO, lag_seconds=3600.0)).runs["succeeded"] == 0  # the moment itself was counted before
    assert look(Tally("2019-12-31T00:00:00.000Z", lag_seconds=3600.0)).runs["succeeded"] == 1


def test_a_look_goes_by_the_indices(database, ended_run, look):
    for _ in range(3):
        ended_run()
    plans = []

    def explain(connection, _cursor, statement, parameters, _context, _many):
        own = connection.connection.cursor()
        own.execute(("EXPLAIN QUERY PLAN " if database.sqlite else "EXPLAIN ") + statement, parameters)
        plans.append(str(own.fetchall()))

    with database.begin() as transaction:
        if not database.sqlite:
            transaction.execute(sa.text("set local enable_seqscan = off"))
        sa.event.listen(transaction, "before_cursor_execute", explain)
        Tally(LONG_AGO, lag_seconds=0.0).look(transaction)
    assert [name in plan for name, plan in zip(INDICES, plans, strict=True)] == [True] * 4, plans


INDICES = ("", "run_finished", "run_attempt_ended", "delivery_try_at")


def test_tries_are_told_apart_by_their_answer(database, look):
    with database.begin() as transaction:
        now = {"created_at": tables.Now()}
        event = {"event_id": "e", "tenant_id": 1, "kind": "run.ended", "subject": "run_1", "body": {}} | now
        of = transaction.execute(sa.insert(tables.outbox).values(event).returning(tables.outbox.c.id)).scalar_one()
        hook = {"public_id": "wh_1", "tenant_id": 1, "url": "https://h.example", "events": [], "secret": b"s"}
        hook |= {"enabled": True, "failures": 0, "version": 1} | now
        to = transaction.execute(sa.insert(tables.webhook).values(hook).returning(tables.webhook.c.id)).scalar_one()
        sent = {"public_id": "dlv_1", "outbox_id": of, "webhook_id": to, "state": "dead", "attempts": 3}
        delivery = sa.insert(tables.delivery).values(sent | {"next_at": tables.Now()}).returning(tables.delivery.c.id)
        number = transaction.execute(delivery).scalar_one()
        for n, status in enumerate((None, 503, 204), 1):
            tried = {"delivery_id": number, "n": n, "at": tables.Now(), "address": "", "status": status, "ms": 1}
            transaction.execute(sa.insert(tables.delivery_try).values(tried))
    assert look(Tally(LONG_AGO, lag_seconds=0.0)).tries == {"delivered": 1, "refused": 1, "unanswered": 1}
