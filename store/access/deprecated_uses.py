"""Who still uses operations of the API that will go: counted by caller, so that it can be told in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.database.session import Transaction
from store.tables import Now, deprecated_use, tenant

_USES: Final = (
    sa.select(deprecated_use, tenant.c.name.label("its_tenant"))
    .join_from(deprecated_use, tenant, tenant.c.id == deprecated_use.c.tenant_id)
    .order_by(deprecated_use.c.last_at.desc(), tenant.c.id, deprecated_use.c.actor, deprecated_use.c.operation)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one caller has asked of one such operation.

    Attributes:
        tenant: Its name. actor: `key:bp_...`, `user:...` or `local`. operation: `GET /v1/things/<thing>`.
        times: How often. first_at, last_at: ISO 8601.
    """

    tenant: str
    actor: str
    operation: str
    times: int
    first_at: str
    last_at: str


def count(transaction: Transaction, actor: str, operation: str, *, tenant_id: int) -> None:
    """Once more."""
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    facts = {"tenant_id": tenant_id, "actor": actor, "operation": operation, "times": 1}
    added = insert(deprecated_use).values(**facts, first_at=Now(), last_at=Now())
    more = {"times": deprecated_use.c.times + 1, "last_at": Now()}
    transaction.execute(added.on_conflict_do_update(index_elements=["tenant_id", "actor", "operation"], set_=more))


def uses(transaction: Transaction) -> tuple[Use, ...]:
    """Of all tenants, the latest first."""
    names = ("actor", "operation", "times", "first_at", "last_at")
    return tuple(
        Use(tenant=row.its_tenant, **{name: getattr(row, name) for name in names}) for row in transaction.execute(_USES)
    )
