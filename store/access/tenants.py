"""Tenants, what they may use, and the project that a run belongs to when its caller names none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.ids import new_id
from store.database.session import Transaction
from store.tables import Now, project, tenant

_BY_NAME: Final = sa.select(tenant.c.id).where(tenant.c.name == sa.bindparam("name")).order_by(tenant.c.id).limit(1)
_FIRST_PROJECT: Final = (
    sa.select(project.c.id).where(project.c.tenant_id == sa.bindparam("its_tenant")).order_by(project.c.id).limit(1)
)
_ALL: Final = sa.select(tenant).order_by(tenant.c.id)
_RULES: Final = {
    "max_queued": 10_000,
    "max_running": 1_000,
    "weight": 1,
    "max_record_bytes": 100 << 30,
    "keep_days": 30,
}
"""What the first tenant was given too (revision 0001)."""

BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "max_queued": (0, 2**31 - 1),
    "max_running": (1, 2**31 - 1),
    "weight": (1, 1000),
    "max_record_bytes": (0, 2**62),
    "keep_days": (1, 36_500),
    "max_gpu_seconds": (0, 2**62),
}
"""Least and most of each. One that may queue nothing is closed; one that may run nothing would wait for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One tenant.

    Attributes:
        number: In the database. id: Public.
        quotas: By name, as `BOUNDS` has them: runs, runs, shares, bytes, days, seconds. None: without a limit.
    """

    number: int
    id: str
    name: str
    quotas: Mapping[str, int | None]


def find_tenant(transaction: Transaction, name: str) -> int | None:
    """Return the number of the tenant with this name; None if there is none."""
    return transaction.execute(_BY_NAME, {"name": name}).scalar()


def public_id(transaction: Transaction, number: int) -> str:
    """`tnt_...` of a tenant that there is."""
    return transaction.execute(sa.select(tenant.c.public_id).where(tenant.c.id == number)).scalar_one()


def create(transaction: Transaction, name: str) -> int:
    """Create a tenant with a project `default`; return the tenant's number."""
    facts = {"public_id": new_id("tnt"), "name": name, "created_at": Now(), **_RULES}
    number = transaction.execute(sa.insert(tenant).values(facts).returning(tenant.c.id)).scalar_one()
    its: dict[str, Any] = {"tenant_id": number, "name": "default", "settings": {}, "created_at": Now()}
    its["public_id"] = new_id("prj")
    transaction.execute(sa.insert(project).values(its))
    return number


def first_project(transaction: Transaction, tenant_id: int) -> int:
    """Return the number of the tenant's oldest project."""
    return transaction.execute(_FIRST_PROJECT, {"its_tenant": tenant_id}).scalar_one()


def every(transaction: Transaction) -> tuple[Tenant, ...]:
    """All tenants, the first one first."""
    return tuple(_tenant(row) for row in transaction.execute(_ALL))


def get(transaction: Transaction, public_id: str, *, to_change: bool = False) -> Tenant | None:
    """One tenant; None: there is none with this id.

    Args:
        to_change: Nobody else changes it before this transaction ends.
    """
    query = sa.select(tenant).where(tenant.c.public_id == public_id)
    if to_change:
        query = query.with_for_update(key_share=True)  # runs and keys of the tenant can be stored meanwhile
    row = transaction.execute(query).first()
    return None if row is None else _tenant(row)


def _tenant(row: Any) -> Tenant:
    return Tenant(number=row.id, id=row.public_id, name=row.name, quotas={name: getattr(row, name) for name in BOUNDS})


def change(transaction: Transaction, number: int, quotas: Mapping[str, int]) -> None:
    """Give a tenant other quotas; those that are not named stay.

    Raises:
        ValueError: there is no such quota, or the number is outside of `BOUNDS`.
    """
    for name, value in quotas.items():
        least, most = BOUNDS.get(name, (1, 0))
        if not least <= value <= most:
            raise ValueError(f"{name} takes {least:,} to {most:,}, not {value:,}")
    transaction.execute(sa.update(tenant).where(tenant.c.id == number).values(dict(quotas)))
