"""Into the queue: a snippet by its hash, a run, and its first event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.access.quotas import QuotaExceeded, demand_gpu
from store.database.ids import new_id, part
from store.database.session import Transaction
from store.records.expiry import partitions
from store.runs.model import RunRow, Submission
from store.runs.reading.run_rows import by_number
from store.runs.snippets import find_entry_file, keep
from store.runs.transitions import in_status, leave_event
from store.tables import SECONDS, Now, project, run, tenant

PRIORITY_SECONDS: Final = 60.0
"""Waiting that weighs as much as one step of priority."""

_RULES: Final = (
    sa.select(
        tenant.c.max_queued,
        sa.func.coalesce(project.c.keep_days, tenant.c.keep_days).label("keep_days"),
        sa.select(sa.func.count())
        .select_from(run)
        .where(run.c.tenant_id == sa.bindparam("tenant_id"), run.c.queue.in_(("cpu", "gpu")), in_status("queued"))
        .scalar_subquery()
        .label("queued"),
    )
    .select_from(tenant)
    .join(project, project.c.tenant_id == tenant.c.id)
    .where(tenant.c.id == sa.bindparam("tenant_id"), project.c.id == sa.bindparam("project_id"))
)
_NUMBER: Final = sa.select(run.c.id).where(
    run.c.public_id == sa.bindparam("public_id"), run.c.tenant_id == sa.bindparam("tenant_id")
)
_COUNTS: Final = (
    "tensors", "snapshots", "nodes", "backward_calls", "record_bytes", "errors", "warnings", "notes", "suppressed",
    "rules_judged", "rules_not_run",
)  # fmt: skip
NOTHING_YET: Final[dict[str, Any]] = dict.fromkeys(_COUNTS, 0) | {
    "record_state": "none",
    "pinned": False,
    "truncated": False,
    "version": 1,
    "events": 1,
}
"""What every new run's row says of its record and findings."""

_seconds: Final = sa.bindparam("rank_seconds", type_=SECONDS)
_QUEUE: Final = (
    sa.insert(run)
    .values(
        created_at=Now(),
        queued_at=Now(),
        rank_at=Now(_seconds),
        not_before=Now(),
        queue_deadline=Now(sa.bindparam("deadline_seconds", type_=SECONDS)),
        kept_until=Now(sa.bindparam("keep_seconds", type_=SECONDS)),
        status="queued",
        attempt=0,
        **NOTHING_YET,
    )
    .returning(run.c.id, run.c.part, run.c.events)
)


class QueueFull(QuotaExceeded):
    """This tenant has as many runs queued as it may; try again when some have run."""

    def __init__(self, used: int, allowed: int) -> None:
        super().__init__("queued", used, allowed)


def submit(transaction: Transaction, submission: Submission) -> RunRow:
    """Queue a run (`enqueue`), and read it as everybody sees it."""
    return by_number(transaction, enqueue(transaction, submission).number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """What a new run is known by: outside, and in the database."""

    id: str
    number: int


class QueuedCounts:
    """How many runs tenants have queued, for all that one transaction queues.

    Counting reads an entry of an index for each: with 10,000 queued, an audit of 1,000 would read ten million of them
    while nobody else writes to a SQLite file.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int, int, int]] = {}

    def keep_days(self, transaction: Transaction, tenant_id: int, project_id: int, more: int = 1) -> int:
        """So many more are queued in this project; how long their records are kept.

        Raises:
            QueueFull: the tenant may queue no more.
        """
        rules = self._known.get((tenant_id, project_id))
        if rules is None:
            row = transaction.execute(_RULES, {"tenant_id": tenant_id, "project_id": project_id}).one()
            rules = row.queued, row.max_queued, row.keep_days
        queued, most, days = rules
        if queued + more > most:
            raise QueueFull(queued, most)
        self._known[tenant_id, project_id] = queued + more, most, days
        return days


def enqueue(transaction: Transaction, submission: Submission, counted: QueuedCounts | None = None) -> Queued:
    """Queue a run: its snippet is found by hash or stored, a `queued` event written. Publish the wake-up after commit.

    Args:
        transaction: To write by.
        submission: What was asked.
        counted: Of this transaction, if it queues several.

    Raises:
        KeyError: `entry` is neither one of `files` nor a module among them, or `rerun_of` names no run of the tenant.
        QueueFull: the tenant may queue no more. QuotaExceeded: it has used its GPU seconds of this month.
    """
    if find_entry_file(submission.files, submission.entry) is None:
        raise KeyError(submission.entry)
    public_id = new_id("run")
    partitions.ensure(transaction, part(public_id))
    who = {"tenant_id": submission.tenant_id, "project_id": submission.project_id}
    keep_days = (counted or QueuedCounts()).keep_days(transaction, **who)
    if submission.queue == "gpu":
        demand_gpu(transaction, tenant_id=submission.tenant_id)
    row = transaction.execute(
        _QUEUE,
        who
        | _requested_values(submission)
        | {
            "public_id": public_id,
            "part": part(public_id),
            "snippet_id": _store_snippet(transaction, submission),
            "rerun_of_id": _rerun_of(transaction, submission),
            "rank_seconds": submission.priority * PRIORITY_SECONDS,
            "deadline_seconds": submission.queue_seconds,
            "keep_seconds": keep_days * 86400.0,
        },
    ).one()
    leave_event(transaction, row, "queued", public_id, payload={"queue": submission.queue})
    return Queued(id=public_id, number=row.id)


def _requested_values(submission: Submission) -> dict[str, Any]:
    return {
        "arguments": list(submission.arguments),
        "queue": submission.queue,
        "device_class": submission.device_class,
        "min_isolation": submission.min_isolation,
        "limits": submission.limits.to_column(),
        "capture": dict(submission.capture),
        "seed": submission.seed,
        "rules": None if submission.rules is None else dict(submission.rules),
        "priority": submission.priority,
        "labels": dict(submission.labels),
        "created_by": submission.created_by,
        "custom_id": submission.custom_id,
        "traceparent": submission.traceparent,
        "max_attempts": submission.max_attempts,
        "origin": "submitted" if submission.trial is None else "trial",
        "trial_of": None if submission.trial is None else submission.trial.finding,
        "trial_fix": None if submission.trial is None else submission.trial.fix,
    }


def _store_snippet(transaction: Transaction, submission: Submission) -> int:
    files, entry, named = submission.files, submission.entry, submission.named
    return keep(transaction, files, entry, named=named, tenant_id=submission.tenant_id).number


def _rerun_of(transaction: Transaction, submission: Submission) -> int | None:
    if submission.rerun_of is None:
        return None
    which = {"public_id": submission.rerun_of, "tenant_id": submission.tenant_id}
    number = transaction.execute(_NUMBER, which).scalar()
    if number is None:
        raise KeyError(submission.rerun_of)
    return number
