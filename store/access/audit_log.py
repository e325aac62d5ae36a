"""The audit log: who wrote what. Rows are only added; the database refuses anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.tables import Now, audit_log

_APPEND: Final = sa.insert(audit_log).values(at=Now())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One write that somebody asked for.

    Attributes:
        actor: `key:...`, `user:...` or `local`. action: `run.submit`, `key.create`, ... object: public id.
        request_id: Of the request. address: where it came from; None: not over the network.
        detail: More, never content; None: nothing.
        at, number: The database's clock, and its place; ignored by `append`.
    """

    actor: str
    action: str
    object: str
    request_id: str
    address: str | None = None
    detail: Mapping[str, Any] | None = None
    at: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """Some entries, newest first; `next` is the `after` of the next page or None."""

    items: tuple[Entry, ...]
    next: int | None


def append(transaction: Transaction, entry: Entry, *, tenant_id: int | None = 1) -> None:
    """Write an entry in the transaction of what it tells. `tenant_id` None: the operator's own affair."""
    values = {
        "tenant_id": tenant_id,
        "actor": entry.actor,
        "action": entry.action,
        "object": entry.object,
        "request_id": entry.request_id,
        "address": entry.address,
        "detail": None if entry.detail is None else dict(entry.detail),
    }
    transaction.execute(_APPEND, values)


def page(
    transaction: Transaction,
    *,
    tenant_id: int = 1,
    actor: str | None = None,
    object: str | None = None,  # noqa: A002 - the API's word
    since: str | None = None,
    after: int | None = None,
    limit: int = 100,
) -> EntryPage:
    """Entries of a tenant, newest first.

    Args:
        transaction: To read by.
        tenant_id: Whose.
        actor: Only this one's. object: only about this.
        since: Only those later than this time, ISO 8601 in UTC.
        after: `EntryPage.next` of the page before; None: the first page.
        limit: Entries at most.
    """
    query = sa.select(audit_log).where(audit_log.c.tenant_id == tenant_id)
    if actor is not None:
        query = query.where(audit_log.c.actor == actor)
    if object is not None:
        query = query.where(audit_log.c.object == object)
    if since is not None:
        query = query.where(audit_log.c.at > since)
    if after is not None:
        query = query.where(audit_log.c.id < after)
    rows = transaction.execute(query.order_by(audit_log.c.id.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    return EntryPage(items=tuple(_entry(row) for row in rows[:limit]), next=rows[limit - 1].id if more else None)


def _entry(row: Any) -> Entry:
    return Entry(
        actor=row.actor,
        action=row.action,
        object=row.object,
        request_id=row.request_id,
        address=row.address,
        detail=row.detail,
        at=row.at,
        number=row.id,
    )
