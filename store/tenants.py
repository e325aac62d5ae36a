"""Tenants, and the project that a run belongs to when its caller names none."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from store.ids import new_id
from store.session import Transaction
from store.tables import Now, project, tenant

_BY_NAME: Final = sa.select(tenant.c.id).where(tenant.c.name == sa.bindparam("name")).order_by(tenant.c.id).limit(1)
_FIRST_PROJECT: Final = (
    sa.select(project.c.id).where(project.c.tenant_id == sa.bindparam("its_tenant")).order_by(project.c.id).limit(1)
)
_RULES: Final = {
    "max_queued": 10_000,
    "max_running": 1_000,
    "weight": 1,
    "max_record_bytes": 100 << 30,
    "keep_days": 30,
}
"""What the first tenant was given too (revision 0001)."""


def named(transaction: Transaction, name: str) -> int | None:
    """Number of the tenant with this name; None: there is none."""
    return transaction.execute(_BY_NAME, {"name": name}).scalar()


def create(transaction: Transaction, name: str) -> int:
    """A new tenant with a project `default`; its number."""
    facts = {"public_id": new_id("tnt"), "name": name, "created_at": Now(), **_RULES}
    number = transaction.execute(sa.insert(tenant).values(facts).returning(tenant.c.id)).scalar_one()
    its: dict[str, Any] = {"tenant_id": number, "name": "default", "settings": {}, "created_at": Now()}
    its["public_id"] = new_id("prj")
    transaction.execute(sa.insert(project).values(its))
    return number


def first_project(transaction: Transaction, tenant_id: int) -> int:
    """Number of the tenant's oldest project."""
    return transaction.execute(_FIRST_PROJECT, {"its_tenant": tenant_id}).scalar_one()
