"""Webhooks: made, changed, given a new secret, deleted. `outbox.py` has what is sent to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.ids import new_id
from store.database.session import Transaction
from store.tables import Now, delivery, delivery_try, project, webhook
from store.webhooks.deliveries import cancel_waiting

ROTATION_SECONDS: Final = 86400.0
"""How long the old secret signs too after `rotate`."""

_SELECT: Final = sa.select(
    *(column for column in webhook.c if column.name != "format"),
    sa.func.coalesce(webhook.c.format, "event").label("format"),
    project.c.public_id.label("project"),
    sa.case((webhook.c.old_until > Now(), webhook.c.old_until)).label("old_secret_until"),
).join_from(webhook, project, project.c.id == webhook.c.project_id, isouter=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook, without what signs.

    Attributes:
        id: `wh_...`. events: kinds that it wants. format: of what is posted: event, slack or teams.
        project: Public id of the only project whose events it gets; None: all of the tenant's.
        disabled_reason: Why it was switched off; None: it is on, or somebody switched it off.
        failures: Tries that failed in a row. failing_since: when the first of these was.
        old_secret_until: Till then the old secret signs too; None: there is none.
        version: Rises with every change.
        number: Not shown.
    """

    id: str
    url: str
    events: tuple[str, ...]
    format: str
    project: str | None
    enabled: bool
    disabled_reason: str | None
    failures: int
    failing_since: str | None
    old_secret_until: str | None
    created_at: str
    version: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPage:
    """Some webhooks, newest first; `next` is the `after` of the next page or None."""

    items: tuple[Webhook, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose webhooks: a tenant's, or with `project` (its public id) those of one project of it."""

    tenant_id: int = 1
    project: str | None = None

    def where(self) -> tuple[sa.ColumnElement[bool], ...]:
        """As conditions on `webhook`."""
        mine = (webhook.c.tenant_id == self.tenant_id,)
        return mine if self.project is None else (*mine, webhook.c.project_id.in_(self._numbers(self.project)))

    def number(self, transaction: Transaction, public_id: str | None) -> int | None:
        """Return the number of a project of this scope; None for None.

        Raises:
            KeyError: there is none of that id.
        """
        if public_id is None:
            return None
        found = transaction.execute(self._numbers(public_id)).scalars().first()
        if found is None or self.project not in {None, public_id}:
            raise KeyError(public_id)
        return found

    def _numbers(self, public_id: str) -> sa.Select[Any]:
        return sa.select(project.c.id).where(project.c.public_id == public_id, project.c.tenant_id == self.tenant_id)


def create(transaction: Transaction, scope: Scope, given: Mapping[str, Any], seal: bytes) -> Webhook:
    """Make a webhook.

    Args:
        transaction: To write by.
        scope: Whose.
        given: `url`, `events`, `format`, `enabled`, and `project` (public id or None).
        seal: Of its secret, from `signing.new_seal`.

    Raises:
        KeyError: there is no such project.
    """
    values = _values(transaction, scope, given) | {
        "public_id": new_id("wh"),
        "tenant_id": scope.tenant_id,
        "secret": seal,
        "failures": 0,
        "created_at": Now(),
        "version": 1,
    }
    number = transaction.execute(sa.insert(webhook).values(values).returning(webhook.c.id)).scalar_one()
    return _webhook(transaction.execute(_SELECT.where(webhook.c.id == number)).one())


def get(transaction: Transaction, scope: Scope, public_id: str) -> Webhook | None:
    """One webhook; None: no such one of this scope."""
    row = transaction.execute(_SELECT.where(webhook.c.public_id == public_id, *scope.where())).first()
    return None if row is None else _webhook(row)


def page(transaction: Transaction, scope: Scope, *, after: int | None = None, limit: int = 100) -> WebhookPage:
    """List the webhooks of a scope, newest first."""
    query = _SELECT.where(*scope.where()).order_by(webhook.c.id.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(webhook.c.id < after)
    rows = transaction.execute(query).all()
    items = tuple(_webhook(row) for row in rows[:limit])
    return WebhookPage(items=items, next=items[-1].number if len(rows) > limit else None)


def change(transaction: Transaction, scope: Scope, found: Webhook, given: Mapping[str, Any]) -> bool:
    """Write any of `url`, `events`, `format`, `enabled`, `project`, if the webhook is at the version that was read.

    Switching it on clears its count of failures; switching it off cancels the deliveries that wait for it.

    Returns:
        Whether it was written; not if it changed meanwhile.

    Raises:
        KeyError: there is no such project.
    """
    values = _values(transaction, scope, given)
    if values.get("enabled"):
        values |= {"disabled_reason": None, "failures": 0, "failing_since": None}
    update = sa.update(webhook).where(webhook.c.id == found.number, webhook.c.version == found.version)
    if transaction.execute(update.values(**values, version=webhook.c.version + 1)).rowcount != 1:
        return False
    if values.get("enabled") is False:
        cancel_waiting(transaction, found.number)
    return True


def rotate(transaction: Transaction, found: Webhook, seal: bytes) -> Webhook:
    """Give a webhook a new secret; the one before signs too for a day. Of two rotations in a day the last two sign."""
    values = {"secret": seal, "old_secret": webhook.c.secret, "old_until": Now(ROTATION_SECONDS)}
    update = sa.update(webhook).where(webhook.c.id == found.number)
    transaction.execute(update.values(**values, version=webhook.c.version + 1))
    return _webhook(transaction.execute(_SELECT.where(webhook.c.id == found.number)).one())


def delete(transaction: Transaction, found: Webhook) -> None:
    """Delete a webhook with its deliveries and their tries."""
    # Its row first: who settles or plans a delivery holds that too, and then meets neither half.
    transaction.execute(sa.select(webhook.c.id).where(webhook.c.id == found.number).with_for_update())
    mine = sa.select(delivery.c.id).where(delivery.c.webhook_id == found.number)
    transaction.execute(sa.delete(delivery_try).where(delivery_try.c.delivery_id.in_(mine)))
    transaction.execute(sa.delete(delivery).where(delivery.c.webhook_id == found.number))
    transaction.execute(sa.delete(webhook).where(webhook.c.id == found.number))


def _values(transaction: Transaction, scope: Scope, given: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: given[name] for name in ("url", "format", "enabled") if name in given}
    if "events" in given:
        values["events"] = list(given["events"])
    if "project" in given:
        values["project_id"] = scope.number(transaction, given["project"] or scope.project)
    return values


def _webhook(row: Any) -> Webhook:
    fields = {name: getattr(row, name) for name in Webhook.__slots__ if name not in {"id", "number", "events"}}
    return Webhook(id=row.public_id, number=row.id, events=tuple(row.events), **fields)
