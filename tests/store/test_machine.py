"""The life of runs under any order of events, against a model of it, on both databases."""

import contextlib
import itertools

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy.exc import DatabaseError

from store import tables
from store.runs import completion as finish
from store.runs import lifecycle
from store.runs.completion import Ending
from store.runs.model import ENDED, RunError
from store.runs.reading import run_events
from store.tables import Now

NUMBERS = itertools.count()
PICK = st.integers(0, 99)
ENDINGS = {
    "succeeded": Ending(status="succeeded", exit_code=0),
    "failed": Ending(status="failed", error=RunError(whose="program", code="raised", message="no")),
    "exceeded": Ending(status="exceeded", error=RunError(whose="limit", code="wall-seconds", message="long")),
}
LEASE = "2026-11-21T00:00:00.000Z"


class Life(RuleBasedStateMachine):
    """Each run of the model: status, attempt, max_attempts, cancel (asked for), result (the attempt that ended it)."""

    database = None

    def __init__(self):
        super().__init__()
        self.device = f"device-{next(NUMBERS)}"  # so that a claim takes only runs of this example
        self.model = {}
        self.claims = []
        self.versions = {}

    def write(self, run, **columns):
        with self.database.begin() as transaction:
            update = sa.update(tables.run).where(tables.run.c.public_id == run)
            transaction.execute(update.values(**columns))

    def pick(self, n, status=None):
        known = [run for run, facts in self.model.items() if status in (None, facts["status"])]
        return known[n % len(known)] if known else None

    def is_mine(self, held):
        facts = self.model[held.public_id]
        return facts["status"] == "running" and facts["attempt"] == held.attempt

    def given_back(self, run, *, free):
        facts = self.model[run]
        if facts["cancel"]:
            facts["status"] = "canceled"
        elif free or facts["attempt"] < facts["max"]:
            facts["status"] = "queued"
            facts["max"] += int(free)
            self.write(run, not_before=Now(-1.0))  # the pause is over
        else:
            facts["status"] = "lost"

    @rule(most=st.integers(1, 2))
    def submit(self, most):
        files = {"files": {"a.py": ""}, "entry": "a.py", "device_class": self.device, "max_attempts": most}
        with self.database.begin() as transaction:
            run = lifecycle.submit(transaction, lifecycle.Submission(**files))
        self.model[run.id] = {"status": "queued", "attempt": 0, "max": most, "cancel": False, "result": None}

    @rule()
    def claim(self):
        held = lifecycle.claim(self.database, "w", devices=(self.device,))
        first = self.pick(0, "queued")
        assert (held and held.public_id) == first
        if held is not None:
            self.model[first]["status"] = "running"
            self.model[first]["attempt"] += 1
            assert held.attempt == self.model[first]["attempt"]
            self.claims.append(held)

    @precondition(lambda self: self.claims)
    @rule(n=PICK, status=st.sampled_from(sorted(ENDINGS)))
    def finish(self, n, status):
        held = self.claims[n % len(self.claims)]
        facts = self.model[held.public_id]
        if self.is_mine(held):
            assert finish.finish(self.database, held, ENDINGS[status], None, None)
            facts |= {"status": status, "result": held.attempt}
        elif facts["result"] == held.attempt:
            assert not finish.finish(self.database, held, ENDINGS[status], None, None)
        else:
            with pytest.raises(lifecycle.FencedOut):
                finish.finish(self.database, held, ENDINGS[status], None, None)

    @precondition(lambda self: self.claims)
    @rule(n=PICK, outcome=st.sampled_from(["released", "sandbox-broke"]))
    def release(self, n, outcome):
        held = self.claims[n % len(self.claims)]
        if self.is_mine(held):
            status = lifecycle.release(self.database, held, outcome=outcome)
            self.given_back(held.public_id, free=outcome == "released")
            assert status == self.model[held.public_id]["status"]
        else:
            with pytest.raises(lifecycle.FencedOut):
                lifecycle.release(self.database, held, outcome=outcome)

    @precondition(lambda self: self.claims)
    @rule(n=PICK)
    def heartbeat(self, n):
        held = self.claims[n % len(self.claims)]
        if self.is_mine(held):
            heard = lifecycle.heartbeat(self.database, held)
            assert heard.cancel_requested == self.model[held.public_id]["cancel"]
        else:
            with pytest.raises(lifecycle.FencedOut):
                lifecycle.heartbeat(self.database, held)

    @rule(n=PICK)
    def lease_runs_out(self, n):
        run = self.pick(n, "running")
        if run is None:
            return
        self.write(run, lease_until=Now(-1.0))
        told = lifecycle.expire_leases(self.database)
        self.given_back(run, free=False)
        where = {"queued": told.requeued, "lost": told.lost, "canceled": told.canceled}
        assert run in where[self.model[run]["status"]]

    @rule(n=PICK)
    def nobody_comes(self, n):
        run = self.pick(n, "queued")
        if run is None:
            return
        self.write(run, queue_deadline=Now(-1.0))
        assert run in lifecycle.expire_queued(self.database)
        self.model[run]["status"] = "lost"

    @rule(n=PICK)
    def cancel(self, n):
        run = self.pick(n)
        if run is None:
            return
        facts = self.model[run]
        with self.database.begin() as transaction:
            after = lifecycle.request_cancel(transaction, run)
        if facts["status"] == "queued":
            facts["status"] = "canceled"
        elif facts["status"] == "running":
            facts["cancel"] = True
        assert after.status == facts["status"]

    @rule(n=PICK, after=st.sampled_from(sorted(lifecycle.NEXT)))
    def somebody_writes_the_status(self, n, after):
        run = self.pick(n)
        if run is None or after == self.model[run]["status"] or after in lifecycle.NEXT[self.model[run]["status"]]:
            return
        tied = {
            "lease_until": LEASE if after == "running" else None,
            "finished_at": None if after in ("queued", "running") else LEASE,
        }
        with pytest.raises(DatabaseError, match="no such move"):
            self.write(run, status=after, **tied)

    @invariant()
    def the_database_agrees(self):
        with self.database.read() as reading:
            for run, facts in self.model.items():
                row = lifecycle.get(reading, run)
                assert (row.status, row.attempt, row.max_attempts) == (facts["status"], facts["attempt"], facts["max"])
                assert row.ended == (facts["status"] in ENDED) == (row.finished_at is not None)
                assert row.version >= self.versions.get(run, 0)
                self.versions[run] = row.version
                assert [event.seq for event in run_events.since(reading, row)] == list(
                    range(1, len(run_events.since(reading, row)) + 1)
                )
                query = sa.select(tables.run_attempt).where(tables.run_attempt.c.run_id == row.run_id)
                attempts = reading.execute(query.order_by(tables.run_attempt.c.attempt)).all()
                assert [attempt.attempt for attempt in attempts] == list(range(1, facts["attempt"] + 1))
                is_open = [attempt.attempt for attempt in attempts if attempt.ended_at is None]
                assert is_open == ([facts["attempt"]] if facts["status"] == "running" else [])

    def teardown(self):
        """Leave nothing that the next example's reaper would find."""
        for run, facts in self.model.items():
            with self.database.begin() as transaction, contextlib.suppress(DatabaseError):
                lifecycle.request_cancel(transaction, run)
            if facts["status"] == "running":
                self.write(run, lease_until=Now(-1.0))
        lifecycle.expire_leases(self.database)


def test_any_order_of_events_leads_where_the_model_says(database):
    Life.database = database
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        Life, settings=settings(max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=checks)
    )
