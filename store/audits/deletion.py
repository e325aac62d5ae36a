"""Audits that are deleted: their items a few thousand in a transaction, then the audit itself.

The runs stay, with their records and findings. An audit that had this one as its baseline keeps its verdicts; judged
again it knows no findings. What a crash leaves is an audit with fewer items, to be deleted once more.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.audits.audits import Audit
from store.database.session import Database, Transaction
from store.tables import audit, audit_cell, audit_item, audit_verdict, run

PIECE: Final = 2000
"""Items that go in one transaction, with what each rule says of them."""

_WAITS: Final = audit.c.status.in_(("open", "running"))


class NotEnded(Exception):
    """The audit, or one that it is the baseline of, still goes on: cancel it, or wait for its end."""


def check(transaction: Transaction, found: Audit) -> None:
    """Go on if the audit may be deleted; `transaction` keeps others from it until it ends.

    Raises:
        NotEnded: not yet.
    """
    this = sa.select(audit.c.status).where(audit.c.id == found.number).with_for_update()
    if transaction.execute(this).scalar() in ("open", "running"):
        raise NotEnded(f"audit {found.id} has not ended")
    waiting = sa.select(audit.c.public_id).where(audit.c.baseline_id == found.number, _WAITS).limit(1)
    other = transaction.execute(waiting).scalar()
    if other is not None:
        raise NotEnded(f"audit {found.id} is the baseline of audit {other}, which has not ended")


def empty(database: Database, found: Audit) -> None:
    """Delete all but the last items of an ended audit, so that `delete` holds nobody up.

    Raises:
        NotEnded: as `check`.
    """
    for beyond in range(PIECE, found.items, PIECE):
        with database.begin() as transaction:
            check(transaction, found)
            _delete_items(transaction, found.number, beyond)


def delete(transaction: Transaction, found: Audit) -> None:
    """Delete an ended audit with what is left of its items.

    Raises:
        NotEnded: as `check`.
    """
    check(transaction, found)
    _delete_items(transaction, found.number, 2**31 - 1)
    transaction.execute(sa.delete(audit_verdict).where(audit_verdict.c.audit_id == found.number))
    later = sa.update(audit).where(audit.c.baseline_id == found.number)
    transaction.execute(later.values(baseline_id=None, version=audit.c.version + 1))
    transaction.execute(sa.delete(audit).where(audit.c.id == found.number))


def _delete_items(transaction: Transaction, number: int, beyond: int) -> None:
    """Delete the items whose place is before `beyond`; their runs no longer show whose items they are."""
    some = (audit_item.c.audit_id == number, audit_item.c.n < beyond)
    mine = sa.select(audit_item.c.run_id).where(*some, audit_item.c.run_id.is_not(None))
    transaction.execute(sa.update(run).where(run.c.id.in_(mine)).values(version=run.c.version + 1))
    transaction.execute(sa.delete(audit_cell).where(audit_cell.c.audit_id == number, audit_cell.c.n < beyond))
    transaction.execute(sa.delete(audit_item).where(*some))
