"""The end of a run: one fenced transaction writes status, record, snapshots, findings, attempt and event, or nothing.

A record of many rows is written before, some tens of thousands at a time, each time under the fence, so that SQLite's
write lock is never held long; those rows are invisible until the last transaction names their attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from backprobe.record import encode
from backprobe.show.tensor_table import count_of_tensors
from store.database.session import Database, Transaction
from store.findings.findings import insert_findings
from store.findings.groups import Shower, show
from store.findings.trials import trial_facts
from store.records.bulk import Batch, write
from store.records.expiry.sweep import delete_records
from store.records.rows import record_batches
from store.runs.claims import CLOSE_FINISHED, MINE, mine, renew
from store.runs.model import ENDED, Claim, EndStatus, FencedOut, RunError
from store.runs.transitions import build_transition, leave_event
from store.tables import Now, project, run, tenant
from store.webhooks.end_events import tell_ended, tell_groups

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Judgement, WhyNone

FLUSH_ROWS: Final = 5000
"""Rows in one transaction: near 50 ms on SQLite, whose other writers wait meanwhile."""

_SHOWN: Final = tuple(
    run.c[name] for name in ("id", "part", "public_id", "attempt", "events", "tenant_id", "project_id")
)
_STATE: Final = sa.select(run.c.status, run.c.attempt, run.c.result_attempt).where(run.c.id == sa.bindparam("my_run"))
_KEEP_SECONDS: Final = (
    sa.select(sa.func.coalesce(project.c.keep_days, tenant.c.keep_days) * 86400.0)
    .join_from(project, tenant, tenant.c.id == project.c.tenant_id)
    .where(project.c.id == run.c.project_id)
    .correlate(run)
    .scalar_subquery()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What a program printed to stdout or stderr.

    Attributes:
        tail: The last of it, decoded with errors replaced. total_bytes: of all of it.
    """

    tail: str = ""
    total_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended, in facts of the trusted side only.

    Attributes:
        status: Where it goes. `lost` only if ours broke and no attempt is worth making (else `runs.release`).
        error: None exactly for `succeeded`.
        limit: Name of the limit that stopped it. signal: that killed the child.
        isolation: What it really ran under: `{"level": "none", ...}`; the store adds `demanded`.
        stdout, stderr: Tails.
        torch: The child's torch version; by default the record's header tells.
    """

    status: EndStatus
    error: RunError | None = None
    exit_code: int | None = None
    signal: int | None = None
    limit: str | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    max_rss_bytes: int | None = None
    isolation: Mapping[str, Any] | None = None
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    torch: str | None = None


def finish(
    database: Database,
    claim: Claim,
    ending: Ending,
    record: Record | None,
    judgement: Judgement | None,
    whys: Mapping[int, WhyNone] | None = None,
    *,
    live: bool = False,
) -> bool:
    """End a run and make its record visible, all at once.

    Args:
        database: Where to.
        claim: Whose attempt ends it.
        ending: How it ended.
        record: What came of the record; None: nothing, not even its header.
        judgement: None: not judged.
        whys: Why tensors have no gradient, by tensor (`backprobe.rules.analysis.gradients.why_none`).
        live: Rows of this attempt were appended as it went (`store.records.live_snapshots`); the record replaces them.

    Returns:
        True: ended by this call. False: this very attempt had ended it before (a commit whose answer was lost).

    Raises:
        FencedOut: the attempt is stale; nothing was written.
        BadRecord: a number in the record does not fit its column; nothing was written. Finish again without the record.
    """
    if judgement is not None and claim.unnamed is not None:
        judgement = judgement.of_unnamed(claim.unnamed)
    streams = {"stdout": asdict(ending.stdout), "stderr": asdict(ending.stderr)}
    batches = record_batches(record, whys, {"streams": streams} | head_of_judgement(judgement))
    facts = _facts(claim, ending, record, judgement)
    if claim.trial is not None:
        facts |= trial_facts(database, claim, record, judgement, ending.limit)
    last = _flush_batches(database, claim, batches)
    below = claim.attempt + (live and last is batches)  # before a flush they were dropped already
    for attempts_left in (1, 0):
        try:
            return _finish(database, claim, ending.status, facts, last, judgement, below)
        except DBAPIError as error:
            if not (error.connection_invalidated and attempts_left):
                raise
    raise AssertionError


def _finish(
    database: Database,
    claim: Claim,
    status: str,
    facts: Mapping[str, Any],
    batches: Sequence[Batch],
    judgement: Judgement | None,
    below: int,
) -> bool:
    with database.begin() as transaction:
        given = {f"its_{name}": value for name, value in facts.items()}
        row = transaction.execute(_ending(status, tuple(facts)), mine(claim) | given).first()
        if row is None:
            return _ended_before(transaction, claim)
        if below > 1:
            delete_records(transaction, claim.part, claim.run_id, below=below)
        write(transaction, claim.key, batches)
        if judgement is not None:
            insert_findings(transaction, claim, judgement)
            if claim.trial is None:  # a trial runs an edited copy of the program: no news of the project
                who = Shower(run_id=row.id, public_id=row.public_id, tenant_id=row.tenant_id, project_id=row.project_id)
                tell_groups(transaction, row, show(transaction, who, judgement.findings))
        tell_ended(transaction, row, status, None if judgement is None else _by_level(facts))
        beside = (CLOSE_FINISHED, mine(claim) | {"its_isolation": facts["isolation"]})
        payload = {"status": status}
        leave_event(transaction, row, "status", row.public_id, attempt=claim.attempt, payload=payload, beside=beside)
    return True


@cache
def _ending(status: str, names: tuple[str, ...]) -> sa.Update:
    """Build the fenced UPDATE that ends a run. It is cached because building takes a tenth of the time of an end."""
    values = {name: sa.bindparam(f"its_{name}", type_=run.c[name].type) for name in names}
    ended = build_transition("running", status).where(*MINE).values(values | {"kept_until": Now(_KEEP_SECONDS)})
    return ended.returning(*_SHOWN)


def _by_level(facts: Mapping[str, Any]) -> dict[str, int]:
    return {"error": facts["errors"], "warning": facts["warnings"], "note": facts["notes"]}


def _ended_before(transaction: Transaction, claim: Claim) -> bool:
    """Return False if a commit that was in doubt had happened. Otherwise another worker owns the run.

    Raises:
        FencedOut: so it is.
    """
    state = transaction.execute(_STATE, {"my_run": claim.run_id}).first()
    if state is not None and state.status in ENDED and state.result_attempt == claim.attempt:
        return False
    raise FencedOut(claim.public_id, claim.attempt)


def _flush_batches(database: Database, claim: Claim, batches: list[Batch]) -> list[Batch]:
    """Write all but the last rows of a large record, under the fence; what is left for the finishing transaction.

    Raises:
        FencedOut: the attempt is stale; its rows so far are invisible, and deleted by who took over.
    """
    if sum(len(batch.rows) for batch in batches) <= FLUSH_ROWS:
        return batches
    with database.begin() as transaction:  # an earlier call may have flushed, and then lost its connection
        renew(transaction, claim)
        delete_records(transaction, claim.part, claim.run_id, below=claim.attempt + 1)
    head, *rest = batches
    for batch in rest:
        for start in range(0, len(batch.rows), FLUSH_ROWS):
            with database.begin() as transaction:
                renew(transaction, claim)
                piece = Batch(table=batch.table, rows=batch.rows[start : start + FLUSH_ROWS])
                write(transaction, claim.key, [piece])
    return [head]


def _facts(claim: Claim, ending: Ending, record: Record | None, judgement: Judgement | None) -> dict[str, Any]:
    isolation = None if ending.isolation is None else dict(ending.isolation) | {"demanded": claim.min_isolation}
    return {
        "result_attempt": claim.attempt,
        "error": None if ending.error is None else asdict(ending.error),
        "error_code": None if ending.error is None else ending.error.code,
        "exit_code": ending.exit_code,
        "signal": ending.signal,
        "limit_hit": ending.limit,
        "wall_seconds": ending.wall_seconds,
        "cpu_seconds": ending.cpu_seconds,
        "max_rss_bytes": ending.max_rss_bytes,
        "isolation": isolation,
        "torch_version": ending.torch,
        **_of_record(record, ending.torch),
        **facts_of_judgement(judgement),
    }


def _of_record(record: Record | None, torch: str | None) -> dict[str, Any]:
    if record is None:
        return {"record_state": "none", "truncated": False, "record_bytes": 0}
    return {
        "record_state": "partial" if record.end is None else "whole",
        "truncated": record.truncated,
        "torch_version": torch or record.header.environment.torch,
        "tier": record.header.tier,
        "tensors": count_of_tensors(record),
        "snapshots": len(record.snapshots),
        "nodes": len(record.nodes),
        "backward_calls": len(record.backward_calls),
        "record_bytes": sum(map(len, encode(record))),
        "peak_held_bytes": max((call.held_bytes for call in record.backward_calls), default=None),
    }


def facts_of_judgement(judgement: Judgement | None) -> dict[str, Any]:
    """Columns of `run` that tell a judgement in short; none without one."""
    if judgement is None:
        return {}
    shown = [finding.level for finding in judgement.findings if finding.suppressed is None]
    return {
        "errors": shown.count("error"),
        "warnings": shown.count("warning"),
        "notes": shown.count("note"),
        "suppressed": len(judgement.findings) - len(shown),
        "ruleset": judgement.ruleset,
        "rules_judged": judgement.rules_judged,
        "rules_not_run": len(judgement.not_run),
    }


def head_of_judgement(judgement: Judgement | None) -> dict[str, Any]:
    """Columns of `record` that say what the rules could judge and in what state each invariant is."""
    if judgement is None:
        return {"rules_not_run": [], "checks": None}
    return {
        "rules_not_run": [asdict(rule) for rule in judgement.not_run],
        "checks": [msgspec.structs.asdict(check) for check in judgement.checks],
    }
