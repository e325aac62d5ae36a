"""Figures and health checks, on both databases: each says what is so, and a failing one what to do."""

import pytest
import sqlalchemy as sa

from store.admin import workers
from store.admin.figures import MEANINGS, figures
from store.admin.health import checks
from store.database.migrator import head
from store.database.session import Database
from store.runs import lifecycle


@pytest.fixture
def known(database):
    """`known("queue_depth", "cpu")`."""
    return lambda name, label="": {(f.name, f.label): f.value for f in figures(database)}[name, label]


@pytest.fixture
def bad(database):
    """`bad()`: the names of the checks that fail, but for the test machine's disk."""
    return lambda: [one.name for one in checks(database) if not one.ok and one.name != "disk"]


def test_every_figure_has_its_meaning_and_none_is_missing(database):
    kinds = {one.name for one in figures(database)}
    assert kinds == set(MEANINGS) - {"months_ahead" if database.sqlite else "database_free_bytes"}
    assert all(one.value >= 0 for one in figures(database))


def test_they_count_what_waits_runs_fails_and_is_stored(
    database, submit, claim, change, ended, known, bad, a_judgement
):
    ended(judgement=a_judgement)
    run = submit(max_attempts=2)
    claim(lease_seconds=-1.0)
    assert (known("runs_running"), known("leases_overdue")) == (1, 1)
    assert "reaper" in bad()
    lifecycle.expire_leases(database)
    change(run, not_before="2020-01-01T00:00:00.000Z")
    lifecycle.release(database, claim(), outcome="sandbox-broke")
    submit()
    assert (known("queue_depth", "cpu"), known("queue_claimable", "cpu"), known("queue_depth", "gpu")) == (1, 1, 0)
    assert (known("runs_hour", "succeeded"), known("runs_hour", "lost"), known("runs_hour", "failed")) == (1, 1, 0)
    assert (known("lease_expiries_hour"), known("sandbox_failures_hour"), known("retries_hour")) == (1, 1, 1)
    assert (known("snapshots_hour"), known("findings_hour")) == (4, 3)
    assert known("record_bytes_hour") > 100
    assert known("database_bytes") > 100_000
    assert bad() == ["workers"]
    with database.begin() as transaction:
        workers.beat(transaction, workers.WorkerNode(id="h", queues=("cpu",), levels=(), devices=(), slots=3, busy=1))
    assert (known("workers", "cpu"), known("worker_slots", "cpu"), known("worker_slots_busy", "cpu")) == (1, 3, 1)
    assert bad() == []
    change(run, created_at="2020-01-01T00:00:00.000Z")
    assert known("lease_expiries_hour") == 0


def test_what_has_waited_too_long_is_said(database, submit, change, bad):
    change(submit(), queued_at="2020-01-01T00:00:00.000Z")
    assert "queue" in bad()


def test_a_database_that_cannot_be_used_is_one_failing_check(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'nothing.db'}")
    (one,) = checks(database)
    assert (one.name, one.ok, "BACKPROBE_DATABASE_URL" in one.said) == ("database", False, True)
    database.close()


def test_a_schema_of_another_version_fails(database, bad):
    with database.begin() as transaction:
        transaction.execute(sa.text("update alembic_version set version_num = '0001'"))
    try:
        assert "schema" in bad()
    finally:
        with database.begin() as transaction:
            transaction.execute(sa.text(f"update alembic_version set version_num = '{head()}'"))
