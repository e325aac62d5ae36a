"""Audits that come in pieces: open until the last one is there, and what came of them so far stays.

1. Every piece names the place at which it begins; it is stored only if the audit is open and stands there. Of two that
   send the same upload at once, one stores each piece.
2. The Idempotency-Key of the upload moves on in the transaction of the piece: what it says has come has come.
3. One that nobody goes on with is canceled when its key is free again, with the runs that it began.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import sqlalchemy as sa

from store.access.idempotency import KEEP_SECONDS
from store.audits import audits
from store.audits.audits import NewItem
from store.database.session import Database, Transaction
from store.runs import expiry
from store.tables import Now, audit, audit_item, run

AT_ONCE: Final = 10
"""Items of one transaction: SQLite has one writer, and 500 of them kept everybody else from writing for 200 ms; 50
still made another tenant's submit take seven times as long."""


class Overtaken(Exception):
    """The audit does not stand where this piece begins: another request stored it, or the audit has been canceled."""


def hold(transaction: Transaction, number: int, place: int) -> None:
    """Keep others from an open audit that has so many items, until the transaction ends.

    Raises:
        Overtaken: it has another number of items, or is open no more.
    """
    mine = sa.update(audit).where(audit.c.id == number, audit.c.status == "open", audit.c["items"] == place)
    if not transaction.execute(mine.values(version=audit.c.version + 1)).rowcount:
        raise Overtaken


def grow(transaction: Transaction, number: int, place: int, items: Sequence[NewItem]) -> None:
    """Store the items of an audit that is held, from `place` on."""
    audits.add(transaction, number, place, items)
    this = sa.update(audit).where(audit.c.id == number)
    transaction.execute(this.values(items=place + len(items)))


def close(transaction: Transaction, number: int, place: int) -> None:
    """All items are there: from now on the audit waits for its runs only.

    Raises:
        Overtaken: as `hold`.
    """
    hold(transaction, number, place)
    transaction.execute(sa.update(audit).where(audit.c.id == number).values(status="running"))


def find_taken_names(transaction: Transaction, number: int, names: Collection[str]) -> frozenset[str]:
    """Which of these names items of the audit have already."""
    query = sa.select(audit_item.c.custom_id).where(
        audit_item.c.audit_id == number, audit_item.c.custom_id.in_(sorted(names))
    )
    return frozenset(transaction.execute(query).scalars())


def numbers(
    transaction: Transaction, public_ids: Collection[str], *, tenant_id: int = 1, project_id: int | None = None
) -> dict[str, int]:
    """Numbers of a tenant's runs by public id; what is not there is no run of it, or of another project."""
    query = sa.select(run.c.public_id, run.c.id).where(
        run.c.tenant_id == tenant_id, run.c.public_id.in_(sorted(public_ids))
    )
    if project_id is not None:
        query = query.where(run.c.project_id == project_id)
    return {row.public_id: row.id for row in transaction.execute(query)}


def give_up(transaction: Transaction, number: int) -> None:
    """Cancel an open audit with the runs that it began; one that has been deleted meanwhile needs nothing."""
    if transaction.execute(sa.select(audit.c.id).where(audit.c.id == number)).first() is None:
        return
    found = audits.load_by_number(transaction, number)
    for public_id in audits.cancel(transaction, found):
        expiry.request_cancel(transaction, public_id, tenant_id=found.tenant_id)


def forgotten(database: Database, *, limit: int = 20) -> tuple[str, ...]:
    """Give up audits that have been open for longer than an Idempotency-Key is kept; their public ids."""
    query = sa.select(audit.c.id, audit.c.public_id).where(
        audit.c.status == "open", audit.c.created_at < Now(-KEEP_SECONDS)
    )
    with database.read() as reading:
        old = reading.execute(query.limit(limit)).all()
    for row in old:
        with database.begin() as transaction:
            give_up(transaction, row.id)
    return tuple(row.public_id for row in old)
