"""Events on their way out: written with what they tell, then planned for each webhook; `deliveries.py` sends them.

1. `enqueue` runs in the transaction of the effect: an event leaves if and only if that transaction committed.
2. `plan` makes one delivery per event and webhook; done twice it makes no second one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.database.ids import new_id
from store.database.session import Transaction
from store.tables import Now, delivery, outbox, webhook

TEST: Final = "webhook.test"
"""The kind of a test call: tried once, and no failure of its webhook."""

_wanted: Final = sa.exists().where(webhook.c.tenant_id == sa.bindparam("its_tenant"), webhook.c.enabled)
_UNPLANNED: Final = sa.select(outbox).where(outbox.c.planned_at.is_(None)).order_by(outbox.c.id)
_HOOKS: Final = sa.select(webhook.c.id, webhook.c.project_id, webhook.c.events).where(
    webhook.c.tenant_id == sa.bindparam("its_tenant"), webhook.c.enabled
)


def enqueue(
    transaction: Transaction,
    kind: str,
    subject: str,
    body: Mapping[str, Any],
    *,
    tenant_id: int = 1,
    project_id: int | None = None,
) -> str | None:
    """Let an event leave when this transaction commits; its `event_id`. None: no webhook listens, nothing was written.

    Args:
        transaction: The one of what the event tells.
        kind: run.ended, audit.judged, finding.new or finding.returned.
        subject: Public id of what it is about.
        body: Ids, status and counts, never content.
        tenant_id: Whose event.
        project_id: Of which project; None: of none.
    """
    if not transaction.execute(sa.select(_wanted), {"its_tenant": tenant_id}).scalar():
        return None
    event_id = new_id("evt")
    values = {"event_id": event_id, "kind": kind, "subject": subject, "body": dict(body)}
    owner = {"tenant_id": tenant_id, "project_id": project_id}
    transaction.execute(sa.insert(outbox).values(values | owner | {"created_at": Now()}))
    return event_id


def waits(transaction: Transaction) -> bool:
    """Return whether some event has no deliveries yet."""
    return transaction.execute(_UNPLANNED.limit(1)).first() is not None


def plan(transaction: Transaction, *, limit: int = 100) -> int:
    """Make the deliveries of events that have none yet; how many events were planned."""
    events = transaction.execute(_UNPLANNED.limit(limit).with_for_update(skip_locked=True)).all()
    for event in events:
        hooks = [
            hook
            for hook in transaction.execute(_HOOKS, {"its_tenant": event.tenant_id})
            if event.kind in hook.events and hook.project_id in (None, event.project_id)
        ]
        for hook in hooks:
            _deliver(transaction, event.id, hook.id)
        transaction.execute(sa.update(outbox).where(outbox.c.id == event.id).values(planned_at=Now()))
    return len(events)


def _deliver(transaction: Transaction, outbox_id: int, webhook_id: int) -> str:
    """Add the delivery of an event to a webhook, due now. If it exists already it stays, and the id names nothing."""
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    public_id = new_id("dlv")
    values = {"public_id": public_id, "outbox_id": outbox_id, "webhook_id": webhook_id}
    fresh = {"state": "pending", "attempts": 0, "next_at": Now()}
    transaction.execute(insert(delivery).values(values | fresh).on_conflict_do_nothing())
    return public_id


def enqueue_test(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> str | None:
    """Let a test event leave for one webhook, also for one that is switched off; id of its delivery.

    None: the tenant has no such webhook.
    """
    which = (webhook.c.public_id == public_id, webhook.c.tenant_id == tenant_id)
    hook = transaction.execute(sa.select(webhook.c.id, webhook.c.project_id).where(*which)).first()
    if hook is None:
        return None
    event = {"event_id": new_id("evt"), "kind": TEST, "subject": public_id, "body": {"webhook": public_id}}
    owner = {"tenant_id": tenant_id, "project_id": hook.project_id, "created_at": Now(), "planned_at": Now()}
    number = transaction.execute(sa.insert(outbox).values(event | owner).returning(outbox.c.id)).scalar_one()
    return _deliver(transaction, number, hook.id)
