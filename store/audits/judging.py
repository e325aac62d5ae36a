"""The verdicts of audits: items end with their runs, and an audit is judged when its last item has ended.

1. Each step is a short transaction that may be made again: an item ends once, a verdict of one ruleset is replaced.
2. The events leave in the transaction of what they tell.
3. An audit whose runs are to be judged again waits for that.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import sqlalchemy as sa

from store.audits import audit_uploads, audits, policies
from store.audits.audits import Audit
from store.audits.items import AT_ONCE, ItemRow, audited_again, fingerprints, page
from store.audits.policy import VERDICTS, WORST, Rules, rules_of
from store.database.session import Database, Transaction
from store.runs.transitions import tell
from store.tables import Now, audit, audit_cell, audit_item, audit_verdict, run
from store.webhooks import outbox

REASONS: Final = 20
"""Cells that a verdict names itself, worst first; the matrix has all."""

_WAITING: Final = ("queued", "running")
_GOING: Final = audit.c.status.in_(("open", "running"))


def waits(transaction: Transaction) -> bool:
    """Return whether some audit is neither judged nor canceled."""
    return transaction.execute(sa.select(audit.c.id).where(_GOING).limit(1)).first() is not None


def settle(database: Database, *, limit: int = 200) -> tuple[str, ...]:
    """End the items whose runs have ended, then judge the audits that are whole; public ids of those judged.

    Audits whose upload nobody goes on with are canceled.
    """
    audit_uploads.forgotten(database)
    while True:
        with database.begin() as transaction:
            if end_items(transaction, limit=limit) < limit:
                break
    with database.read() as reading:
        ready = tuple(reading.execute(_ready().limit(limit)).scalars())
    judged: list[str] = []
    for number in ready:
        with database.begin() as transaction:
            judged += judge(transaction, number)
    return tuple(judged)


def end_items(transaction: Transaction, *, limit: int = 200) -> int:
    """Mark items whose runs have ended, and tell webhooks; how many."""
    query = (
        sa.select(
            audit_item.c.audit_id, audit_item.c.n, audit_item.c.custom_id, run.c.public_id.label("run"), run.c.status,
            audit.c.public_id, audit.c.tenant_id, audit.c.project_id,
        )
        .join_from(audit_item, run, run.c.id == audit_item.c.run_id)
        .join(audit, audit.c.id == audit_item.c.audit_id)
        .where(sa.not_(audit_item.c.ended), run.c.status.not_in(_WAITING))
        .order_by(audit_item.c.audit_id, audit_item.c.n)
        .limit(limit)
    )  # fmt: skip
    rows = transaction.execute(query).all()
    for row in rows:
        this = sa.update(audit_item).where(audit_item.c.audit_id == row.audit_id, audit_item.c.n == row.n)
        if not transaction.execute(this.where(sa.not_(audit_item.c.ended)).values(ended=True)).rowcount:
            continue
        body = {"audit": row.public_id, "custom_id": row.custom_id, "run": row.run, "status": row.status}
        owner = {"tenant_id": row.tenant_id, "project_id": row.project_id}
        outbox.enqueue(transaction, "audit_item.ended", row.public_id, body, **owner)
    touched = {row.audit_id: row.public_id for row in rows}
    if touched:
        changed = sa.update(audit).where(audit.c.id.in_(touched), _GOING)
        transaction.execute(changed.values(version=audit.c.version + 1))
        for public_id in touched.values():
            tell(transaction, public_id)
    return len(rows)


def _ready() -> Any:
    """Numbers of audits that wait for nothing any more."""
    mine = audit_item.c.audit_id == audit.c.id
    going = sa.exists().where(mine, sa.not_(audit_item.c.ended)).correlate(audit)
    due = sa.exists().where(mine, run.c.id == audit_item.c.run_id, run.c.judge_due_at.is_not(None)).correlate(audit)
    return sa.select(audit.c.id).where(audit.c.status == "running", ~going, ~due).order_by(audit.c.id)


def judge(transaction: Transaction, number: int) -> tuple[str, ...]:
    """Give an audit its verdict, if it still waits for one; its public id."""
    this = sa.update(audit).where(audit.c.id == number, audit.c.status == "running")
    done = this.values(status="judged", finished_at=Now(), version=audit.c.version + 1)
    if not transaction.execute(done).rowcount:
        return ()
    found = audits.load_by_number(transaction, number)
    rules = rules_for(transaction, found)
    known = known_to(transaction, found)
    verdicts: Counter[str] = Counter(dict.fromkeys(VERDICTS, 0))
    rulesets: Counter[str] = Counter()
    cells: list[dict[str, Any]] = []
    after = -1
    while items := page(transaction, found, rules, known, after=after, limit=AT_ONCE):
        after = items[-1].n
        for item in items:
            verdicts[item.verdict or "not-run"] += 1
            if item.ruleset is not None:
                rulesets[item.ruleset] += 1
            cells += _cells(item)
    ruleset = rulesets.most_common(1)[0][0] if rulesets else "none"
    shown, again = fingerprints(transaction, number), audited_again(transaction, number, found.baseline_id)
    counts = {
        "items": dict(verdicts),
        "findings": {"new": len(shown - known), "known": len(shown & known), "gone": len(again - shown)},
        "reasons": _reasons(cells),
    }
    verdict = "passed" if rules.passes(verdicts) else "failed"
    _store(transaction, found, ruleset, verdict, counts, cells)
    body = {"audit": found.id, "verdict": verdict, "items": counts["items"], "findings": counts["findings"]}
    owner = {"tenant_id": found.tenant_id, "project_id": found.project_id}
    outbox.enqueue(transaction, "audit.judged", found.id, body, **owner)
    tell(transaction, found.id)
    return (found.id,)


def rules_for(transaction: Transaction, found: Audit) -> Rules:
    """Return the rules of the policy that an audit is judged by."""
    return rules_of(None if found.policy_id is None else policies.load_by_number(transaction, found.policy_id).body)


def known_to(transaction: Transaction, found: Audit) -> frozenset[str]:
    """Fingerprints of the audit's baseline; none without one."""
    return frozenset() if found.baseline_id is None else fingerprints(transaction, found.baseline_id)


def _cells(item: ItemRow) -> list[dict[str, Any]]:
    return [
        {
            "n": item.n,
            "rule": cell.rule,
            "state": cell.state,
            "findings": cell.findings,
            "known": cell.known,
            "custom_id": item.custom_id,
            "run": item.run,
        }
        for cell in item.cells
    ]


def _reasons(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    bad = [cell for cell in cells if cell["state"] == "fail"]
    worst = sorted(bad, key=lambda cell: (-cell["findings"], cell["n"], cell["rule"]))
    return [{name: cell[name] for name in ("custom_id", "run", "rule", "findings")} for cell in worst[:REASONS]]


def _store(
    transaction: Transaction, found: Audit, ruleset: str, verdict: str, counts: dict[str, Any], cells: list[Any]
) -> None:
    owner = {"audit_id": found.number, "ruleset": ruleset}
    for table in (audit_cell, audit_verdict):
        transaction.execute(sa.delete(table).where(table.c.audit_id == found.number, table.c.ruleset == ruleset))
    stored = {"verdict": verdict, "counts": counts, "judged_at": Now()}
    transaction.execute(sa.insert(audit_verdict).values(owner | stored))
    names = ("n", "rule", "state", "findings", "known")
    rows = [owner | {name: cell[name] for name in names} for cell in cells]
    if rows:
        transaction.execute(sa.insert(audit_cell), rows)


def worst_first(items: list[ItemRow]) -> list[ItemRow]:
    """Sort the items by verdict, the worst first, and equal ones by their places."""
    places = {verdict: n for n, verdict in enumerate(WORST)}
    return sorted(items, key=lambda item: (places.get(item.verdict or "not-run", 0), item.n))
