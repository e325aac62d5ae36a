"""Waiting returns when the run has ended, whoever ended it."""

import subprocess
import sys
import threading
import time

import pytest

from store.runs import completion
from store.runs.reading.wait import SELF_SECONDS, Hub

GOOD = completion.Ending(status="succeeded", exit_code=0)


@pytest.fixture
def hub(database):
    with Hub(database) as hub:
        yield hub


def waiting(hub, run, seconds=30.0):
    """A thread that waits, and what it was told."""
    told = []
    thread = threading.Thread(target=lambda: told.append(hub.wait(run.id, seconds)))
    thread.start()
    return thread, told


def test_a_run_that_has_ended_is_told_at_once(hub, ended_run):
    assert hub.wait(ended_run().id, 0) is True


def test_another_tenants_run_is_not_there(hub, ended_run):
    assert hub.wait(ended_run().id, 0, tenant_id=2) is False


def test_a_run_that_does_not_end_in_time_has_not_ended(hub, submit):
    assert hub.wait(submit().id, 0.02) is False


def test_a_run_that_is_not_there_is_told_at_once(hub):
    began = time.monotonic()
    assert hub.wait("run_00000000000000000000000000", 30) is False
    assert time.monotonic() - began < 5


def test_everybody_who_waits_is_told_of_the_end(hub, database, submit, claim):
    run, other = submit(), submit()
    threads = [waiting(hub, run) for _ in range(3)]
    slow = waiting(hub, other, 0.5)
    completion.finish(database, claim(), GOOD, None, None)
    for thread, told in threads:
        thread.join(timeout=20)
        assert told == [True]
    slow[0].join(timeout=20)
    assert slow[1] == [False]


def test_the_end_by_another_process_is_told_sooner_than_a_waiter_looks_for_itself(hub, database_url, database, submit):
    code = (
        "import sys\nfrom store.runs import lifecycle as runs\nfrom store.database.session import Database\ndatabase = Database(sys.argv[1])\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "with database.begin() as t:\n    runs.request_cancel(t, sys.argv[2])\nprint('done', flush=True)\n"
    )
    lags = []
    for _ in range(3):
        run = submit()
        other = subprocess.Popen(
            [sys.executable, "-c", code, database_url, run.id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        other.stdout.readline()
        thread, told = waiting(hub, run)
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "done\n"
        done = time.monotonic()
        thread.join(timeout=20)
        lags.append(time.monotonic() - done)
        assert told == [True]
        other.communicate(timeout=20)
    assert min(lags) < SELF_SECONDS / 2


def test_closing_lets_every_waiter_go(database, submit):
    hub = Hub(database)
    thread, told = waiting(hub, submit())
    hub.close()
    thread.join(timeout=20)
    assert told == [False]


def test_a_listener_that_lost_its_connection_listens_again(hub, database, submit, claim):
    if not database.sqlite:
        assert hub.wait(submit().id, 0.01) is False
        with database.begin() as transaction:
            import sqlalchemy as sa

            killed = "select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN%' and pid <> pg_backend_pid() and datname = current_database()"
            transaction.execute(sa.text(killed))
    run = submit(priority=0)
    thread, told = waiting(hub, run)
    held = claim()
    assert held.public_id == run.id
    completion.finish(database, held, GOOD, None, None)
    thread.join(timeout=20)
    assert told == [True]
