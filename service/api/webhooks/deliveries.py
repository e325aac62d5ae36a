"""What was sent to webhooks, each try of it; a test call; sending again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from service.api.webhooks.webhooks import address_problem, scope, webhook_of
from service.auth.caller import caller
from service.context import context
from service.openapi.document import ONCE, Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.requests import Nothing
from service.schemas.responses.webhooks import DeliveryList
from service.web.body import body, query
from service.web.idempotency import effect
from service.web.parameters import Page, Split
from service.web.reply import json_reply, page_reply, read_cursor
from store import queries
from store.database.ids import is_id
from store.webhooks import deliveries, delivery_log, outbox, webhooks
from store.webhooks.deliveries import State
from store.webhooks.delivery_log import Delivery

if TYPE_CHECKING:
    from flask import Response

    from store.database.session import Transaction

blueprint = Operations("deliveries", __name__, tag="Webhooks")

TEST_SECONDS: Final = 15.0
"""How long a test call is waited for: a try ends within 10 s, and the sender looks every second."""

_LOOK_SECONDS: Final = 0.05
_SCOPE: Final = "webhooks:write"

States = Annotated[list[State], Split, Field(min_length=1, max_length=4)]


class DeliveriesQuery(Page):
    """Which deliveries."""

    state: States | None = Field(default=None, description="Any of these, joined by commas.")


def _delivery_of(transaction: Transaction, public_id: str) -> Delivery:
    """Load the delivery of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    found = delivery_log.get(transaction, scope(), public_id) if is_id("dlv", public_id) else None
    if found is None:
        raise Problem("not-found", f"There is no delivery {public_id[:40]}.")
    return found


@blueprint.get("/v1/webhooks/<webhook>/deliveries")
@query(DeliveriesQuery)
@answers({200: Answer(text="A page of deliveries, newest first.", model=DeliveryList, headers=("Link",))})
def list_deliveries(webhook: str, query: DeliveriesQuery) -> Response:
    """What was sent to a webhook in the last 30 days: each try with status, milliseconds and first KiB."""
    listing = f"deliveries {webhook}"
    with context().database.read() as transaction:
        found = webhook_of(transaction, webhook)
        after = read_cursor(listing, query)
        page = delivery_log.page(
            transaction,
            found.number,
            states=query.state or (),
            after=after[0] if after else None,
            limit=query.limit,
        )
    items = [queries.as_json(delivery) for delivery in page.items]
    return page_reply(listing, query, items, None if page.next is None else [page.next])


@blueprint.post("/v1/webhooks/<webhook>/test")
@body(Nothing, optional=True)
@answers(
    {
        200: Answer(text="What the receiver said, or why nothing came of it.", model=Delivery),
        202: Answer(text="The sender has not tried yet; the log of deliveries will tell.", model=Delivery),
    },
    problems=("address-refused", *ONCE),
    headers=("Idempotency-Key",),
    scope=_SCOPE,
)
def test_webhook(webhook: str) -> Response:
    """Send a `webhook.test` there, on the way that events go, and wait for what comes. It is tried once."""
    with effect() as write:
        if write.known is not None:
            made = (write.known.body or b"").decode()
        else:
            found = webhook_of(write.transaction, webhook)
            made = outbox.enqueue_test(write.transaction, found.id, tenant_id=caller().tenant_id) or ""
            write.done("webhook.test", made, detail={"webhook": found.id})
    found = _wait_for_try(made)
    for tried in found.tries:
        code, _, why = (tried.error or "").partition(": ")
        if code == "address-refused":
            raise address_problem(why)
    return json_reply(queries.as_json(found), 200 if found.tries else 202, write.headers)


def _wait_for_try(public_id: str) -> Delivery:
    """Wait for a delivery's try; return it as it is then, after `TEST_SECONDS`, or at once if too many wait."""
    until = time.monotonic() + TEST_SECONDS
    with context().waiters.place() as free:
        while True:
            with context().database.read() as transaction:
                found = _delivery_of(transaction, public_id)
            if found.tries or not free or time.monotonic() > until:
                return found
            time.sleep(_LOOK_SECONDS)


@blueprint.post("/v1/deliveries/<delivery>/redeliver")
@body(Nothing, optional=True)
@answers(
    {202: Answer(text="The delivery, due now.", model=Delivery)},
    problems=("webhook-disabled", *ONCE),
    headers=("Idempotency-Key",),
    scope=_SCOPE,
)
def redeliver(delivery: str) -> Response:
    """Send it once more, at once, under the same `webhook-id`; one that is under way stays so."""
    with effect() as write:
        found = _delivery_of(write.transaction, delivery)
        if write.known is None:
            hook = webhooks.get(write.transaction, scope(), found.webhook)
            if hook is None or not hook.enabled:
                raise Problem("webhook-disabled", f"Webhook {found.webhook} is switched off.")
            deliveries.redeliver(write.transaction, found.id, tenant_id=caller().tenant_id)
            write.done("delivery.redeliver", found.id)
        found = _delivery_of(write.transaction, delivery)
    return json_reply(queries.as_json(found), 202, write.headers)
