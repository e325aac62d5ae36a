"""What leaves the service by itself: webhooks, the outbox, deliveries and each try."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.tables.base.metadata import METADATA
from store.tables.base.types import blob, flag, i2, i4, identity, is_one_of, json, public_id, refers, text, time

webhook: Final = sa.Table(
    "webhook",
    METADATA,
    identity(),
    public_id("wh"),
    refers("tenant_id", "tenant", "Whose it is."),
    refers("project_id", "project", "Events of this project only; NULL: all of the tenant's.", null=True),
    text("url", "Where events are posted."),
    json("events", "Kinds that it wants: run.ended, audit.judged, finding.new, finding.returned."),
    blob("secret", "Signs deliveries; sealed by the service, never in the clear."),
    blob("old_secret", "Signs them too until old_until; NULL: none.", null=True),
    time("old_until", "When the old secret ends; NULL: there is none.", null=True),
    flag("enabled", "Events go there."),
    text("disabled_reason", "Why none go there; NULL: they do, or somebody switched it off.", null=True),
    i4("failures", "Tries that failed in a row."),
    time("failing_since", "When the first of these was; NULL: the last one succeeded, or there was none.", null=True),
    time("created_at", "When it was made."),
    i4("version", "Rises with every change: the ETag."),
    text("format", "Of what is posted: event, slack or teams; NULL: event.", null=True),
    comment="An address that wants to hear of events.",
)
sa.Index("webhook_of_tenant", webhook.c.tenant_id, webhook.c.id.desc())

outbox: Final = sa.Table(
    "outbox",
    METADATA,
    identity(),
    text("event_id", "What receivers tell doubles by: the webhook-id."),
    refers("tenant_id", "tenant", "Whose event."),
    refers("project_id", "project", "Of which project; NULL: of none.", null=True),
    text("kind", "run.ended, audit.judged, finding.new or finding.returned."),
    text("subject", "Public id of what it is about."),
    json("body", "What receivers get as data: ids, status and counts."),
    time("created_at", "When it happened."),
    time("planned_at", "When its deliveries were made; NULL: not yet.", null=True),
    sa.UniqueConstraint("event_id"),
    comment="An event that is to leave; written in the transaction of what it tells.",
)
_unplanned: Final = sa.text("planned_at is null")
sa.Index("outbox_unplanned", outbox.c.id, postgresql_where=_unplanned, sqlite_where=_unplanned)
sa.Index("outbox_age", outbox.c.created_at)

delivery: Final = sa.Table(
    "delivery",
    METADATA,
    identity(),
    public_id("dlv"),
    refers("outbox_id", "outbox", "Which event."),
    refers("webhook_id", "webhook", "Where to."),
    text("state", "pending; delivered; dead: given up; canceled: its webhook was switched off."),
    i2("attempts", "Tries so far."),
    time("next_at", "When it is tried next."),
    time("lease_until", "Till then somebody tries it; NULL: nobody does.", null=True),
    is_one_of("state", ("pending", "delivered", "dead", "canceled")),
    sa.UniqueConstraint("outbox_id", "webhook_id"),
    comment="One event on its way to one webhook.",
)
_pending: Final = sa.text("state = 'pending'")
sa.Index("delivery_due", delivery.c.next_at, postgresql_where=_pending, sqlite_where=_pending)
sa.Index("delivery_of_webhook", delivery.c.webhook_id, delivery.c.id.desc())
_dead: Final = sa.text("state = 'dead'")
sa.Index("delivery_dead", delivery.c.id, postgresql_where=_dead, sqlite_where=_dead)

delivery_try: Final = sa.Table(
    "delivery_try",
    METADATA,
    refers("delivery_id", "delivery", "Of which delivery."),
    i2("n", "Which try, from 1."),
    time("at", "When it ended."),
    text("address", "The address it went to; empty: none was allowed or found."),
    i2("status", "HTTP status of the answer; NULL: there was none.", null=True),
    i4("ms", "How long it took, in milliseconds."),
    text("error", "Why there was no answer; NULL: there was one.", null=True),
    text("answer", "At most 1 KiB of the answer, a stranger's text; NULL: there was none.", null=True),
    sa.PrimaryKeyConstraint("delivery_id", "n"),
    comment="One try at a delivery.",
)
sa.Index("delivery_try_at", delivery_try.c.at)
