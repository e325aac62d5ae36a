"""The fence: a worker whose lease is gone ends its child and writes nothing, whatever took the lease away."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from store.database.session import Database
from store.runs import completion, lifecycle
from workers import pipeline, tasks
from workers.lease import Keeper
from workers.node import Node
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.upkeep.leader import Leadership

pytestmark = pytest.mark.usefixtures("sandbox")

LONG = "import torch\nx = torch.ones(2)\nimport time\ntime.sleep(60)"


@pytest.fixture
def node(stack, supervisor: Supervisor) -> Iterator[Node]:
    """A worker in this process, without Celery: its tasks are called here."""
    started_node = Node(stack.database, supervisor, queue="cpu", slots=2, lease_seconds=3.0, publish=lambda _: None)
    started_node.start()
    stack.wait(lambda: started_node._offers, "the canary's answer")
    yield started_node
    started_node.close()


def claimed(stack, source: str = "print(1)", lease_seconds: float = 30.0) -> lifecycle.Claim:
    stack.submit(source, wake=False)
    claim = lifecycle.claim(stack.database, "somebody", lease_seconds=lease_seconds)
    assert claim is not None
    return claim


def taken_away(stack, claim: lifecycle.Claim) -> None:
    """The lease runs out and the reaper takes the run back."""
    stack.wait(lambda: claim.public_id in lifecycle.expire_leases(stack.database).requeued, "the lease runs out")


def test_one_wakeup_runs_everything_that_waits(stack, node):
    ids = [stack.submit(f"print({n})", wake=False) for n in range(3)]
    assert tasks.execute_next(node, "cpu") == 3
    assert [stack.run(public_id).status for public_id in ids] == ["succeeded"] * 3
    assert tasks.execute_next(node, "cpu") == 0


def test_a_late_finish_writes_nothing(stack, node):
    claim = claimed(stack, lease_seconds=0.3)
    result = pipeline.run(node.supervisor, tasks.job_of(claim))
    taken_away(stack, claim)
    before = stack.run(claim.public_id)
    with pytest.raises(lifecycle.FencedOut):
        completion.finish(
            stack.database, claim, tasks.ending_of(result.outcome), result.outcome.record, result.judgement
        )
    lease = node.keeper.hold(claim)
    tasks._end(node, lease, result, live=False)
    node.keeper.drop(lease)
    assert lease.why == "fenced-out"
    assert stack.run(claim.public_id) == before


def test_a_run_taken_away_in_flight_ends_its_child(stack, node):
    claim = claimed(stack, LONG)
    with stack.database.begin() as transaction:
        lifecycle.request_cancel(transaction, claim.public_id)
    completion.finish(stack.database, claim, completion.Ending(status="canceled", error=cancel_error()), None, None)
    before, began = stack.run(claim.public_id), time.monotonic()
    tasks.execute(node, replace(claim, lease_seconds=1.0))
    assert time.monotonic() - began < 10
    assert stack.run(claim.public_id) == before


def cancel_error() -> lifecycle.RunError:
    return lifecycle.RunError(whose="asked", code="canceled", message="canceled")


def test_a_worker_cut_off_from_its_database_ends_its_child_before_its_lease(stack, tmp_path):
    away = Database(f"sqlite:///{tmp_path}/no-such-folder/away.db")
    keeper = Keeper(away, lambda: None)
    claim = claimed(stack, lease_seconds=2.0)
    began = time.monotonic()
    lease = keeper.hold(claim)
    keeper.start()
    assert lease.stop.wait(10)
    assert lease.why == "fenced-out"
    assert time.monotonic() - began < claim.lease_seconds
    keeper.close()
    away.close()


def test_the_watchdog_needs_neither_database_nor_keeper(stack):
    claim = claimed(stack, lease_seconds=2.0)
    stuck = threading.Event()
    keeper = Keeper(stack.database, lambda: stuck.wait(30) and None)
    keeper.start()
    began = time.monotonic()
    lease = keeper.hold(claim)
    assert lease.stop.wait(10)
    assert time.monotonic() - began < claim.lease_seconds
    stuck.set()
    keeper.close()


def test_a_run_that_was_just_being_claimed_is_handed_back_with_the_others(stack, node):
    node.drain(0.0)
    node.keeper.end_all("released")
    claim = claimed(stack, LONG)
    tasks.execute(node, claim)
    assert stack.run(claim.public_id).status == "queued"


def test_a_lease_is_renewed_as_long_as_it_is_held(stack, node):
    public_id = stack.submit("import time\ntime.sleep(6)", wake=False)
    assert tasks.execute_next(node, "cpu") == 1  # twice as long as the lease
    row = stack.run(public_id)
    assert (row.status, row.attempt) == ("succeeded", 1)


@pytest.mark.parametrize("due", [True, False], ids=["with a heartbeat", "between two heartbeats"])
def test_a_cancel_is_heard(stack, due):
    claim = claimed(stack)
    keeper = Keeper(stack.database, lambda: None)
    lease = keeper.hold(claim)
    with stack.database.begin() as transaction:
        lifecycle.request_cancel(transaction, claim.public_id)
    lease.renewed_at -= claim.lease_seconds / 2 if due else 0.0
    began = lease.renewed_at
    keeper._renew(lease)
    assert (lease.why, lease.stop.is_set(), lease.renewed_at > began) == ("canceled", True, due)


def test_a_cancel_asked_for_before_the_claim_wins(stack, node):
    claim = claimed(stack, LONG)
    tasks.execute(node, replace(claim, cancel_requested=True))
    assert stack.run(claim.public_id).status == "canceled"


def test_an_end_that_cannot_be_stored_is_ours_and_gives_the_run_back(stack, node):
    """An ending that the store refuses: it stands for an internal error anywhere between outcome and commit."""
    claim = claimed(stack)
    result = pipeline.run(node.supervisor, tasks.job_of(claim))
    unfit = replace(result, outcome=replace(result.outcome, status="no such status"))
    lease = node.keeper.hold(claim)
    tasks._end(node, lease, unfit, live=False)
    node.keeper.drop(lease)
    row = stack.run(claim.public_id)
    assert (row.status, row.attempt) == ("queued", 1)


def test_a_draining_worker_claims_nothing(stack, node):
    stack.submit("print(1)", wake=False)
    node.drain(30)
    assert tasks.execute_next(node, "cpu") == 0


def test_one_reaper_leads_and_the_next_follows_when_it_has_gone(stack, wait_until):
    first, second = (Leadership(Database(stack.settings.database_url), stack.settings.home) for _ in range(2))
    assert first.mine()
    assert first.mine()
    assert not second.mine()
    first.close()
    wait_until(second.mine, "the server has noticed that the first one's connection is closed")
    second.close()
