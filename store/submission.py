"""Into the queue: a snippet by its hash, a run, and its first event."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.ids import new_id, part
from store.moves import in_status, leave_event, tell
from store.run import RunRow, Submission
from store.run_rows import by_number
from store.session import Transaction
from store.tables import SECONDS, Now, project, run, snippet, snippet_file, tenant

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
_KNOWN: Final = sa.select(snippet.c.id).where(
    snippet.c.tenant_id == sa.bindparam("tenant_id"), snippet.c.sha256 == sa.bindparam("sha256")
)
_NUMBER: Final = sa.select(run.c.id).where(
    run.c.public_id == sa.bindparam("public_id"), run.c.tenant_id == sa.bindparam("tenant_id")
)
_FILE: Final = sa.insert(snippet_file)
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
        origin="submitted",
        record_state="none",
        pinned=False,
        truncated=False,
        attempt=0,
        version=1,
        events=1,
        tensors=0,
        snapshots=0,
        nodes=0,
        backward_calls=0,
        record_bytes=0,
        errors=0,
        warnings=0,
        notes=0,
        suppressed=0,
        rules_judged=0,
        rules_not_run=0,
    )
    .returning(run.c.id, run.c.part, run.c.events)
)


class QueueFull(Exception):
    """This tenant has as many runs queued as it may; try again when some have run."""

    def __init__(self, used: int, allowed: int) -> None:
        super().__init__(f"{used} runs are queued, and {allowed} may be; wait until some have run")
        self.used, self.allowed = used, allowed


def submit(transaction: Transaction, submission: Submission) -> RunRow:
    """Queue a run: its snippet is found by hash or stored, a `queued` event written. Publish the wake-up after commit.

    Raises:
        KeyError: `entry` is not one of `files`, or `rerun_of` names no run of the tenant.
        QueueFull: the tenant may queue no more.
    """
    if submission.entry not in submission.files:
        raise KeyError(submission.entry)
    who = {"tenant_id": submission.tenant_id, "project_id": submission.project_id}
    rules = transaction.execute(_RULES, who).one()
    if rules.queued >= rules.max_queued:
        raise QueueFull(rules.queued, rules.max_queued)
    public_id = new_id("run")
    row = transaction.execute(
        _QUEUE,
        who
        | _asked(submission)
        | {
            "public_id": public_id,
            "part": part(public_id),
            "snippet_id": _snippet(transaction, submission),
            "rerun_of_id": _rerun_of(transaction, submission),
            "rank_seconds": submission.priority * PRIORITY_SECONDS,
            "deadline_seconds": submission.queue_seconds,
            "keep_seconds": rules.keep_days * 86400.0,
        },
    ).one()
    leave_event(transaction, row, "queued", payload={"queue": submission.queue})
    tell(transaction, public_id)
    return by_number(transaction, row.id)


def _asked(submission: Submission) -> dict[str, Any]:
    return {
        "arguments": list(submission.arguments),
        "queue": submission.queue,
        "device_class": submission.device_class,
        "min_isolation": submission.min_isolation,
        "limits": submission.limits.stored(),
        "capture": dict(submission.capture),
        "seed": submission.seed,
        "priority": submission.priority,
        "labels": dict(submission.labels),
        "created_by": submission.created_by,
        "custom_id": submission.custom_id,
        "max_attempts": submission.max_attempts,
    }


def _rerun_of(transaction: Transaction, submission: Submission) -> int | None:
    if submission.rerun_of is None:
        return None
    which = {"public_id": submission.rerun_of, "tenant_id": submission.tenant_id}
    number = transaction.execute(_NUMBER, which).scalar()
    if number is None:
        raise KeyError(submission.rerun_of)
    return number


def _snippet(transaction: Transaction, submission: Submission) -> int:
    """Number of the snippet with this very content, stored now if it is new."""
    bodies = {path: text.encode() for path, text in sorted(submission.files.items())}
    digest = _digest(submission.entry, bodies)
    which = {"tenant_id": submission.tenant_id, "sha256": digest}
    known = transaction.execute(_KNOWN, which).scalar()
    if known is not None:
        return known
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    facts = {
        "public_id": new_id("snp"),
        "entry": submission.entry,
        "files": len(bodies),
        "size_bytes": sum(map(len, bodies.values())),
        "created_at": Now(),
    }
    added = transaction.execute(
        insert(snippet).values(which | facts).on_conflict_do_nothing().returning(snippet.c.id)
    ).scalar()
    if added is None:  # another transaction stored the same one since we looked, and has committed
        return transaction.execute(_KNOWN, which).scalar_one()
    rows = [
        {
            "snippet_id": added,
            "n": n,
            "path": path,
            "sha256": hashlib.sha256(body).digest(),
            "is_text": True,
            "body": body,
        }
        for n, (path, body) in enumerate(bodies.items())
    ]
    transaction.execute(_FILE, rows)
    return added


def _digest(entry: str, bodies: dict[str, bytes]) -> bytes:
    """SHA-256 over entry, paths and contents, each with its length in front, so that none runs into the next."""
    digest = hashlib.sha256()
    for piece in (entry.encode(), *(piece for path, body in bodies.items() for piece in (path.encode(), body))):
        digest.update(len(piece).to_bytes(8, "little") + piece)
    return digest.digest()
