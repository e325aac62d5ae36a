"""Events leave once they are true, to each webhook that wants them, until they arrive or are given up."""

import threading

import pytest
import sqlalchemy as sa

from store import tables
from store.tables import Now
from store.webhooks import deliveries, outbox
from store.webhooks.deliveries import RETRY_SECONDS, Try

GOOD = Try(address="203.0.113.9", ms=12, status=204)
BAD = Try(address="203.0.113.9", ms=12, status=500, answer="oops" * 1000)
NONE = Try(address="", ms=3, error="no address is allowed")


@pytest.fixture
def listen(database):
    """`listen("run.ended")`: number of a webhook that wants this kind."""

    def make_webhook(*kinds, project_id=None, tenant_id=1, **fields):
        values = {
            "public_id": f"wh_{len(kinds)}_{id(kinds)}_{fields.get('url', '')}",
            "tenant_id": tenant_id,
            "project_id": project_id,
            "url": "https://example.org/",
            "events": list(kinds),
            "secret": b"sealed",
            "enabled": True,
            "failures": 0,
            "version": 1,
        } | fields
        with database.begin() as transaction:
            made = sa.insert(tables.webhook).values(values | {"created_at": Now()}).returning(tables.webhook.c.id)
            return transaction.execute(made).scalar_one()

    return make_webhook


@pytest.fixture
def send(database):
    """`send()`: an event is written and planned; its id."""

    def enqueue_event(kind="run.ended", **fields):
        with database.begin() as transaction:
            event_id = outbox.enqueue(transaction, kind, "run_1", {"status": "failed"}, **fields)
        with database.begin() as transaction:
            outbox.plan(transaction)
        return event_id

    return enqueue_event


@pytest.fixture
def take(database):
    def read_delivery(**asked):
        with database.begin() as transaction:
            return deliveries.claim(transaction, **asked)

    return read_delivery


@pytest.fixture
def settle(database):
    def read_webhook(due, tried):
        with database.begin() as transaction:
            return deliveries.settle(transaction, due, tried)

    return read_webhook


@pytest.fixture
def make_due(database):
    """Move every pending delivery to now, as time would."""

    def moved():
        with database.begin() as transaction:
            transaction.execute(sa.update(tables.delivery).values(next_at=Now(-1.0), lease_until=None))

    return moved


def rows(database, table):
    with database.read() as reading:
        return reading.execute(sa.select(table).order_by(sa.literal_column("1"), sa.literal_column("2"))).all()


def test_an_event_goes_to_those_that_want_it_and_no_one_else(database, listen, send, take):
    wants = listen("run.ended", "finding.new")
    listen("audit.judged", url="b")
    listen("run.ended", url="c", enabled=False)
    with database.begin() as transaction:
        other = sa.insert(tables.tenant).returning(tables.tenant.c.id)
        limits = {"max_queued": 1, "max_running": 1, "weight": 1, "max_record_bytes": 1, "keep_days": 1}
        named = {"public_id": "tnt_2", "name": "other", "created_at": Now()}
        number = transaction.execute(other.values(limits | named)).scalar_one()
    listen("run.ended", url="d", tenant_id=number)
    event_id = send()
    (due,) = take()
    assert (due.webhook_id, due.event_id, due.kind, due.body) == (wants, event_id, "run.ended", {"status": "failed"})
    assert (due.attempt, due.secret, due.old_secret) == (1, b"sealed", None)


def test_a_webhook_of_a_project_hears_of_this_project_only(listen, send, take):
    listen("run.ended", project_id=1)
    send()
    assert take() == ()
    event_id = send(project_id=1)
    assert [due.event_id for due in take()] == [event_id]


def test_an_event_exists_exactly_if_its_transaction_does(database, listen):
    listen("run.ended")

    def write_event():
        with database.begin() as transaction:
            assert outbox.enqueue(transaction, "run.ended", "run_1", {}) is not None
            assert transaction.execute(sa.select(tables.outbox.c.kind)).scalars().all() == ["run.ended"]
            raise InterruptedError

    with pytest.raises(InterruptedError):
        write_event()
    assert rows(database, tables.outbox) == []


def test_where_nobody_listens_nothing_is_written(database, send):
    assert send() is None
    assert rows(database, tables.outbox) == []


def test_planned_twice_an_event_is_delivered_once(database, listen, send, take, settle):
    listen("run.ended")
    send()
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.outbox).values(planned_at=None))
        assert outbox.plan(transaction) == 1
        assert outbox.plan(transaction) == 0
    (due,) = take()
    assert settle(due, GOOD) == "delivered"
    assert take() == ()


def test_a_delivery_is_lent_to_one_sender_and_comes_back_from_a_dead_one(listen, send, take):
    listen("run.ended")
    send()
    (due,) = take(lease_seconds=-1)
    (again,) = take()
    assert (again.id, again.event_id, again.attempt) == (due.id, due.event_id, 1)
    assert take() == ()


def test_senders_at_once_share_the_deliveries(database, listen, send):
    listen("run.ended")
    for _ in range(12):
        send()
    taken, start = [], threading.Barrier(4)

    def sender():
        start.wait(30)
        while True:
            with database.begin() as transaction:
                due = deliveries.claim(transaction, limit=2)
            if not due:
                return
            taken.extend(row.id for row in due)

    threads = [threading.Thread(target=sender) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(taken) == len(set(taken)) == 12


def test_a_failed_try_comes_again_later_and_later_and_is_then_given_up(database, listen, send, take, settle, make_due):
    listen("run.ended")
    send()
    pauses = []
    for n in range(len(RETRY_SECONDS) + 1):
        (due,) = take()
        assert due.attempt == n + 1
        last = n == len(RETRY_SECONDS)
        assert settle(due, BAD) == ("dead" if last else "pending")
        assert take() == ()
        if not last:
            with database.read() as reading:
                row = reading.execute(sa.select(tables.delivery.c.next_at, Now().label("now"))).one()
            pauses.append(seconds_between(row.now, row.next_at))
            make_due()
    for pause, asked in zip(pauses, RETRY_SECONDS, strict=True):
        assert asked - 30 <= pause <= asked * 1.2 + 1, (pause, asked)
    assert pauses == sorted(pauses[:5]) + pauses[5:]
    make_due()
    assert take() == ()
    tries = rows(database, tables.delivery_try)
    assert [row.n for row in tries] == list(range(1, len(RETRY_SECONDS) + 2))
    assert {len(row.answer) for row in tries} == {1024}


def seconds_between(first, second):
    import datetime

    return (datetime.datetime.fromisoformat(second) - datetime.datetime.fromisoformat(first)).total_seconds()


@pytest.mark.parametrize(("tried", "state"), [(GOOD, "delivered"), (BAD, "pending")])
def test_a_sender_that_comes_back_late_settles_nothing(database, listen, send, take, settle, tried, state):
    listen("run.ended")
    send()
    (late,) = take(lease_seconds=-1)
    (due,) = take()
    assert settle(due, tried) == state
    assert settle(late, GOOD) is None
    (row,) = rows(database, tables.delivery)
    assert (row.state, row.attempts) == (state, 1)
    assert len(rows(database, tables.delivery_try)) == 1


def test_a_receiver_that_answers_410_is_switched_off_and_its_deliveries_canceled(database, listen, send, take, settle):
    listen("run.ended")
    send()
    send()
    (due,) = take(limit=1)
    assert settle(due, Try(address="203.0.113.9", ms=1, status=410)) == "dead"
    (hook,) = rows(database, tables.webhook)
    assert not hook.enabled
    assert "410" in hook.disabled_reason
    assert sorted(row.state for row in rows(database, tables.delivery)) == ["canceled", "dead"]


def test_five_days_of_failure_switch_a_webhook_off_and_a_success_starts_anew(
    database, listen, send, take, settle, make_due
):
    number = listen("run.ended")
    send()
    settle(*take(), NONE)
    long_ago = sa.update(tables.webhook).where(tables.webhook.c.id == number)
    with database.begin() as transaction:
        transaction.execute(long_ago.values(failing_since=Now(-5 * 86400.0 + 600)))
    make_due()
    settle(*take(), NONE)
    (hook,) = rows(database, tables.webhook)
    assert (hook.enabled, hook.failures) == (True, 2)
    make_due()
    assert settle(*take(), GOOD) == "delivered"
    (hook,) = rows(database, tables.webhook)
    assert (hook.enabled, hook.failures, hook.failing_since) == (True, 0, None)
    send()
    with database.begin() as transaction:
        transaction.execute(long_ago.values(failing_since=Now(-5 * 86400.0 - 600), failures=9))
    settle(*take(), NONE)
    (hook,) = rows(database, tables.webhook)
    assert not hook.enabled
    assert take() == ()


def test_a_delivery_that_is_over_can_be_sent_again(database, listen, send, take, settle):
    listen("run.ended")
    send()
    (due,) = take()
    with database.begin() as transaction:
        assert not deliveries.redeliver(transaction, due.id)
    settle(due, GOOD)
    with database.begin() as transaction:
        assert not deliveries.redeliver(transaction, due.id, tenant_id=2)
        assert deliveries.redeliver(transaction, due.id)
    (again,) = take()
    assert (again.event_id, again.attempt) == (due.event_id, 2)
    assert settle(again, GOOD) == "delivered"


def test_the_old_secret_is_given_until_it_ends(database, listen, send, take):
    number = listen("run.ended", old_secret=b"old")
    update = sa.update(tables.webhook).where(tables.webhook.c.id == number)
    for seconds, shown in ((3600.0, b"old"), (-1.0, None)):
        with database.begin() as transaction:
            transaction.execute(update.values(old_until=Now(seconds)))
        send()
        (due,) = take()
        assert due.old_secret == shown
