"""Runs as rows of the API: one by its id, or a page of them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.findings.judging_attempts import MOST_ATTEMPTS
from store.records.reader import at_key
from store.runs.model import (
    ENDED,
    FindingCounts,
    Outcome,
    RecorderShort,
    RecordShort,
    RunError,
    RunKey,
    RunPage,
    RunRow,
)
from store.runs.reading.run_filter import ALL, RunFilter
from store.runs.transitions import in_status
from store.runs.trial import TrialShort
from store.tables import audit, audit_item, project, record, recorder, run, snippet, step

_again: Final = run.alias("again")
_LIVE: Final = sa.and_(
    in_status("running"),
    sa.exists().where(record.c.part == run.c.part, record.c.run_id == run.c.id, record.c.attempt == run.c.attempt),
)
"""It runs, and the head of its attempt's record has come: a dead attempt's rows are gone before the next one begins."""

_AUDIT: Final = (
    sa.select(audit.c.public_id)
    .join_from(audit_item, audit, audit.c.id == audit_item.c.audit_id)
    .where(audit_item.c.run_id == run.c.id)
    .order_by(audit_item.c.audit_id.desc())
    .limit(1)
    .correlate(run)
    .scalar_subquery()
)
"""The last audit that it is an item of."""

SELECT_RUN: Final = (
    sa.select(
        run,
        project.c.public_id.label("project"),
        snippet.c.public_id.label("snippet"),
        snippet.c.entry.label("entry"),
        snippet.c.named.label("named"),
        _again.c.public_id.label("rerun_of"),
        _LIVE.label("live"),
        _AUDIT.label("audit"),
        recorder.c.next_frame,
        recorder.c.rows.label("rows_sent"),
        recorder.c.environment,
    )
    .join_from(run, project, project.c.id == run.c.project_id)
    .outerjoin(snippet, snippet.c.id == run.c.snippet_id)
    .outerjoin(_again, _again.c.id == run.c.rerun_of_id)
    .outerjoin(recorder, recorder.c.run_id == run.c.id)
)
_BY_PUBLIC_ID: Final = SELECT_RUN.where(
    run.c.public_id == sa.bindparam("public_id"), run.c.tenant_id == sa.bindparam("tenant_id")
)
_STATUS: Final = sa.select(run.c.status).where(
    run.c.public_id == sa.bindparam("public_id"), run.c.tenant_id == sa.bindparam("tenant_id")
)
_BY_ID: Final = SELECT_RUN.where(run.c.id == sa.bindparam("run_id"))
_other: Final = run.alias("other")
_AHEAD: Final = (
    sa.select(sa.func.count())
    .select_from(_other)
    .where(
        _other.c.status == sa.literal_column("'queued'"),
        _other.c.queue == run.c.queue,
        sa.tuple_(_other.c.rank_at, _other.c.id) < sa.tuple_(run.c.rank_at, run.c.id),
    )
    .correlate(run)
    .scalar_subquery()
)
_POSITION: Final = sa.select(_AHEAD).where(run.c.id == sa.bindparam("run_id"), in_status("queued"))


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> RunRow | None:
    """One run by its public id, with its place in the queue and its steps; None: no such run of this tenant."""
    row = transaction.execute(_BY_PUBLIC_ID, {"public_id": public_id, "tenant_id": tenant_id}).first()
    if row is None:
        return None
    position = None
    if row.status == "queued":
        position = transaction.execute(_POSITION, {"run_id": row.id}).scalar()
    found = run_row(row, position)
    return found if found.key is None or row.record_state == "expired" else _with_steps(transaction, found, found.key)


def _with_steps(transaction: Transaction, found: RunRow, key: RunKey) -> RunRow:
    query = sa.select(sa.func.coalesce(sa.func.max(step.c.step) + 1, 0), sa.func.count().filter(step.c.sampled)).where(
        at_key(step, key)
    )
    made, looked_at = transaction.execute(query).one()
    return replace(found, record=replace(found.record, steps_made=made, steps_looked_at=looked_at))


def by_public_id(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> RunRow | None:
    """One run without its place in the queue and its steps; None: no such run of this tenant."""
    row = transaction.execute(_BY_PUBLIC_ID, {"public_id": public_id, "tenant_id": tenant_id}).first()
    return None if row is None else run_row(row)


def status_of(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> str | None:
    """How a run stands, without the rest of it: who waits for its end looks often. None: no such run of this tenant."""
    return transaction.execute(_STATUS, {"public_id": public_id, "tenant_id": tenant_id}).scalar()


def by_number(transaction: Transaction, run_id: int) -> RunRow:
    """One run by its own number, which exists."""
    return run_row(transaction.execute(_BY_ID, {"run_id": run_id}).one())


def page(
    transaction: Transaction,
    which: RunFilter = ALL,
    *,
    tenant_id: int = 1,
    project_id: int | None = None,
    after: int | None = None,
    limit: int = 100,
    oldest_first: bool = False,
) -> RunPage:
    """List runs by keyset: none comes twice or is left out, whatever is submitted meanwhile.

    Args:
        transaction: To read by.
        which: Of those.
        tenant_id: Whose runs.
        project_id: Only this one's; None: all of the tenant's.
        after: `RunPage.next` of the page before; None: the first page.
        limit: Runs at most.
        oldest_first: The order; else the newest come first.
    """
    owner: Any = run.c.tenant_id
    created: Any = run.c.created_at
    if which.narrow and transaction.dialect.name == "sqlite":  # it knows no numbers, and would walk along `run_newest`
        owner = sa.literal_column("+run.tenant_id", sa.BigInteger())
        created = sa.literal_column("+run.created_at", sa.String())
    query = SELECT_RUN.where(owner == tenant_id, *which.conditions(transaction, tenant_id))
    if project_id is not None:
        query = query.where(run.c.project_id == project_id)
    if after is not None:
        edge = run.alias("edge")
        place = sa.select(edge.c.created_at).where(edge.c.id == after).scalar_subquery()
        beyond = operator.gt if oldest_first else operator.lt
        query = query.where(
            sa.or_(beyond(run.c.created_at, place), sa.and_(run.c.created_at == place, beyond(run.c.id, after)))
        )
    order = (created, run.c.id) if oldest_first else (created.desc(), run.c.id.desc())
    rows = transaction.execute(query.order_by(*order).limit(limit + 1)).all()
    more = len(rows) > limit
    return RunPage(items=tuple(run_row(row) for row in rows[:limit]), next=rows[limit - 1].id if more else None)


def run_row(row: Any, position: int | None = None) -> RunRow:
    """Convert a row of `SELECT_RUN` to the run that callers get."""
    return RunRow(
        id=row.public_id,
        status=row.status,
        ended=row.status in ENDED,
        origin=row.origin,
        version=row.version,
        project=row.project,
        snippet=row.snippet,
        entry=_entry(row),
        named=row.named,
        arguments=tuple(row.arguments),
        labels=row.labels,
        queue=row.queue,
        device_class=row.device_class,
        priority=row.priority,
        queue_position=position,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        isolation=row.isolation,
        created_at=row.created_at,
        started_at=row.started_at,
        cancel_requested_at=row.cancel_requested_at,
        finished_at=row.finished_at,
        kept_until=row.kept_until,
        pinned=row.pinned,
        outcome=_outcome(row),
        error=None if row.error is None else RunError(**row.error),
        limits=row.limits,
        capture=row.capture,
        seed=row.seed,
        rules=row.rules,
        record=_record_short(row),
        findings=_counts(row),
        recorder=_recorder(row),
        audit=row.audit,
        custom_id=row.custom_id,
        rerun_of=row.rerun_of,
        trial=_trial(row),
        created_by=row.created_by,
        min_isolation=row.min_isolation,
        key=_key(row),
        record_gone=row.record_gone,
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        run_id=row.id,
    )


def _key(row: Any) -> RunKey | None:
    attempt = row.attempt if row.live else row.result_attempt
    return None if attempt is None else RunKey(part=row.part, run_id=row.id, attempt=attempt)


def _trial(row: Any) -> TrialShort | None:
    if row.trial_of is None:
        return None
    verdict, why = row.trial_verdict, row.trial_why
    if verdict is None and row.status in ENDED:  # canceled, lost, or without a record
        verdict, why = "not-tried", f"its run is {row.status} and left nothing to judge"
    return TrialShort(finding=row.trial_of, fix=row.trial_fix, verdict=verdict, why=why)


def _entry(row: Any) -> str | None:
    """Return what is started: a snippet's entry, or the script that a watched job's recorder named."""
    environment: Mapping[str, str] = row.environment or {}
    return row.entry or environment.get("script")


def _outcome(row: Any) -> Outcome:
    return Outcome(
        exit_code=row.exit_code,
        signal=row.signal,
        limit=row.limit_hit,
        wall_seconds=row.wall_seconds,
        cpu_seconds=row.cpu_seconds,
        max_rss_bytes=row.max_rss_bytes,
    )


NOT_CAPTURED: Final[Mapping[str, tuple[str, ...]]] = {
    "state": ("value", "grad_stats", "nodes", "edges", "saved", "retention", "leaf_grads"),
    "grad": ("value", "grad_stats"),
}
"""Facts that a tier leaves out; a reader must never draw them as None or 0."""


def _record_short(row: Any) -> RecordShort:
    return RecordShort(
        state=row.record_state,
        attempt=row.attempt if row.live else row.result_attempt,
        live=bool(row.live),
        tensors=row.tensors,
        snapshots=row.snapshots,
        nodes=row.nodes,
        backward_calls=row.backward_calls,
        bytes=row.record_bytes,
        peak_held_bytes=row.peak_held_bytes,
        truncated=row.truncated,
        not_captured=NOT_CAPTURED.get(row.tier, ()),
        torch=row.torch_version,
        tier=row.tier,
    )


def _recorder(row: Any) -> RecorderShort | None:
    if row.next_frame is None:
        return None
    return RecorderShort(
        next_frame=row.next_frame, rows=row.rows_sent, heard_at=row.heartbeat_at, environment=row.environment
    )


def _counts(row: Any) -> FindingCounts:
    return FindingCounts(
        error=row.errors,
        warning=row.warnings,
        note=row.notes,
        suppressed=row.suppressed,
        ruleset=row.ruleset,
        rules_judged=row.rules_judged,
        rules_not_run=row.rules_not_run,
        judging_attempts=row.judge_attempts,
        quarantined=row.judge_attempts >= MOST_ATTEMPTS,
    )
