"""The audit before another one of the same name, and what became of its findings since."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import sqlalchemy as sa

from store.audits import audits
from store.audits.audits import Audit
from store.audits.items import audited_again, rules_by_fingerprint
from store.database.session import Transaction
from store.tables import audit


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChanges:
    """Findings of one rule, each fingerprint once, by what became of them."""

    rule: str
    new: int
    fixed: int
    unchanged: int


def audit_before(transaction: Transaction, found: Audit) -> Audit | None:
    """Return the newest judged audit of the same project and name that was begun before; None: there is none."""
    a = audit.c
    earlier = sa.or_(a.created_at < found.created_at, sa.and_(a.created_at == found.created_at, a.id < found.number))
    query = sa.select(a.id).where(a.project_id == found.project_id, a.name == found.name, a.status == "judged", earlier)
    number = transaction.execute(query.order_by(a.created_at.desc(), a.id.desc()).limit(1)).scalar()
    return None if number is None else audits.load_by_number(transaction, number)


def changes_since(transaction: Transaction, found: Audit, before: Audit) -> tuple[RuleChanges, ...]:
    """Count what became of the findings of an audit before, by rule, rules with new findings first.

    A finding is fixed if a program of both audits, by `custom_id`, ended well in the later one and no run shows it.
    """
    now = rules_by_fingerprint(transaction, found.number)
    then = rules_by_fingerprint(transaction, before.number)
    again = audited_again(transaction, found.number, before.number)
    new = Counter(rule for fingerprint, rule in now.items() if fingerprint not in then)
    unchanged = Counter(rule for fingerprint, rule in now.items() if fingerprint in then)
    fixed = Counter(then[fingerprint] for fingerprint in again - now.keys())
    rules = new.keys() | unchanged.keys() | fixed.keys()
    changes = [RuleChanges(rule=rule, new=new[rule], fixed=fixed[rule], unchanged=unchanged[rule]) for rule in rules]
    return tuple(sorted(changes, key=lambda change: (-change.new, -change.fixed, change.rule)))
