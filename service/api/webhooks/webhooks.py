"""Webhooks: addresses that hear of events. A secret is shown once, when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from flask import Response
from pydantic import Field

from service.api.records.record import NoQuery
from service.auth.caller import caller
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Nothing
from service.schemas.responses.webhooks import WebhookList, WebhookMade, WebhookTold
from service.web.body import Strict, body, query
from service.web.idempotency import effect, storing
from service.web.parameters import Page
from service.web.printable_text import describe_field
from service.web.reply import SAME, check_match, conditional, json_reply, page_reply, read_cursor
from store import queries
from store.database.ids import is_id
from store.webhooks import signing, webhooks
from store.webhooks.chat_messages import Format
from store.webhooks.destination import LONGEST_URL, DestinationRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.database.session import Transaction
    from store.webhooks.webhooks import Webhook

blueprint = Operations("webhooks", __name__, tag="Webhooks")

Event = Literal["run.ended", "finding.new", "finding.returned", "audit.judged", "audit_item.ended", "digest.weekly"]
Events = Annotated[list[Event], Field(min_length=1, max_length=10)]
Url = Annotated[
    str, Field(min_length=1, max_length=LONGEST_URL), describe_field(pattern="^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$")
]
Project = Annotated[str, Field(pattern=r"^prj_[A-Za-z0-9]{1,40}$")]
_SCOPE: Final = "webhooks:write"
_EVENTS: Final = (
    "Kinds of events that it gets. `digest.weekly`: on Mondays, what became of each project's findings in the week "
    "before."
)
_FORMAT: Final = "Posted is `event`, the signed event, or a message for an incoming webhook of `slack` or `teams`."
_PROJECT: Final = "Events of this project only; `null`: all of the tenant's."
_ENABLED: Final = (
    "Whether events are sent. Disabling cancels waiting deliveries; after enabling, only new events are sent."
)


class WebhookAsked(Strict):
    """A webhook to be made."""

    url: Url = Field(
        description="Where events are posted: https, on a port that the operator allows, and reachable from everywhere."
    )
    events: Events = Field(description=_EVENTS)
    format: Format = Field(default="event", description=_FORMAT)
    project: Project | None = Field(default=None, description=_PROJECT)
    enabled: bool = Field(default=True, description=_ENABLED)


class WebhookChanged(Strict):
    """What is to change of a webhook; what is not given stays (`model_fields_set`; the defaults mean nothing)."""

    url: Url = Field(default_factory=str, description="Where events are posted.")
    events: Events = Field(default_factory=list, description=_EVENTS)
    format: Format = Field(default="event", description=_FORMAT)
    project: Project | None = Field(default=None, description=_PROJECT)
    enabled: bool = Field(default_factory=bool, description=_ENABLED)


def scope() -> webhooks.Scope:
    """Whose webhooks the caller sees."""
    return webhooks.Scope(tenant_id=caller().tenant_id, project=caller().project)


def webhook_of(transaction: Transaction, public_id: str) -> Webhook:
    """Load the webhook of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    found = webhooks.get(transaction, scope(), public_id) if is_id("wh", public_id) else None
    if found is None:
        raise Problem("not-found", f"There is no webhook {public_id[:40]}.")
    return found


def _webhook_to_json(found: Webhook) -> dict[str, Any]:
    told = queries.as_json(found)
    del told["number"]
    links = {"self": f"/v1/webhooks/{found.id}", "deliveries": f"/v1/webhooks/{found.id}/deliveries"}
    return {**told, "links": links}


def _headers(found: Webhook) -> dict[str, str]:
    return {"ETag": f'"{found.version}"', "Cache-Control": "no-cache"}


def _check_url(url: str) -> None:
    """Check what the URL says by itself; the sender resolves its name at each try.

    Raises:
        Problem: `address-refused`.
    """
    try:
        context().settings.store.outward.target(url)
    except DestinationRefused as error:
        raise address_problem(str(error)) from None


def address_problem(why: str) -> Problem:
    """Return the problem of a refused address; `why` is the text of `destination.DestinationRefused`."""
    detail = f"{why[:1].upper()}{why[1:]}."
    return Problem("address-refused", detail, places=(Place(pointer="#/url", code="address-refused", detail=detail),))


def _no_project(given: Mapping[str, Any]) -> Problem:
    return Problem("not-found", f"There is no project {given['project']}.")


def _secret_reply(found: Webhook, seal: bytes | None, status: int, headers: Mapping[str, str]) -> Response:
    secret = None if seal is None else signing.secret_text(signing.unseal_secret(seal, context().settings.secret))
    sent = {**_headers(found), "Cache-Control": "no-store", **headers}
    return json_reply({**_webhook_to_json(found), "secret": secret}, status, sent)


@blueprint.post("/v1/webhooks")
@body(WebhookAsked)
@answers(
    {
        201: Answer(
            text="The webhook; `secret` is shown this once, and is null when the request comes again.",
            model=WebhookMade,
            headers=("Location", "ETag"),
        )
    },
    problems=("not-found", "address-refused", *STORING, *ONCE),
    headers=("Idempotency-Key",),
    scope=_SCOPE,
)
def create_webhook(body: WebhookAsked) -> Response:
    """Make a webhook. Its secret signs what is posted there, by Standard Webhooks; nobody can show it again."""
    _check_url(body.url)
    given = body.model_dump()
    seal: bytes | None = None
    with storing() as write:
        if write.known is not None:
            made = webhook_of(write.transaction, (write.known.body or b"").decode())
        else:
            seal = signing.new_seal(context().settings.secret)
            try:
                made = webhooks.create(write.transaction, scope(), given, seal)
            except KeyError:
                raise _no_project(given) from None
            write.done("webhook.create", made.id)
    return _secret_reply(made, seal, 201, {"Location": f"/v1/webhooks/{made.id}", **write.headers})


@blueprint.get("/v1/webhooks")
@query(Page)
@answers({200: Answer(text="A page of webhooks, newest first.", model=WebhookList, headers=("Link",))})
def list_webhooks(query: Page) -> Response:
    """The webhooks, without their secrets."""
    after = read_cursor("webhooks", query)
    with context().database.read() as transaction:
        page = webhooks.page(transaction, scope(), after=after[0] if after else None, limit=query.limit)
    return page_reply(
        "webhooks", query, [_webhook_to_json(item) for item in page.items], None if page.next is None else [page.next]
    )


@blueprint.get("/v1/webhooks/<webhook>")
@query(NoQuery)
@answers(
    {200: Answer(text="The webhook.", model=WebhookTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",)
)
def get_webhook(webhook: str) -> Response:
    """One webhook, without its secret: whether events go there, and if not, why."""
    with context().database.read() as transaction:
        found = webhook_of(transaction, webhook)
    return conditional(json_reply(_webhook_to_json(found), headers=_headers(found)))


@blueprint.patch("/v1/webhooks/<webhook>")
@body(WebhookChanged)
@answers(
    {200: Answer(text="The webhook, changed.", model=WebhookTold, headers=("ETag",))},
    problems=("address-refused", "if-match-needed", "stale"),
    headers=("If-Match",),
    scope=_SCOPE,
)
def change_webhook(webhook: str, body: WebhookChanged) -> Response:
    """Change a webhook. Needs `If-Match`."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    with effect() as write:
        found = webhook_of(write.transaction, webhook)
        check_match(f"webhook {found.id}", _headers(found)["ETag"])
        if "url" in given:
            _check_url(given["url"])
        try:
            written = webhooks.change(write.transaction, scope(), found, given)
        except KeyError:
            raise _no_project(given) from None
        if not written:
            raise Problem("stale", f"Another request has just changed webhook {found.id}.")
        write.done("webhook.change", found.id, detail={"fields": sorted(given)})
        found = webhook_of(write.transaction, webhook)
    return json_reply(_webhook_to_json(found), headers=_headers(found))


@blueprint.delete("/v1/webhooks/<webhook>")
@query(NoQuery)
@answers({204: Answer(text="It is gone, with the log of its deliveries.")}, scope=_SCOPE)
def delete_webhook(webhook: str) -> Response:
    """Delete a webhook, and the log of what was sent there."""
    with effect() as write:
        found = webhook_of(write.transaction, webhook)
        webhooks.delete(write.transaction, found)
        write.done("webhook.delete", found.id)
    return Response(status=204)


@blueprint.post("/v1/webhooks/<webhook>/rotate")
@body(Nothing, optional=True)
@answers(
    {
        200: Answer(
            text="The webhook; `secret` is shown this once, and is null when the request comes again.",
            model=WebhookMade,
            headers=("ETag",),
        )
    },
    problems=ONCE,
    headers=("Idempotency-Key",),
    scope=_SCOPE,
)
def rotate_webhook(webhook: str) -> Response:
    """Give it a new secret. For 24 hours the old one signs too: a second signature in the same header."""
    seal: bytes | None = None
    with effect() as write:
        found = webhook_of(write.transaction, webhook)
        if write.known is None:
            seal = signing.new_seal(context().settings.secret)
            found = webhooks.rotate(write.transaction, found, seal)
            write.done("webhook.rotate", found.id)
    return _secret_reply(found, seal, 200, write.headers)
