"""What the API tells of webhooks and of what was sent to them."""

from __future__ import annotations

from dataclasses import dataclass

from service.web.listing import Listing
from store.webhooks.chat_messages import Format
from store.webhooks.delivery_log import Delivery


@dataclass(frozen=True, kw_only=True)
class WebhookLinks:
    """Addresses of what belongs to a webhook."""

    self: str
    deliveries: str


@dataclass(frozen=True, kw_only=True)
class WebhookTold:
    """A webhook, without what signs.

    Attributes:
        project: Events of this project only; null: all of the tenant's.
        disabled_reason: Why it was switched off; null: it is on, or somebody switched it off.
        failures: Tries that failed in a row. failing_since: when the first of these was.
        old_secret_until: Till then the old secret signs too; null: there is none.
    """

    id: str
    url: str
    events: list[str]
    format: Format
    project: str | None
    enabled: bool
    disabled_reason: str | None
    failures: int
    failing_since: str | None
    old_secret_until: str | None
    created_at: str
    version: int
    links: WebhookLinks


@dataclass(frozen=True, kw_only=True)
class WebhookMade(WebhookTold):
    """A webhook with its new secret, which only this response contains; null when the request came again."""

    secret: str | None


@dataclass(frozen=True, kw_only=True)
class WebhookList(Listing[WebhookTold]):
    """Webhooks, newest first."""


@dataclass(frozen=True, kw_only=True)
class DeliveryList(Listing[Delivery]):
    """Deliveries, newest first."""
