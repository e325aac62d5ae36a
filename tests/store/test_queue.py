"""Into the queue and out of it: what is stored, who gets what, and that nobody gets it twice."""

import os
import subprocess
import sys
import threading
from dataclasses import asdict

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from store import queries, tables
from store.access.worker_shares import MemoryRoom
from store.database.ids import is_id, part
from store.database.session import Database, WriterStuck
from store.runs import claims, expiry, lifecycle
from store.runs.limits import Limits
from store.runs.model import RunRow
from store.runs.reading.run_filter import RunFilter
from tests.support.databases import migrated_sqlite

TWO_FILES = {"train.py": "import net\n", "net.py": "y = 2\n"}

TAKER = """
import sys
import threading
from store.runs import completion as finish, lifecycle as runs
from store.database.session import Database
database = Database(sys.argv[1])
while (held := runs.claim(database, sys.argv[2])) is not None:
    assert finish.finish(database, held, finish.Ending(status="succeeded", exit_code=0), None, None)
    print(held.public_id, held.attempt, flush=True)
"""


def test_a_submitted_run_is_queued_as_asked(submit, look):
    run = submit(
        files=TWO_FILES,
        entry="train.py",
        arguments=("--fast", "\0\u00e9"),
        labels={"pr": "12"},
        limits=Limits(wall_seconds=5),
        seed=3,
        priority=2,
        created_by="key:bp_1",
    )
    assert is_id("run", run.id)
    assert (run.status, run.ended, run.attempt, run.version) == ("queued", False, 0, 1)
    assert run.arguments == ("--fast", "\0\u00e9")
    assert (run.labels, run.seed, run.priority, run.entry, run.created_by) == (
        {"pr": "12"},
        3,
        2,
        "train.py",
        "key:bp_1",
    )
    assert run.limits["wall_seconds"] == 5
    assert run.project == "prj_default"
    assert run.key is None
    assert run.created_at.endswith("Z")
    assert look(run).queue_position == 0


def test_a_run_lies_in_the_month_of_its_id(submit, database):
    run = submit()
    with database.read() as reading:
        stored = reading.execute(sa.select(tables.run.c.part).where(tables.run.c.public_id == run.id)).scalar_one()
    assert stored == part(run.id)


def test_the_same_program_is_stored_once(submit, database):
    first, again = submit(files=TWO_FILES), submit(files=dict(reversed(TWO_FILES.items())))
    other = submit(files=TWO_FILES, entry="net.py")
    assert first.snippet == again.snippet != other.snippet
    with database.read() as reading:
        assert reading.execute(sa.select(sa.func.count()).select_from(tables.snippet)).scalar_one() == 2


def test_an_entry_that_is_no_file_is_refused(submit):
    with pytest.raises(KeyError):
        submit(entry="other.py")


def test_a_tenant_may_queue_so_many_and_no_more(submit, database):
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.tenant).values(max_queued=2))
    submit(), submit()
    with pytest.raises(lifecycle.QueueFull) as refused:
        submit()
    assert (refused.value.used, refused.value.allowed) == (2, 2)


def test_a_claim_has_all_that_a_worker_needs(submit, claim, look):
    run = submit(files=TWO_FILES, arguments=("a",), seed=1, limits=Limits(threads=2))
    held = claim()
    assert (held.public_id, held.attempt, held.worker) == (run.id, 1, "w1")
    assert held.files == TWO_FILES
    assert (held.entry, held.arguments, held.seed, held.limits.threads) == ("train.py", ("a",), 1, 2)
    assert held.capture == {"tier": "full"}
    now = look(run)
    assert (now.status, now.attempt, now.queue_position) == ("running", 1, None)
    assert now.started_at is not None
    assert claim() is None


def test_waiting_weighs_as_much_as_priority(submit, claim, change):
    late, early = submit(priority=0), submit(priority=5)
    change(early, rank_at="2020-01-01T00:05:00.000Z")
    change(late, rank_at="2020-01-01T00:05:00.001Z")
    assert claim().public_id == early.id
    assert claim().public_id == late.id


def test_a_lower_priority_number_comes_first(submit, claim, look):
    later, sooner = submit(priority=5), submit(priority=0)
    assert (look(sooner).queue_position, look(later).queue_position) == (0, 1)
    assert [claim().public_id, claim().public_id] == [sooner.id, later.id]


def test_a_run_of_another_queue_level_or_device_is_left(submit, claim):
    gpu = submit(queue="gpu", device_class="h100")
    strict = submit(min_isolation="process")
    assert claim() is None
    assert claim(queue="gpu") is None
    assert claim(queue="gpu", devices=("h100",)).public_id == gpu.id
    assert claim(levels=("none", "process")).public_id == strict.id


def test_tenants_take_turns(submit, claim, database):
    with database.begin() as transaction:
        facts = {
            "name": "other",
            "max_queued": 99,
            "max_running": 99,
            "weight": 1,
            "max_record_bytes": 1,
            "keep_days": 1,
        }
        made = sa.insert(tables.tenant).values(public_id="tnt_2", created_at=tables.Now(), **facts)
        tenant = transaction.execute(made.returning(tables.tenant.c.id)).scalar_one()
        project = sa.insert(tables.project).values(
            public_id="prj_2", tenant_id=tenant, name="p", settings={}, created_at=tables.Now()
        )
        project = transaction.execute(project.returning(tables.project.c.id)).scalar_one()
    for _ in range(4):
        submit()
    for _ in range(2):
        submit(tenant_id=tenant, project_id=project)
    assert [claim().tenant_id for _ in range(6)] == [1, tenant, 1, tenant, 1, 1]


def test_a_tenant_at_its_share_waits(submit, claim, database):
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.tenant).values(max_running=1))
    submit(), submit()
    assert claim() is not None
    assert claim() is None


def test_processes_that_race_for_runs_take_each_once(submit, database_url, database):
    expected = {submit().id for _ in range(60)}
    command = [sys.executable, "-c", TAKER, database_url]
    takers = [
        subprocess.Popen(
            [*command, f"w{n}"], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": "error"}
        )
        for n in range(4)
    ]
    lines = [line for taker in takers for line in taker.communicate(timeout=120)[0].splitlines()]
    assert [taker.returncode for taker in takers] == [0] * 4
    assert sorted(line.split()[0] for line in lines) == sorted(expected)
    assert {line.split()[1] for line in lines} == {"1"}
    with database.read() as reading:
        ended = sa.select(sa.func.count()).where(tables.run.c.status == "succeeded", tables.run.c.attempt == 1)
        assert reading.execute(ended).scalar_one() == 60


def test_pages_of_runs_hold_under_inserts(submit, database):
    old = [submit().id for _ in range(5)]

    def page(after, **filters):
        with database.read() as reading:
            return lifecycle.page(reading, RunFilter(**filters), after=after, limit=2)

    first = page(None)
    submit(labels={"a": "1"})
    second = page(first.next)
    third = page(second.next)
    seen: tuple[RunRow, ...] = first.items + second.items + third.items
    assert [run.id for run in seen] == old[::-1]
    assert third.next is None
    assert [run.labels for run in page(None, labels={"a": "1"}).items] == [{"a": "1"}]
    assert page(None, status=["running"]).items == ()
    assert page(None, queue="gpu").items == ()
    assert page(None, created_before="2020-01-01T00:00:00.000Z").items == ()
    assert len(page(None, created_after="2020-01-01T00:00:00.000Z").items) == 2


def test_a_run_of_another_tenant_is_not_there(submit, database):
    run = submit()
    with database.read() as reading:
        assert lifecycle.get(reading, run.id, tenant_id=2) is None
        assert lifecycle.page(reading, tenant_id=2).items == ()
        assert lifecycle.get(reading, "run_nonsense") is None


def test_the_depth_of_each_queue_is_told(submit, change, database):
    submit()
    change(submit(), not_before="2999-01-01T00:00:00.000Z")
    with database.read() as reading:
        cpu, gpu = lifecycle.depths(reading)
    assert (cpu.queue, cpu.queued, cpu.claimable) == ("cpu", 2, 1)
    assert 0 <= cpu.oldest_seconds < 60
    assert (gpu.queue, gpu.queued, gpu.oldest_seconds) == ("gpu", 0, 0.0)


def test_what_happens_to_a_run_is_told_in_order(submit, claim, database, look):
    run = submit()
    claim()
    with database.read() as reading:
        events = queries.events(reading, look(run))
        attempts = queries.attempts(reading, look(run))
    assert [(event.seq, event.kind, event.attempt) for event in events] == [(1, "queued", None), (2, "claimed", 1)]
    assert [(attempt.attempt, attempt.worker, attempt.outcome) for attempt in attempts] == [(1, "w1", None)]


def test_the_claim_and_the_reaper_are_served_by_their_indices(database, submit, claim):
    for n in range(80):  # of one row, any index that fits costs the same
        submit()
        if n % 2:
            claim()
    # and as in life, most have ended: an index of all of them costs more. Of the others there are enough that to sort them
    # costs several times as much as the first by the index: of five it costs the same where the table was just vacuumed
    with database.begin() as transaction:
        for status, left in (("running", 15), ("queued", 15)):
            those = sa.select(tables.run.c.id).where(tables.run.c.status == status)
            ended = those.order_by(tables.run.c.id).limit(40 - left)
            over = {"status": "canceled", "finished_at": tables.Now(), "lease_until": None}
            transaction.execute(sa.update(tables.run).where(tables.run.c.id.in_(ended)).values(over))
    plans = []

    def explain(connection, _cursor, statement, parameters, _context, _many):
        own = connection.connection.cursor()
        own.execute(("EXPLAIN QUERY PLAN " if database.sqlite else "EXPLAIN ") + statement, parameters)
        plans.append(str(own.fetchall()))

    with database.begin() as transaction:
        if not database.sqlite:  # a table of one row is else scanned
            transaction.execute(sa.text("set local enable_seqscan = off"))
            transaction.execute(sa.text("set local enable_bitmapscan = off"))
            transaction.execute(sa.text("analyze run"))
        event.listen(transaction, "before_cursor_execute", explain)
        asked = {"levels": ["none"], "devices": ["cpu"], "of_queue": "cpu", "of_tenant": 1}
        room = asdict(MemoryRoom())
        transaction.execute(claims._CLAIM, asked | room | {"worker": "w", "lease_seconds": 1})
        transaction.execute(expiry._EXPIRED, {"most": 1})
        transaction.execute(claims._TENANTS, {"of_queue": "cpu"})
    claimed, expired, tenants = plans
    assert "run_queue" in claimed
    assert "run_busy" in claimed or "run_lease" in claimed
    assert "run_claims" not in claimed  # nothing but what runs is counted
    assert "run_lease" in expired
    assert "run_queue" in tenants
    assert "run_busy" in tenants


def test_a_transaction_that_reads_first_may_still_write_beside_another_writer(database, database_url, submit):
    submit()
    other = Database(database_url)
    added = lifecycle.Submission(files={"b.py": ""}, entry="b.py")

    def write():
        with other.begin() as transaction:
            lifecycle.submit(transaction, added)

    writer = threading.Thread(target=write)
    with database.begin() as transaction:
        assert len(lifecycle.page(transaction).items) == 1
        writer.start()
        writer.join(timeout=0.5)  # on SQLite it waits for us; if it did not, our next statement would fail
        lifecycle.submit(transaction, added)
    writer.join(timeout=30)
    with database.read() as reading:
        assert len(lifecycle.page(reading).items) == 3
    other.close()


def test_a_write_transaction_inside_another_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("store.database.session.BUSY_SECONDS", 0.05)
    (tmp_path / "b.db").write_bytes(migrated_sqlite())
    database = Database(f"sqlite:///{tmp_path / 'b.db'}")
    with database.begin(), pytest.raises(WriterStuck, match="inside it"), database.begin():
        pass
    database.close()
