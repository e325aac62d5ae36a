"""Deliveries: lent to a sender, tried until they arrive or are given up.

1. `claim` lends a delivery to one sender; one that dies gives it back when the lease ends. So a receiver may get an
   event twice, always with the same `event_id`, and never not at all while tries are left.
2. `settle` writes the try, and when the next one is: later and later, with jitter, then `dead`.
3. Who locks a webhook and its deliveries locks the webhook first.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from store.database.session import Transaction
from store.tables import SECONDS, Now, delivery, delivery_try, outbox, webhook
from store.webhooks.outbox import TEST

RETRY_SECONDS: Final = (5, 300, 1800, 7200, 18000, 36000, 36000)
"""Pauses between tries; after the last one has passed and failed too, the delivery is dead: eight tries in 30 hours."""

JITTER: Final = 0.2
"""A pause is longer by up to this share, so that a receiver that comes back is not met by all at once."""

LEASE_SECONDS: Final = 60.0
"""How long a sender has: a try ends within 10 s."""

DISABLED_AFTER_SECONDS: Final = 5 * 86400.0
"""A webhook that has failed for so long without a success is switched off."""

GONE: Final = 410
"""HTTP: the receiver wants no more, ever."""

ANSWER_CHARACTERS: Final = 1024

State = Literal["pending", "delivered", "dead", "canceled"]

_free: Final = sa.or_(delivery.c.lease_until.is_(None), delivery.c.lease_until <= Now())
_DUE: Final = (
    sa.select(delivery.c.id)
    .where(delivery.c.state == sa.literal_column("'pending'"), delivery.c.next_at <= Now(), _free)
    .where(
        delivery.c.webhook_id.not_in(sa.bindparam("skipped", expanding=True)),
        delivery.c.webhook_id.not_in(
            sa.select(webhook.c.id).where(webhook.c.tenant_id.in_(sa.bindparam("skipped_tenants", expanding=True)))
        ),
    )
    .order_by(delivery.c.next_at)
    .limit(sa.bindparam("most"))
)
_LEND: Final = (
    sa.update(delivery)
    .where(delivery.c.id == sa.bindparam("number"), delivery.c.state == "pending", _free)
    .values(lease_until=Now(sa.bindparam("lease_seconds", type_=SECONDS)))
)
_WHOLE: Final = (
    sa.select(
        delivery.c.id,
        delivery.c.public_id,
        delivery.c.attempts,
        delivery.c.webhook_id,
        webhook.c.tenant_id,
        outbox.c.event_id,
        outbox.c.kind,
        outbox.c.body,
        outbox.c.created_at,
        webhook.c.public_id.label("webhook"),
        webhook.c.url,
        sa.func.coalesce(webhook.c.format, "event").label("format"),
        webhook.c.secret,
        sa.case((webhook.c.old_until > Now(), webhook.c.old_secret)).label("old_secret"),
    )
    .join_from(delivery, outbox, outbox.c.id == delivery.c.outbox_id)
    .join(webhook, webhook.c.id == delivery.c.webhook_id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A delivery lent to this sender.

    Attributes:
        id: `dlv_...`. attempt: which try this is, from 1.
        event_id: The webhook-id, the same at each try. kind, body, at: the event.
        url, format, secret, old_secret: Of the webhook; secrets as they were stored, sealed; old_secret None: it ended.
    """

    id: str
    attempt: int
    event_id: str
    kind: str
    body: Mapping[str, Any]
    at: str
    webhook: str
    url: str
    format: str
    secret: bytes
    old_secret: bytes | None
    number: int
    webhook_id: int
    tenant_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """What came of a try.

    Attributes:
        address: It went to; empty: none was allowed or found. status: None: no answer.
        error: Why there was none. answer: its first KiB, a stranger's text.
    """

    address: str
    ms: int
    status: int | None = None
    error: str | None = None
    answer: str | None = None

    @property
    def delivered(self) -> bool:
        """The receiver said that it has it: any 2xx."""
        return self.status is not None and 200 <= self.status < 300


def is_due(transaction: Transaction, *, skip: Collection[int] = (), skip_tenants: Collection[int] = ()) -> bool:
    """`claim` would find something now."""
    asked = {"most": 1, "skipped": list(skip), "skipped_tenants": list(skip_tenants)}
    return transaction.execute(_DUE, asked).first() is not None


def claim(
    transaction: Transaction,
    *,
    limit: int = 10,
    lease_seconds: float = LEASE_SECONDS,
    skip: Collection[int] = (),
    skip_tenants: Collection[int] = (),
) -> tuple[Due, ...]:
    """Lend due deliveries to this sender, the longest due first. Commit before anything is sent.

    Args:
        transaction: To write by.
        limit: Deliveries at most.
        lease_seconds: How long they are lent.
        skip: Numbers of webhooks that have enough under way. skip_tenants: of tenants.
    """
    asked = {"most": limit, "skipped": list(skip), "skipped_tenants": list(skip_tenants)}
    found = transaction.execute(_DUE.with_for_update(skip_locked=True), asked).scalars().all()
    for number in found:
        transaction.execute(_LEND, {"number": number, "lease_seconds": lease_seconds})
    by_number = {row.id: row for row in transaction.execute(_WHOLE.where(delivery.c.id.in_(found)))}
    return tuple(_row_to_due(by_number[number]) for number in found)


def _row_to_due(row: Any) -> Due:
    return Due(
        id=row.public_id,
        attempt=row.attempts + 1,
        event_id=row.event_id,
        kind=row.kind,
        body=row.body,
        at=row.created_at,
        webhook=row.webhook,
        url=row.url,
        format=row.format,
        secret=row.secret,
        old_secret=row.old_secret,
        number=row.id,
        webhook_id=row.webhook_id,
        tenant_id=row.tenant_id,
    )


def settle(transaction: Transaction, due: Due, tried: Try) -> State | None:
    """Write a try, and what the delivery is now. None: it was not this sender's any more, and nothing was written.

    A receiver that says 410, or has failed for five days on end, is switched off, and what waits for it is canceled.
    """
    transaction.execute(sa.select(webhook.c.id).where(webhook.c.id == due.webhook_id).with_for_update())
    mine = (
        delivery.c.id == due.number,
        delivery.c.attempts == due.attempt - 1,  # the fence: another sender's try counts it up
        delivery.c.state == "pending",
    )
    state, pause = _next(due, tried)
    facts: dict[str, Any] = {"attempts": due.attempt, "state": state, "lease_until": None}
    if state == "pending":
        facts["next_at"] = Now(pause)
    if transaction.execute(sa.update(delivery).where(*mine).values(facts)).rowcount != 1:
        return None
    values = {"delivery_id": due.number, "n": due.attempt, "address": tried.address, "status": tried.status}
    texts = {"error": _truncate_answer(tried.error), "answer": _truncate_answer(tried.answer), "ms": tried.ms}
    transaction.execute(sa.insert(delivery_try).values(values | texts | {"at": Now()}))
    if due.kind != TEST:
        _health(transaction, due.webhook_id, tried)
    return state


def _next(due: Due, tried: Try) -> tuple[State, float]:
    """Return the state after a try, and the pause in seconds before the next one."""
    if tried.delivered:
        return "delivered", 0.0
    if tried.status == GONE or due.kind == TEST or due.attempt > len(RETRY_SECONDS):
        return "dead", 0.0
    return "pending", RETRY_SECONDS[due.attempt - 1] * (1 + random.random() * JITTER)  # noqa: S311 - jitter, no secret


def _truncate_answer(text: str | None) -> str | None:
    return None if text is None else text[:ANSWER_CHARACTERS]


def _health(transaction: Transaction, webhook_id: int, tried: Try) -> None:
    update = sa.update(webhook).where(webhook.c.id == webhook_id)
    if tried.delivered:
        transaction.execute(update.where(webhook.c.failures > 0).values(failures=0, failing_since=None))
        return
    since = sa.func.coalesce(webhook.c.failing_since, Now())
    transaction.execute(update.values(failures=webhook.c.failures + 1, failing_since=since))
    reason = "the receiver answered 410: it wants no more" if tried.status == GONE else "it failed for five days"
    off = update.where(webhook.c.enabled)
    if tried.status != GONE:
        off = off.where(webhook.c.failing_since <= Now(-DISABLED_AFTER_SECONDS))
    shut = off.values(enabled=False, disabled_reason=reason, version=webhook.c.version + 1)
    if transaction.execute(shut).rowcount:
        cancel_waiting(transaction, webhook_id)


def cancel_waiting(transaction: Transaction, webhook_id: int) -> None:
    """Cancel what waits for a webhook that is switched off."""
    waits = (delivery.c.webhook_id == webhook_id, delivery.c.state == "pending")
    transaction.execute(sa.update(delivery).where(*waits).values(state="canceled", lease_until=None))


def redeliver(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> bool:
    """Try a delivery at once, over or waiting. False: none of this tenant's, under way now, or its webhook is off."""
    mine = sa.select(webhook.c.id).where(webhook.c.tenant_id == tenant_id, webhook.c.enabled)
    idle = sa.or_(delivery.c.state != "pending", _free)
    which = (delivery.c.public_id == public_id, idle, delivery.c.webhook_id.in_(mine))
    again = sa.update(delivery).where(*which).values(state="pending", next_at=Now(), lease_until=None)
    return transaction.execute(again).rowcount == 1
