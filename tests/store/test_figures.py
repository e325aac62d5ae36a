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
def read_figure(database):
    """`read_figure("queue_depth", "cpu")`."""
    return lambda name, label="": {(f.name, f.label): f.value for f in figures(database)}[name, label]


@pytest.fixture
def bad(database):
    """`bad()`: the names of the checks that fail, but for the test machine's disk."""
    return lambda: [check.name for check in checks(database) if not check.ok and check.name != "disk"]


def test_every_figure_has_its_meaning_and_none_is_missing(database):
    kinds = {figure.name for figure in figures(database)}
    assert kinds == set(MEANINGS) - {"months_ahead" if database.sqlite else "database_free_bytes"}
    assert all(figure.value >= 0 for figure in figures(database))


def test_they_count_what_waits_runs_fails_and_is_stored(
    database, submit, claim, change, ended_run, read_figure, bad, a_judgement
):
    ended_run(judgement=a_judgement)
    run = submit(max_attempts=2)
    claim(lease_seconds=-1.0)
    assert (read_figure("runs_running"), read_figure("leases_overdue")) == (1, 1)
    assert "reaper" in bad()
    lifecycle.expire_leases(database)
    change(run, not_before="2020-01-01T00:00:00.000Z")
    lifecycle.release(database, claim(), outcome="sandbox-broke")
    submit()
    assert (
        read_figure("queue_depth", "cpu"),
        read_figure("queue_claimable", "cpu"),
        read_figure("queue_depth", "gpu"),
    ) == (1, 1, 0)
    assert (
        read_figure("runs_hour", "succeeded"),
        read_figure("runs_hour", "lost"),
        read_figure("runs_hour", "failed"),
    ) == (1, 1, 0)
    assert (read_figure("lease_expiries_hour"), read_figure("sandbox_failures_hour"), read_figure("retries_hour")) == (
        1,
        1,
        1,
    )
    assert (read_figure("snapshots_hour"), read_figure("findings_hour")) == (4, 3)
    assert read_figure("record_bytes_hour") > 100
    assert read_figure("database_bytes") > 100_000
    assert bad() == ["workers"]
    with database.begin() as transaction:
        workers.beat(transaction, workers.WorkerNode(id="h", queues=("cpu",), levels=(), devices=(), slots=3, busy=1))
    assert (
        read_figure("workers", "cpu"),
        read_figure("worker_slots", "cpu"),
        read_figure("worker_slots_busy", "cpu"),
    ) == (1, 3, 1)
    assert bad() == []
    change(run, created_at="2020-01-01T00:00:00.000Z")
    assert read_figure("lease_expiries_hour") == 0


def test_what_has_waited_too_long_is_said(database, submit, change, bad):
    change(submit(), queued_at="2020-01-01T00:00:00.000Z")
    assert "queue" in bad()


def test_a_database_that_cannot_be_used_is_one_failing_check(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'nothing.db'}")
    (check,) = checks(database)
    assert (check.name, check.ok, "BACKPROBE_DATABASE_URL" in check.said) == ("database", False, True)
    database.close()


def test_a_schema_of_another_version_fails(database, bad):
    with database.begin() as transaction:
        transaction.execute(sa.text("update alembic_version set version_num = '0001'"))
    try:
        assert "schema" in bad()
    finally:
        with database.begin() as transaction:
            transaction.execute(sa.text(f"update alembic_version set version_num = '{head()}'"))
