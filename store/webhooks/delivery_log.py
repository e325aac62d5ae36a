"""What became of deliveries: each with its tries, for 30 days (`retention.drop_sent`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.tables import delivery, delivery_try, outbox, webhook
from store.webhooks.deliveries import State
from store.webhooks.destination import stands_in
from store.webhooks.webhooks import Scope

_SELECT: Final = (
    sa.select(
        delivery,
        webhook.c.public_id.label("webhook"),
        webhook.c.url,
        outbox.c.event_id,
        outbox.c.kind,
        outbox.c.subject,
        outbox.c.created_at,
    )
    .join_from(delivery, outbox, outbox.c.id == delivery.c.outbox_id)
    .join(webhook, webhook.c.id == delivery.c.webhook_id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTry:
    """One try.

    Attributes:
        at: When it ended.
        address: Where it went, if the URL contains the address; else empty: only the operator may know what a name
            resolves to.
        status: HTTP status; None: no answer. error: why there was none. answer: its first KiB, a stranger's text.
    """

    n: int
    at: str
    address: str
    status: int | None
    ms: int
    error: str | None
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one webhook.

    Attributes:
        id: `dlv_...`. event: the `webhook-id`. kind: of the event. subject: public id of what it is about.
        created_at: When the event happened. next_at: when it is tried next; None: it is not.
    """

    id: str
    webhook: str
    event: str
    kind: str
    subject: str
    state: State
    attempts: int
    created_at: str
    next_at: str | None
    tries: tuple[DeliveryTry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPage:
    """Some deliveries, newest first; `next` is the `after` of the next page or None."""

    items: tuple[Delivery, ...]
    next: int | None


def get(transaction: Transaction, scope: Scope, public_id: str) -> Delivery | None:
    """One delivery; None: no such one of this scope."""
    row = transaction.execute(_SELECT.where(delivery.c.public_id == public_id, *scope.where())).first()
    return None if row is None else _deliveries(transaction, [row])[0]


def page(
    transaction: Transaction,
    webhook_number: int,
    *,
    states: Sequence[str] = (),
    after: int | None = None,
    limit: int = 100,
) -> DeliveryPage:
    """List the deliveries to a webhook, newest first; `states`: only these."""
    query = _SELECT.where(delivery.c.webhook_id == webhook_number).order_by(delivery.c.id.desc()).limit(limit + 1)
    if states:
        query = query.where(delivery.c.state.in_(states))
    if after is not None:
        query = query.where(delivery.c.id < after)
    rows = transaction.execute(query).all()
    items = _deliveries(transaction, rows[:limit])
    return DeliveryPage(items=items, next=rows[limit - 1].id if len(rows) > limit else None)


def _deliveries(transaction: Transaction, rows: Sequence[Any]) -> tuple[Delivery, ...]:
    wanted = delivery_try.c.delivery_id.in_([row.id for row in rows])
    tries: dict[int, list[DeliveryTry]] = {row.id: [] for row in rows}
    urls: dict[int, str] = {row.id: row.url for row in rows}
    for attempt in transaction.execute(sa.select(delivery_try).where(wanted).order_by(delivery_try.c.n)):
        fields = {name: getattr(attempt, name) for name in DeliveryTry.__slots__}
        if not stands_in(urls[attempt.delivery_id], attempt.address):
            fields["address"] = ""
        tries[attempt.delivery_id].append(DeliveryTry(**fields))
    return tuple(
        Delivery(
            id=row.public_id,
            webhook=row.webhook,
            event=row.event_id,
            kind=row.kind,
            subject=row.subject,
            state=row.state,
            attempts=row.attempts,
            created_at=row.created_at,
            next_at=row.next_at if row.state == "pending" else None,
            tries=tuple(tries[row.id]),
        )
        for row in rows
    )
