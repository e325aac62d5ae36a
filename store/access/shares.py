"""What each tenant stores, and who has more than its share of a database with a cap.

1. `stored_bytes` counts by triggers what tenants put in; here it is summed up and folded.
2. A share is what is left for each when those with less have theirs: of a cap of 100, tenants with 60, 30 and 5 have
   all that, and it is nearly full at 95; when the second one has grown to 40, the first one's share is 50.
3. A tenant under its share is never refused, and loses nothing for others' sake. If the database is nearly full there
   is somebody over it.
4. SQLite's figure is that of its pages, of which each tenant has the part that it has of the counted bytes: so it has
   also its part of indices and of rows that are not counted. PostgreSQL's figure is the counted bytes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from store.database.session import Database, Transaction
from store.tables import stored_bytes

NEARLY: Final = 0.95
"""Of the cap: beyond it the oldest records of those over their share go, so that they are refused the less often."""

FOLDED_AT_ONCE: Final = 5000
"""Rows of `stored_bytes` that one transaction folds."""

MOST_FOLDS: Final = 100
"""Transactions of one `fold`: whoever writes all the time cannot keep it at work."""

_OF_TENANT: Final = (
    sa.select(stored_bytes.c.kind, sa.func.sum(stored_bytes.c.bytes).label("bytes"))
    .where(stored_bytes.c.tenant_id == sa.bindparam("its_tenant"))
    .group_by(stored_bytes.c.kind)
)
_ALL: Final = sa.select(stored_bytes.c.tenant_id, sa.func.sum(stored_bytes.c.bytes).label("bytes")).group_by(
    stored_bytes.c.tenant_id
)
_SUM: Final = sa.select(sa.func.coalesce(sa.func.sum(stored_bytes.c.bytes), 0))
_whose: Final = (stored_bytes.c.tenant_id, stored_bytes.c.kind)
_MANY: Final = sa.select(*_whose).group_by(*_whose).having(sa.func.count() > 1).limit(1)
_SOME: Final = sa.delete(stored_bytes).where(
    *(column == sa.bindparam(f"its_{column.name}") for column in _whose),
    stored_bytes.c.id.in_(
        sa.select(stored_bytes.c.id)
        .where(*(column == sa.bindparam(f"its_{column.name}") for column in _whose))
        .order_by(stored_bytes.c.id)
        .limit(FOLDED_AT_ONCE)
    ),
)


class DatabaseFull(Exception):
    """The database has reached its cap, and this tenant stores more than its share: of all that write, it waits."""

    def __init__(self, part: int, share: int) -> None:
        super().__init__(f"the database is full, and {part:,} bytes of it are yours, where {share:,} are your share")
        self.part, self.share = part, share


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How a database with a cap stands, in bytes.

    Attributes:
        most: The cap. used: of it.
        parts: What each tenant has of what is used, by its number; one that stores nothing is not there.
    """

    most: int
    used: int
    parts: Mapping[int, int]

    @property
    def full(self) -> bool:
        """Whoever is over its share stores nothing more."""
        return self.used >= self.most

    @property
    def share(self) -> int:
        """What a tenant may have for certain; the cap, as long as all fit."""
        left, tenants = int(self.most * NEARLY), len(self.parts)
        for part in sorted(self.parts.values()):
            if part * tenants > left:
                return left // tenants
            left, tenants = left - part, tenants - 1
        return self.most

    @property
    def tenants_over_share(self) -> frozenset[int]:
        """The tenants that have more than their share; none, unless the database is nearly full."""
        share = self.share
        return frozenset(number for number, part in self.parts.items() if part > share)


def stored_bytes_by_kind(transaction: Transaction, *, tenant_id: int = 1) -> Mapping[str, int]:
    """Bytes that a tenant stores, by kind (`store.tables.storage_usage.KINDS`); a kind without any is not there."""
    return {row.kind: int(row.bytes) for row in transaction.execute(_OF_TENANT, {"its_tenant": tenant_id})}


def used_bytes(transaction: Transaction) -> int:
    """Bytes of a SQLite database without its free pages; on PostgreSQL, those that all tenants store."""
    if transaction.dialect.name != "sqlite":
        return int(transaction.execute(_SUM).scalar_one())
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (transaction.execute(sa.text(f"PRAGMA {name}")).scalar_one() for name in names)
    return (pages - free) * size


def shares(transaction: Transaction, most_bytes: int) -> Shares:
    """How a database with this cap stands."""
    used = used_bytes(transaction)
    counted = {row.tenant_id: int(row.bytes) for row in transaction.execute(_ALL) if row.bytes > 0}
    total = sum(counted.values())
    return Shares(
        most=most_bytes, used=used, parts={number: used * count // total for number, count in counted.items()}
    )


def demand(transaction: Transaction, most_bytes: int, *, tenant_id: int = 1) -> None:
    """Go on if the database has room, or the tenant has not had its share of it.

    Raises:
        DatabaseFull: neither.
    """
    if used_bytes(transaction) < most_bytes:
        return
    now = shares(transaction, most_bytes)
    if tenant_id in now.tenants_over_share:
        raise DatabaseFull(now.parts[tenant_id], now.share)


def fold(database: Database) -> int:
    """Put one row in the place of the many changes of each tenant and kind; rows that went.

    What is added meanwhile stays as it is: only rows that were read are deleted, where their sum is added.
    """
    gone = 0
    for _ in range(MOST_FOLDS):
        with database.read() as reading:
            which = reading.execute(_MANY).first()
        if which is None:
            break
        mine = {"its_tenant_id": which.tenant_id, "its_kind": which.kind}
        with database.begin() as transaction:
            changes = transaction.execute(_SOME.returning(stored_bytes.c.bytes), mine).scalars().all()
            folded = {"tenant_id": which.tenant_id, "kind": which.kind, "bytes": sum(changes)}
            transaction.execute(sa.insert(stored_bytes), folded)
        gone += len(changes)
    return gone
