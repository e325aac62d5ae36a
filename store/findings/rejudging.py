"""Stored runs judged again: which are due, and what newer rules change about their findings.

1. A finding keeps its row, id and `created_at` by its fingerprint; what the newer rules say of it takes its place.
2. One that the newer rules no longer make is kept as gone, with the ruleset that dropped it; made again, it is back.
3. A judgement is written only if the run's ruleset is still the one that was read: of two who judge, one writes.
4. Nothing is judged in here, and no transaction is open while it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from store.database.session import Database, Transaction
from store.findings.findings import values_of
from store.findings.groups import Shower, show
from store.findings.judging_attempts import NOT_QUARANTINED
from store.records.reader import at_key, load_record
from store.records.rows import whys_by_tensor
from store.runs.claims import RECORDER
from store.runs.completion import facts_of_judgement, head_of_judgement
from store.runs.model import ENDED, Claim, RunKey, RunRow
from store.runs.reading.run_rows import get
from store.runs.transitions import in_status, leave_event, tell
from store.tables import Now, finding, record, run, snippet, tensor
from store.webhooks.end_events import tell_groups

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Judgement, WhyNone

_KEPT: Final = (
    run.c.record_state.in_(("whole", "partial")),
    run.c.result_attempt.is_not(None),
    run.c.origin != sa.literal_column("'trial'"),  # its verdict is of the rules that judged both runs
)
_WHICH: Final = (
    sa.select(
        run.c.id,
        run.c.public_id,
        run.c.part,
        run.c.result_attempt,
        run.c.tenant_id,
        run.c.project_id,
        run.c.ruleset,
        run.c.rules,
        snippet.c.public_id.label("unnamed"),
    )
    .select_from(run)
    .outerjoin(snippet, sa.and_(snippet.c.id == run.c.snippet_id, ~snippet.c.named))
    .where(*_KEPT, NOT_QUARANTINED)
)
_IS_DUE: Final = (run.c.judge_due_at.is_not(None), run.c.judge_due_at <= Now())
_DUE: Final = _WHICH.where(*_IS_DUE).order_by(run.c.judge_attempts, run.c.judge_due_at)
_NEXT_TENANT: Final = sa.select(sa.func.min(run.c.tenant_id)).where(
    *_IS_DUE, *_KEPT, NOT_QUARANTINED, run.c.tenant_id > sa.bindparam("served", type_=sa.Integer)
)
_OLDER: Final = _WHICH.where(
    run.c.ruleset.is_not(None),
    ~run.c.ruleset.startswith(sa.bindparam("today", type_=sa.Text)),
    run.c.id < sa.bindparam("below"),
).order_by(run.c.id.desc())
_OF_RUN: Final = sa.select(finding.c.id, finding.c.fingerprint, finding.c.gone_at).where(
    finding.c.run_id == sa.bindparam("of_run"), finding.c.attempt == sa.bindparam("of_attempt")
)
_WHYS: Final = ("why_none", "why_text", "why_site", "why_line", "why_call")
NEWEST: Final = 2**62
"""Above the number of any run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A run that is to be judged again.

    Attributes:
        number: Of the run, descending from new to old. ruleset: What judged it last; None: nothing did.
        rules: Which rules judge it, and how; None: all, as they stand.
        unnamed: Public id of its snippet, if whoever sent that named no file.
    """

    number: int
    public_id: str
    key: RunKey
    tenant_id: int
    project_id: int
    ruleset: str | None
    rules: Mapping[str, Any] | None = None
    unnamed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What judging again did to a run's findings, counted."""

    same: int
    new: int
    gone: int
    back: int


def ask(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> RunRow | None:
    """Have an ended run judged again soon; the run as it is. None: no such run.

    Without a record, or in quarantine (`store.findings.judging_attempts`), it stays as it is.
    """
    which = (run.c.public_id == public_id, run.c.tenant_id == tenant_id, run.c.status.in_(sorted(ENDED)), *_KEPT)
    asked = sa.update(run).where(*which, NOT_QUARANTINED).values(judge_due_at=Now(), version=run.c.version + 1)
    transaction.execute(asked)
    return get(transaction, public_id, tenant_id=tenant_id)


def due(transaction: Transaction, *, limit: int = 10, served: int | None = None) -> tuple[Due, ...]:
    """List the runs that somebody asked to have judged again, the first asked first.

    Args:
        transaction: To read by.
        limit: How many at most.
        served: Number of the tenant that had the last turn: only runs of the one whose turn it is then. None: of all.
    """
    if served is None:
        return _dues(transaction.execute(_DUE.limit(limit)))
    tenant = transaction.execute(_NEXT_TENANT, {"served": served}).scalar()
    if tenant is None:  # once round
        tenant = transaction.execute(_NEXT_TENANT, {"served": 0}).scalar()
    return () if tenant is None else _dues(transaction.execute(_DUE.where(run.c.tenant_id == tenant).limit(limit)))


def older(transaction: Transaction, ruleset: str, *, below: int = NEWEST, limit: int = 10) -> tuple[Due, ...]:
    """List the runs whose findings another ruleset made, newest first.

    Args:
        transaction: To read by.
        ruleset: Today's; a run's own begins with it if the same rules judged it, under options or not.
        below: `Due.number` of the last one of the page before.
        limit: How many at most.
    """
    return _dues(transaction.execute(_OLDER.limit(limit), {"today": ruleset, "below": below}))


def _dues(rows: Any) -> tuple[Due, ...]:
    return tuple(
        Due(
            number=row.id,
            public_id=row.public_id,
            key=RunKey(part=row.part, run_id=row.id, attempt=row.result_attempt),
            tenant_id=row.tenant_id,
            project_id=row.project_id,
            ruleset=row.ruleset,
            rules=row.rules,
            unnamed=row.unnamed,
        )
        for row in rows.all()
    )


def record_of(database: Database, due_run: Due) -> Record | None:
    """Load the record to judge; None if it was deleted meanwhile."""
    with database.read() as reading:
        return load_record(reading, due_run.key)


def leave(database: Database, due_run: Due) -> None:
    """Do not judge it again: it has no record, or judging it fails."""
    with database.begin() as transaction:
        transaction.execute(
            sa.update(run).where(run.c.id == due_run.number).values(judge_due_at=None, judge_attempts=0)
        )


def judged_again(
    database: Database, due_run: Due, found: Record, judgement: Judgement, whys: Mapping[int, WhyNone]
) -> Change | None:
    """Write what the newer rules say of a run; None: somebody else has judged it meanwhile, or its record expired."""
    if due_run.unnamed is not None:
        judgement = judgement.of_unnamed(due_run.unnamed)
    was = run.c.ruleset.is_(None) if due_run.ruleset is None else run.c.ruleset == due_run.ruleset
    facts = facts_of_judgement(judgement) | {
        "judge_due_at": None,
        "judge_attempts": 0,
        "version": run.c.version + 1,
    }
    mine = sa.update(run).where(run.c.id == due_run.number, run.c.result_attempt == due_run.key.attempt, was, *_KEPT)
    with database.begin() as transaction:
        after = transaction.execute(mine.values(facts).returning(run.c.id)).first()
        if after is None:
            return None
        change = _findings(transaction, due_run, judgement)
        _verdicts(transaction, due_run.key, found, whys)
        transaction.execute(sa.update(record).where(at_key(record, due_run.key)).values(head_of_judgement(judgement)))
        tell(transaction, due_run.public_id)
    return change


def judged_meanwhile(database: Database, claim: Claim, judgement: Judgement) -> int | None:
    """Write what the rules say of a watched run that goes on, and tell of what is new: by an event, and to webhooks.

    Its end is judged like any other, and what stays keeps its row; what the whole record does not show is gone then.

    Returns:
        Findings that it had not shown before; None: its end is in hand, and nothing was written.
    """
    counted = facts_of_judgement(judgement) | {"version": run.c.version + 1, "events": run.c.events + 1}
    mine = (run.c.id == claim.run_id, run.c.attempt == claim.attempt, in_status("running"))
    still = sa.update(run).where(*mine, run.c.lease_owner == RECORDER).values(counted)
    columns = (run.c.id, run.c.part, run.c.events, run.c.public_id, run.c.tenant_id, run.c.project_id)
    due_run = Due(
        number=claim.run_id,
        public_id=claim.public_id,
        key=claim.key,
        tenant_id=claim.tenant_id,
        project_id=claim.project_id,
        ruleset=None,
    )
    with database.begin() as transaction:
        row = transaction.execute(still.returning(*columns)).first()
        if row is None:
            return None
        change = _findings(transaction, due_run, judgement, tells=row)
        payload = {"new": change.new, "findings": len(judgement.findings)}
        leave_event(transaction, row, "judged", row.public_id, attempt=claim.attempt, payload=payload)
    return change.new


def _findings(transaction: Transaction, due_run: Due, judgement: Judgement, *, tells: Any = None) -> Change:
    which = {"of_run": due_run.number, "of_attempt": due_run.key.attempt}
    before = {row.fingerprint: row for row in transaction.execute(_OF_RUN, which)}
    owner = {
        "run_id": due_run.number,
        "attempt": due_run.key.attempt,
        "tenant_id": due_run.tenant_id,
        "project_id": due_run.project_id,
    }
    counts = {"same": 0, "new": 0, "back": 0}
    shown_before = set(before)
    for n, said in enumerate(judgement.findings):
        values = owner | values_of(judgement.ruleset, n, said)
        known = before.pop(said.fingerprint, None)
        if known is None:
            transaction.execute(sa.insert(finding).values(created_at=Now()), values)
            counts["new"] += 1
            continue
        del values["public_id"]
        still = values | {"gone_at": None, "gone_ruleset": None}
        transaction.execute(sa.update(finding).where(finding.c.id == known.id).values(still))
        counts["same" if known.gone_at is None else "back"] += 1
    gone = [row for row in before.values() if row.gone_at is None]
    for n, row in enumerate(before.values(), len(judgement.findings)):
        fields: dict[str, Any] = {"n": n}
        if row.gone_at is None:
            fields |= {"gone_at": Now(), "gone_ruleset": judgement.ruleset}
        transaction.execute(sa.update(finding).where(finding.c.id == row.id).values(fields))
    who = Shower(
        run_id=due_run.number, public_id=due_run.public_id, tenant_id=due_run.tenant_id, project_id=due_run.project_id
    )
    changes = show(transaction, who, judgement.findings, shown_before)
    if tells is not None:  # else webhooks hear nothing of it: newer rules would tell of every stored run
        tell_groups(transaction, tells, changes)
    return Change(gone=len(gone), **counts)


def _verdicts(transaction: Transaction, key: RunKey, found: Record, whys: Mapping[int, WhyNone]) -> None:
    """Why tensors have no gradient, where that is another answer now."""
    columns = [tensor.c[name] for name in _WHYS]
    query = sa.select(tensor.c.tensor, *columns).where(at_key(tensor, key))
    stored = {row[0]: tuple(row[1:]) for row in transaction.execute(query)}
    fresh = whys_by_tensor(found, whys, _WHYS)
    for number, values in fresh.items():
        if stored.get(number, values) != values:
            change: Sequence[Any] = list(zip(_WHYS, values, strict=True))
            which = sa.and_(at_key(tensor, key), tensor.c.tensor == number)
            transaction.execute(sa.update(tensor).where(which).values(dict(change)))
