"""Policies: which findings fail an audit. A change is a new revision; those before stay for audits judged by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from store.database.ids import new_id
from store.database.session import Transaction
from store.tables import Now, policy

_NAMED: Final = (
    policy.c.public_id == sa.bindparam("its_id"),
    policy.c.tenant_id == sa.bindparam("its_tenant"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One revision of a policy.

    Attributes:
        id: `pol_...`, the same for all revisions. revision: from 1.
        body: As `store.audits.policy.Rules` reads it. number: of the revision's row, not shown.
    """

    id: str
    name: str
    revision: int
    body: Mapping[str, Any]
    created_by: str
    created_at: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPage:
    """The newest revisions of some policies, oldest policy first; `next`: the `after` of the next page or None."""

    items: tuple[Policy, ...]
    next: str | None


class PolicyTaken(Exception):
    """Another policy of the tenant has this name, or somebody else wrote this revision first."""


def create(transaction: Transaction, name: str, body: Mapping[str, Any], *, actor: str, tenant_id: int = 1) -> Policy:
    """Create a policy, with revision 1.

    Raises:
        PolicyTaken: the transaction can only be rolled back.
    """
    return _insert(transaction, new_id("pol"), 1, name, body, actor, tenant_id)


def revise(
    transaction: Transaction, found: Policy, name: str, body: Mapping[str, Any], *, actor: str, tenant_id: int = 1
) -> Policy:
    """Add the next revision of a policy.

    Raises:
        PolicyTaken: the transaction can only be rolled back.
    """
    return _insert(transaction, found.id, found.revision + 1, name, body, actor, tenant_id)


def _insert(
    transaction: Transaction,
    public_id: str,
    revision: int,
    name: str,
    body: Mapping[str, Any],
    actor: str,
    tenant_id: int,
) -> Policy:
    others = sa.select(policy.c.id).where(
        policy.c.tenant_id == tenant_id, policy.c.name == name, policy.c.public_id != public_id
    )
    if transaction.execute(others.limit(1)).first() is not None:
        raise PolicyTaken(name)
    values = {"public_id": public_id, "tenant_id": tenant_id, "name": name, "revision": revision, "body": dict(body)}
    insert = sa.insert(policy).values(values | {"created_by": actor, "created_at": Now()}).returning(policy)
    try:
        return _policy(transaction.execute(insert).one())
    except IntegrityError:
        raise PolicyTaken(name) from None


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1, revision: int | None = None) -> Policy | None:
    """Load a revision of a policy, the newest by default; None if the tenant has no such policy or revision."""
    query = sa.select(policy).where(*_NAMED).order_by(policy.c.revision.desc()).limit(1)
    if revision is not None:
        query = query.where(policy.c.revision == revision)
    row = transaction.execute(query, {"its_id": public_id, "its_tenant": tenant_id}).first()
    return None if row is None else _policy(row)


def load_by_number(transaction: Transaction, number: int) -> Policy:
    """Load the revision with this number."""
    return _policy(transaction.execute(sa.select(policy).where(policy.c.id == number)).one())


def page(transaction: Transaction, *, tenant_id: int = 1, after: str | None = None, limit: int = 100) -> PolicyPage:
    """List the newest revisions of the tenant's policies, the oldest policy first."""
    newest = sa.select(policy.c.public_id, sa.func.max(policy.c.revision).label("revision"))
    newest = newest.where(policy.c.tenant_id == tenant_id).group_by(policy.c.public_id)
    if after is not None:
        newest = newest.where(policy.c.public_id > after)
    last = newest.subquery()
    query = sa.select(policy).join(
        last, sa.and_(last.c.public_id == policy.c.public_id, last.c.revision == policy.c.revision)
    )
    rows = transaction.execute(query.order_by(policy.c.public_id).limit(limit + 1)).all()
    items = tuple(_policy(row) for row in rows[:limit])
    return PolicyPage(items=items, next=items[-1].id if len(rows) > limit else None)


def _policy(row: Any) -> Policy:
    names = ("name", "revision", "body", "created_by", "created_at")
    return Policy(id=row.public_id, number=row.id, **{name: getattr(row, name) for name in names})
