"""What a wake-up sets off: claim the next run, run it with no transaction open, finish it under the fence; again.

1. Claim and finish are the store's, each in a short transaction.
2. A run whose lease is no longer ours is dropped without a word to the database.
3. An internal failure gives the run back; a failure of the user's program ends it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from structlog.contextvars import bound_contextvars

from backprobe.record import BadRecord
from backprobe.rules import kept_options
from store.runs import completion, lifecycle
from store.telemetry.trace import Span, continue_span
from workers import pipeline
from workers.lease import Lease
from workers.node import Node
from workers.pipeline import Result
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.pipe import text_of

MOST_RUNS: Final = 50
MOST_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 0.5

_log: Final = logging.getLogger(__name__)


def execute_next(node: Node, queue: lifecycle.Queue) -> int:
    """Execute runs of a queue until none is left, or for a while; then wake somebody up again. How many comes back."""
    began, done = time.monotonic(), 0
    while done < MOST_RUNS and time.monotonic() - began < MOST_SECONDS:
        claim = node.claim(queue)
        if claim is None:
            return done
        _run_attempt(node, claim)
        done += 1
    node.wake(queue)
    return done


def _run_attempt(node: Node, claim: lifecycle.Claim) -> None:
    span, at = node.spans.span(continue_span(claim.traceparent)), time.time_ns()
    about = {"run": claim.public_id, "attempt": claim.attempt, "tenant": claim.tenant_id, "worker": node.id}
    with bound_contextvars(**about, **({} if span is None else span.fields())):
        try:
            execute(node, claim, span)
        except Exception as error:  # noqa: BLE001 - the fence around a task: its lease runs out and the reaper takes over
            if not node.database.away(error):
                _log.error("attempt %d of %s was dropped: %s", claim.attempt, claim.public_id, type(error).__name__)
            node.spans.add(span, "attempt", at, "consumer", failed=True, backprobe__run=claim.public_id)
        else:
            node.spans.add(span, "attempt", at, "consumer", backprobe__run=claim.public_id)
        finally:
            node.admission.give_back(claim)


def execute(node: Node, claim: lifecycle.Claim, span: Span | None = None) -> None:
    """One attempt, from claim to end."""
    began = time.monotonic()
    _log.info("an attempt begins")
    lease = node.keeper.hold(claim)
    feed = node.feeds.open(lease)
    try:
        options = kept_options(claim.rules)
        step = partial(node.spans.record_span, span)
        with node.sandbox() as supervisor:
            result = pipeline.run(supervisor, job_of(claim), lease.stop, feed.take, options, step)
        with step("store"):
            _end(node, lease, result, live=node.feeds.close(lease))
        said = {"status": lease.why or result.outcome.status, "ms": round((time.monotonic() - began) * 1000)}
        _log.info("an attempt has ended", extra=said)
    finally:
        node.feeds.close(lease)
        node.keeper.drop(lease)


def job_of(claim: lifecycle.Claim) -> Job:
    """Return what the sandbox is to run for a claim."""
    return Job(
        files=claim.files,
        entry=claim.entry,
        arguments=claim.arguments,
        tier=claim.capture.get("tier", "full"),
        every=claim.capture.get("every"),
        histograms=claim.capture.get("histograms", False),
        check=claim.capture.get("check") == "gradients",
        seed=claim.seed,
        limits=claim.limits,
    )


def _end(node: Node, lease: Lease, result: Result, *, live: bool) -> None:
    """Write the end of an attempt while it is ours to write; one that cannot be written is our failure: given back."""
    write = _write
    while lease.why != "fenced-out" and lease.safe:
        try:
            write(node, lease, result, live=live)
        except lifecycle.FencedOut:
            lease.end("fenced-out")
        except Exception as error:  # noqa: BLE001 - the fence around a task
            if node.database.away(error) or isinstance(error, OSError):
                time.sleep(AGAIN_SECONDS)  # or the commit is in doubt: ask again while the lease holds
                continue
            _log.error("the end of %s was not written", lease.claim.public_id, exc_info=error)
            if write is not _write:
                return
            write = _give_back
        else:
            return
    _log.warning("attempt %d of %s is no longer ours", lease.claim.attempt, lease.claim.public_id)


def _give_back(node: Node, lease: Lease, result: Result, *, live: bool) -> None:  # noqa: ARG001 - giving back clears all
    reason = f"the end of the run ({result.outcome.status}) could not be stored; the worker's log says where"
    lifecycle.release(node.database, lease.claim, outcome="sandbox-broke", reason=reason)


def _write(node: Node, lease: Lease, result: Result, *, live: bool) -> None:
    outcome, claim = result.outcome, lease.claim
    if lease.why == "released":
        lifecycle.release(node.database, claim)
    elif outcome.status == "lost":
        reason = outcome.error.message if outcome.error else outcome.reason
        status = lifecycle.release(node.database, claim, outcome="sandbox-broke", reason=reason)
        _log.error("the sandbox broke under %s, which is now %s: %s", claim.public_id, status, reason)
    else:
        ending = ending_of(outcome)
        try:
            completion.finish(node.database, claim, ending, outcome.record, result.judgement, result.whys, live=live)
        except BadRecord:
            completion.finish(node.database, claim, ending, None, None, live=live)


def ending_of(outcome: Outcome) -> completion.Ending:
    """Express an outcome in the store's words."""
    facts = outcome.facts
    return completion.Ending(
        status=outcome.status,
        error=outcome.error,
        exit_code=facts.exit_code,
        signal=facts.signal,
        limit=outcome.limit_hit,
        wall_seconds=round(facts.wall_seconds, 6),
        cpu_seconds=facts.cpu_seconds,
        max_rss_bytes=facts.max_rss_bytes,
        isolation={**outcome.isolation, **_outcome_values(outcome)},
        stdout=completion.Stream(tail=text_of(facts.stdout), total_bytes=facts.stdout_bytes),
        stderr=completion.Stream(tail=text_of(facts.stderr), total_bytes=facts.stderr_bytes),
        torch=None if outcome.record is None else outcome.record.header.environment.torch,
    )


def _outcome_values(outcome: Outcome) -> Mapping[str, Any]:
    return {"told_by": outcome.told_by, "reason": outcome.reason}
