"""Audits: runs that are judged together. Their items belong to runs; `judging.py` says what came of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from store.database.ids import new_id
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.runs.reading.run_events import Standing
from store.runs.reading.run_filter import build_label_conditions
from store.runs.transitions import tell
from store.tables import Now, audit, audit_item, audit_verdict, policy, project, run

_base: Final = audit.alias("base")
_other: Final = audit_item.alias("other")
_SELECT: Final = (
    sa.select(
        audit,
        project.c.public_id.label("project"),
        policy.c.public_id.label("policy"),
        policy.c.revision.label("policy_revision"),
        _base.c.public_id.label("baseline"),
    )
    .join_from(audit, project, project.c.id == audit.c.project_id)
    .outerjoin(policy, policy.c.id == audit.c.policy_id)
    .outerjoin(_base, _base.c.id == audit.c.baseline_id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """What an audit came to under one ruleset.

    Attributes:
        verdict: passed or failed. counts: `items` by verdict, `findings` new, known and gone, and `reasons`.
    """

    ruleset: str
    verdict: str
    counts: Mapping[str, Any]
    judged_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One audit.

    Attributes:
        id, project, policy, baseline: Public ids. policy_revision: the one it is judged by.
        status: open, running, judged or canceled. items: how many. running: of those, not ended.
        refused: of those, without a run.
        verdicts: By ruleset, the newest last.
        number, project_id, policy_id, baseline_id, tenant_id: Not shown.
    """

    id: str
    name: str
    status: str
    version: int
    project: str
    policy: str | None
    policy_revision: int | None
    baseline: str | None
    labels: Mapping[str, str]
    items: int
    running: int
    refused: int
    verdicts: tuple[VerdictRow, ...]
    created_by: str
    created_at: str
    finished_at: str | None
    number: int
    tenant_id: int
    project_id: int
    policy_id: int | None
    baseline_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Some audits, newest first; `next` is the `after` of the next page or None."""

    items: tuple[Audit, ...]
    next: tuple[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """An item to be: exactly one of `run_id` and `problem`; `custom_id` None: it has none, or one that is taken.

    Attributes:
        known: The run was there before, and shows from now on whose item it is.
    """

    custom_id: str | None
    run_id: int | None = None
    known: bool = False
    problem: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAudit:
    """An audit to be; numbers are those of rows."""

    name: str
    project_id: int
    created_by: str
    policy_id: int | None = None
    baseline_id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


def create(transaction: Transaction, new: NewAudit, items: Sequence[NewItem], *, tenant_id: int = 1) -> str:
    """Store an audit with all its items; its public id.

    Raises:
        IntegrityError: two items have one `custom_id`.
    """
    public_id, number = begin(transaction, new, tenant_id=tenant_id)
    add(transaction, number, 0, items)
    transaction.execute(sa.update(audit).where(audit.c.id == number).values(status="running", items=len(items)))
    return public_id


def begin(transaction: Transaction, new: NewAudit, *, tenant_id: int = 1) -> tuple[str, int]:
    """Store an audit that is open and has no item yet; its public id and its number."""
    public_id = new_id("aud")
    values = {name: getattr(new, name) for name in ("name", "project_id", "created_by", "policy_id", "baseline_id")}
    values |= {"public_id": public_id, "tenant_id": tenant_id, "labels": dict(new.labels), "items": 0}
    insert = sa.insert(audit).values(values | {"status": "open", "created_at": Now(), "version": 1})
    return public_id, transaction.execute(insert.returning(audit.c.id)).scalar_one()


def add(transaction: Transaction, number: int, first: int, items: Sequence[NewItem]) -> None:
    """Store items of an audit from place `first` on; the caller counts them in `audit.items`.

    Raises:
        IntegrityError: a `custom_id` is there already.
    """
    known = sorted({item.run_id for item in items if item.run_id is not None and item.known})
    rows = [
        {
            "audit_id": number,
            "n": n,
            "custom_id": item.custom_id,
            "run_id": item.run_id,
            "problem": None if item.problem is None else dict(item.problem),
            "ended": item.run_id is None,
        }
        for n, item in enumerate(items, first)
    ]
    if rows:
        transaction.execute(sa.insert(audit_item), rows)
    if known:
        seen = sa.update(run).where(run.c.id.in_(known))
        transaction.execute(seen.values(version=run.c.version + 1))


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1, to_change: bool = False) -> Audit | None:
    """One audit; None: the tenant has none with this id.

    Args:
        to_change: Nobody else changes it before this transaction ends.
    """
    which = (audit.c.public_id == public_id, audit.c.tenant_id == tenant_id)
    if to_change:
        transaction.execute(sa.select(audit.c.id).where(*which).with_for_update())
    rows = transaction.execute(_SELECT.where(*which)).all()
    found = _rows_to_audits(transaction, rows)
    return found[0] if found else None


def load_by_number(transaction: Transaction, number: int) -> Audit:
    """Load the audit with this number."""
    return _rows_to_audits(transaction, transaction.execute(_SELECT.where(audit.c.id == number)).all())[0]


def page(  # noqa: PLR0913 - a filter each
    transaction: Transaction,
    *,
    tenant_id: int = 1,
    of_project: str | None = None,
    of_policy: str | None = None,
    status: Sequence[str] = (),
    verdict: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    after: tuple[str, int] | None = None,
    limit: int = 100,
) -> AuditPage:
    """Audits, newest first.

    Args:
        transaction: To read by.
        tenant_id: Whose.
        of_project: Public id of the only project; None: all. of_policy: likewise.
        of_policy: See of_project.
        status: Any of these; empty: all.
        verdict: passed, failed: of those under any ruleset.
        labels: All of these.
        after: `AuditPage.next` of the page before; None: the first page.
        limit: Audits at most.
    """
    query = _SELECT.where(audit.c.tenant_id == tenant_id, *build_label_conditions(audit.c.labels, labels or {}))
    for column, value in ((project.c.public_id, of_project), (policy.c.public_id, of_policy)):
        if value is not None:
            query = query.where(column == value)
    if status:
        query = query.where(audit.c.status.in_(status))
    if verdict:
        of = sa.exists().where(audit_verdict.c.audit_id == audit.c.id, audit_verdict.c.verdict.in_(verdict))
        query = query.where(of.correlate(audit))
    if after is not None:
        at, number = after
        query = query.where(sa.or_(audit.c.created_at < at, sa.and_(audit.c.created_at == at, audit.c.id < number)))
    rows = transaction.execute(query.order_by(audit.c.created_at.desc(), audit.c.id.desc()).limit(limit + 1)).all()
    found = _rows_to_audits(transaction, rows[:limit])
    return AuditPage(items=found, next=(found[-1].created_at, found[-1].number) if len(rows) > limit else None)


def standing(transaction: Transaction, numbers: Collection[int]) -> dict[int, Standing]:
    """Version of each of these audits, and whether it has ended; one that there is not is not in it."""
    if not numbers:
        return {}
    query = sa.select(audit.c.id, audit.c.version, audit.c.finished_at).where(in_numbers(audit.c.id, numbers))
    return {row.id: (row.version, row.finished_at is not None) for row in transaction.execute(query)}


def cancel(transaction: Transaction, found: Audit) -> tuple[str, ...]:
    """End an audit that is not judged; return public ids of its unfinished runs, for the caller to cancel.

    Runs that were there before the audit go on: they have no `custom_id`, or were begun by another audit.
    """
    waiting = sa.update(audit).where(audit.c.id == found.number, audit.c.status.in_(("open", "running")))
    ended = waiting.values(status="canceled", finished_at=Now(), version=audit.c.version + 1)
    if not transaction.execute(ended).rowcount:
        return ()
    tell(transaction, found.id)
    first = sa.select(sa.func.min(_other.c.audit_id)).where(_other.c.run_id == run.c.id).correlate(run)
    going = (
        sa.select(run.c.public_id)
        .join_from(audit_item, run, run.c.id == audit_item.c.run_id)
        .where(audit_item.c.audit_id == found.number, run.c.status.in_(("queued", "running")))
        .where(run.c.custom_id == audit_item.c.custom_id, first.scalar_subquery() == found.number)
    )
    return tuple(transaction.execute(going).scalars())


def again(transaction: Transaction, found: Audit) -> None:
    """Have the runs of an ended audit judged by today's rules, then the audit: a second verdict beside the first.

    Trials among them stay as they are judged.
    """
    # the audit first, then its runs: so does who deletes it
    this = sa.update(audit).where(audit.c.id == found.number, audit.c.status == "judged")
    transaction.execute(this.values(status="running", finished_at=None, version=audit.c.version + 1))
    mine = sa.select(audit_item.c.run_id).where(audit_item.c.audit_id == found.number)
    kept = (run.c.id.in_(mine), run.c.record_state.in_(("whole", "partial")), run.c.result_attempt.is_not(None))
    judged = run.c.origin != sa.literal_column("'trial'")  # nobody judges a trial again: it would be waited for forever
    transaction.execute(sa.update(run).where(*kept, judged).values(judge_due_at=Now(), version=run.c.version + 1))
    tell(transaction, found.id)


def _rows_to_audits(transaction: Transaction, rows: Iterable[Any]) -> tuple[Audit, ...]:
    listed = list(rows)
    numbers = [row.id for row in listed]
    counts = sa.select(
        audit_item.c.audit_id,
        sa.func.sum(sa.case((audit_item.c.ended, 0), else_=1)).label("running"),
        sa.func.sum(sa.case((audit_item.c.run_id.is_(None), 1), else_=0)).label("refused"),
    )
    counts = counts.where(audit_item.c.audit_id.in_(numbers)).group_by(audit_item.c.audit_id)
    counted = {row.audit_id: row for row in transaction.execute(counts)}
    verdicts: dict[int, list[VerdictRow]] = {number: [] for number in numbers}
    query = sa.select(audit_verdict).where(audit_verdict.c.audit_id.in_(numbers))
    for row in transaction.execute(query.order_by(audit_verdict.c.judged_at, audit_verdict.c.ruleset)):
        names = ("ruleset", "verdict", "counts", "judged_at")
        verdicts[row.audit_id].append(VerdictRow(**{name: getattr(row, name) for name in names}))
    names = (
        "name", "status", "version", "project", "policy", "policy_revision", "baseline", "labels", "items",
        "created_by", "created_at", "finished_at", "tenant_id", "project_id", "policy_id", "baseline_id",
    )  # fmt: skip
    return tuple(
        Audit(
            id=row.public_id,
            number=row.id,
            running=int(counted[row.id].running) if row.id in counted else 0,
            refused=int(counted[row.id].refused) if row.id in counted else 0,
            verdicts=tuple(verdicts[row.id]),
            **{name: row._mapping[name] for name in names},  # noqa: SLF001 - `items` is a method of every mapping
        )
        for row in listed
    )
