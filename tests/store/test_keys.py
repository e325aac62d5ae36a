"""API keys, idempotency keys, events to resume from, the audit log."""

import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from store import tables
from store.access import audit_log, idempotency, keys
from store.access.idempotency import Answer
from store.runs import lifecycle
from store.runs.reading import run_events

SECRET = b"\x01" * 32


def a_key(prefix="bp_1", **fields):
    base = {"name": "laptop", "digest": SECRET, "scopes": ("read",), "created_by": "local"}
    return keys.NewKey(prefix=prefix, **(base | fields))


def cut_off(database, act):
    """A transaction that does something and then does not come to its end."""
    with database.begin() as transaction:
        act(transaction)
        raise InterruptedError


@pytest.fixture
def create(database):
    def make_key(prefix="bp_1", **fields):
        with database.begin() as transaction:
            return keys.create(transaction, a_key(prefix, **fields))

    return make_key


@pytest.fixture
def find(database):
    def find_one_key(prefix="bp_1", digest=SECRET):
        with database.read() as reading:
            return keys.find(reading, prefix, digest)

    return find_one_key


def test_a_key_is_found_by_its_prefix_and_hash_and_by_nothing_less(create, find):
    made = create(project="prj_default", scopes=("read", "runs:write"))
    assert find() == made
    assert (made.project, made.scopes, made.tenant_id) == ("prj_default", ("read", "runs:write"), 1)
    assert find(digest=b"\x02" * 32) is None
    assert find(prefix="bp_2") is None


def test_a_key_that_is_expired_taken_back_or_of_a_shut_tenant_opens_nothing(create, find, database):
    create("bp_old", expires_at="2026-01-01T00:00:00.000Z")
    create("bp_later", expires_at="2999-01-01T00:00:00.000Z")
    gone = create("bp_gone")
    assert find("bp_old") is None
    assert find("bp_later") is not None
    with database.begin() as transaction:
        assert keys.revoke(transaction, gone.id)
        assert not keys.revoke(transaction, gone.id)
        assert keys.get(transaction, gone.id).revoked_at is not None
    assert find("bp_gone") is None
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.tenant).values(disabled_at="2026-01-01T00:00:00.000Z"))
    assert find("bp_later") is None


def test_the_key_of_another_tenant_is_not_there(create, database):
    made = create()
    with database.begin() as transaction:
        assert keys.get(transaction, made.id, tenant_id=2) is None
        assert not keys.revoke(transaction, made.id, tenant_id=2)
        assert keys.page(transaction, tenant_id=2).items == ()


def test_a_key_cannot_be_limited_to_a_project_that_is_not_there(create):
    with pytest.raises(KeyError, match="prj_other"):
        create(project="prj_other")


def test_a_prefix_is_given_once(create):
    create()
    with pytest.raises(DatabaseError):
        create()


def test_keys_are_listed_newest_first_by_page(create, database):
    made = [create(f"bp_{n}").id for n in range(5)]
    seen, after = [], None
    with database.read() as reading:
        while True:
            page = keys.page(reading, after=after, limit=2)
            seen += [key.id for key in page.items]
            if (after := page.next) is None:
                break
    assert seen == made[::-1]


def test_the_last_use_is_kept_to_the_minute(create, database, find):
    made = create()
    with database.begin() as transaction:
        keys.touch(transaction, [made.number])
    first = find().last_used_at
    assert first is not None
    with database.begin() as transaction:
        keys.touch(transaction, [made.number])
    assert find().last_used_at == first


# --- idempotency ---------------------------------------------------------------------------------------------------


def test_the_same_request_again_gets_the_same_answer(database, submit):
    run = submit()
    told = Answer(status=202, run=run.id, headers={"Location": "/v1/runs/x"}, body=b"{}")
    with database.begin() as transaction:
        assert idempotency.begin(transaction, "k", b"hash") is None
        idempotency.done(transaction, "k", told)
    with database.begin() as transaction:
        assert idempotency.begin(transaction, "k", b"hash") == told
        assert idempotency.begin(transaction, "k", b"hash", tenant_id=1) == told


def test_a_key_with_another_request_is_refused(database):
    with database.begin() as transaction:
        idempotency.begin(transaction, "k", b"hash")
        idempotency.done(transaction, "k", Answer(status=201))
    with database.begin() as transaction, pytest.raises(idempotency.Mismatch):
        idempotency.begin(transaction, "k", b"other")


def test_a_key_in_flight_is_told_so_and_can_be_given_up(database):
    with database.begin() as transaction:
        idempotency.begin(transaction, "k", b"hash")
    with database.begin() as transaction, pytest.raises(idempotency.InFlight):
        idempotency.begin(transaction, "k", b"hash")
    with database.begin() as transaction:
        idempotency.free(transaction, "k")
        assert idempotency.begin(transaction, "k", b"other") is None


def test_a_key_goes_back_with_its_transaction(database):
    with pytest.raises(InterruptedError):
        cut_off(database, lambda transaction: idempotency.begin(transaction, "k", b"hash"))
    with database.begin() as transaction:
        assert idempotency.begin(transaction, "k", b"hash") is None


def test_an_expired_key_is_free_and_is_dropped(database):
    for key in ("a", "b"):
        with database.begin() as transaction:
            idempotency.begin(transaction, key, b"hash", keep_seconds=-1)
            idempotency.done(transaction, key, Answer(status=200))
    with database.begin() as transaction:
        assert idempotency.begin(transaction, "a", b"other") is None
        assert idempotency.drop_expired(transaction) == 1


def test_an_answer_cannot_name_a_run_of_somebody_else_nor_a_key_nobody_began(database):
    with database.begin() as transaction:
        idempotency.begin(transaction, "k", b"hash")
        with pytest.raises(KeyError):
            idempotency.done(transaction, "k", Answer(status=202, run="run_none"))
        with pytest.raises(KeyError):
            idempotency.done(transaction, "other", Answer(status=202))


def test_of_requests_at_once_one_takes_effect(database):
    """Each begins, submits and answers in one transaction, as the API does."""
    told, start = [], threading.Barrier(6)

    def request():
        start.wait(30)
        with database.begin() as transaction:
            again = idempotency.begin(transaction, "k", b"hash")
            if again is None:
                run = lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": ""}, entry="a.py"))
                again = Answer(status=202, run=run.id, headers={})
                idempotency.done(transaction, "k", again)
        told.append(again)

    threads = [threading.Thread(target=request) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with database.read() as reading:
        (run,) = lifecycle.page(reading, tenant_id=1).items
    assert [audited.run for audited in told] == [run.id] * 6


# --- events --------------------------------------------------------------------------------------------------------


def test_events_resume_after_any_number(database, submit, claim, look):
    run = submit()
    held = claim()
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, run.id)
    lifecycle.release(database, held)
    with database.read() as reading:
        seen = run_events.since(reading, look(run))
        assert [row.kind for row in seen] == ["queued", "claimed", "cancel-requested", "status"]
        assert [event.seq for event in seen] == [1, 2, 3, 4]
        assert run_events.since(reading, look(run), 2) == seen[2:]
        assert run_events.since(reading, look(run), 1, limit=2) == seen[1:3]
        assert run_events.since(reading, look(run), 4) == ()


def test_events_of_another_run_are_not_among_them(database, submit):
    first, second = submit(), submit()
    with database.read() as reading:
        assert len(run_events.since(reading, first)) == len(run_events.since(reading, second)) == 1


# --- the audit log -------------------------------------------------------------------------------------------------


def entry(n=0, **fields):
    base = {"actor": "key:bp_1", "action": "run.submit", "object": f"run_{n}", "request_id": f"req_{n}"}
    return audit_log.Entry(**(base | fields))


def test_entries_are_read_newest_first_by_filter_and_page(database):
    with database.begin() as transaction:
        for n in range(4):
            audit_log.append(transaction, entry(n, actor=f"key:{n % 2}", detail={"n": n}, address="127.0.0.1"))
        audit_log.append(transaction, entry(9), tenant_id=None)
    with database.read() as reading:
        first = audit_log.page(reading, limit=3)
        assert [item.object for item in first.items] == ["run_3", "run_2", "run_1"]
        rest = audit_log.page(reading, after=first.next)
        assert [(item.object, item.detail, item.address) for item in rest.items] == [("run_0", {"n": 0}, "127.0.0.1")]
        assert [item.object for item in audit_log.page(reading, actor="key:1").items] == ["run_3", "run_1"]
        assert [item.object for item in audit_log.page(reading, object="run_2").items] == ["run_2"]
        assert audit_log.page(reading, since=first.items[0].at).items == ()
        assert audit_log.page(reading, tenant_id=2).items == ()


@pytest.mark.parametrize("statement", [sa.update(tables.audit_log).values(actor="nobody"), sa.delete(tables.audit_log)])
def test_the_database_refuses_to_change_the_audit_log(database, statement):
    with database.begin() as transaction:
        audit_log.append(transaction, entry())
    with pytest.raises(DatabaseError, match="only added"), database.begin() as transaction:
        transaction.execute(statement)
    with database.read() as reading:
        assert len(audit_log.page(reading).items) == 1


def test_an_entry_goes_back_with_its_transaction(database):
    with pytest.raises(InterruptedError):
        cut_off(database, lambda transaction: audit_log.append(transaction, entry()))
    with database.read() as reading:
        assert audit_log.page(reading).items == ()
