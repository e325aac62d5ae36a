"""API keys, who one is, and what was written by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from flask import Response
from pydantic import Field

from service.api.records.record import NoQuery
from service.auth.caller import SCOPES, Scope, caller, demand, demand_tenant, digest_of, new_key
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Short
from service.schemas.responses.access import AuditEntryList, KeyList, KeyMade, Me
from service.web.body import Strict, body, query
from service.web.idempotency import effect
from service.web.parameters import Page, Time
from service.web.reply import after_of, iso, json_reply, page_reply
from store.access import audit_log, keys, quotas, tenants
from store.database.ids import is_id
from store.runs.limits import LIMITS

if TYPE_CHECKING:
    from store.database.session import Transaction

blueprint = Operations("keys", __name__, tag="Operation")


class KeyAsked(Strict):
    """A key to be made."""

    name: Annotated[Short, Field(min_length=1)] = Field(description="For people.")
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(SCOPES))] = Field(
        description="What it may do; never more than the caller's own."
    )
    project: Annotated[str, Field(pattern=r"^prj_[A-Za-z0-9]{1,40}$")] | None = Field(
        default=None, description="It sees this project only."
    )
    expires_at: Time | None = Field(
        default=None,
        description="From then on it opens nothing; never later than the caller's own key, which is the default.",
    )


class AuditQuery(Page):
    """Which entries."""

    actor: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    object: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(default=None, description="An id.")
    at_gt: Time | None = Field(default=None, alias="at.gt", description="Written later than this.")


def _told(key: keys.Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "prefix": f"bp_{key.prefix}",
        "scopes": list(key.scopes),
        "project": key.project,
        "created_by": key.created_by,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
    }


@blueprint.post("/v1/keys")
@body(KeyAsked)
@answers(
    {
        201: Answer(
            text="The key; `secret` is shown this once, and is null when the request comes again.", model=KeyMade
        )
    },
    problems=("not-found", "idempotency-in-flight", "idempotency-mismatch"),
    headers=("Idempotency-Key",),
    scope="keys:write",
)
def create_key(body: KeyAsked) -> Response:
    """Make a key. It is stored as a hash: nobody can show it again."""
    demand_tenant()
    for scope in body.scopes:
        demand(scope)
    secret: str | None = None
    with effect() as write:
        if write.known is not None:
            made = _known(write.transaction, (write.known.body or b"").decode())
        else:
            secret, prefix = new_key()
            made = _made(write.transaction, body, secret, prefix)
            write.done("key.create", made.id, detail={"scopes": list(made.scopes)})
    return json_reply({**_told(made), "secret": secret}, 201, {"Cache-Control": "no-store", **write.headers})


def _known(transaction: Transaction, public_id: str) -> keys.Key:
    found = keys.get(transaction, public_id, tenant_id=caller().tenant_id)
    if found is None:
        raise Problem("not-found", f"There is no key {public_id[:40]}.")
    return found


def _checked_expiry(asked: KeyAsked) -> str | None:
    """When the new key ends: never after the caller's own, which could live on in it otherwise.

    Raises:
        Problem: `invalid-request`: later than that was asked for.
    """
    own = caller().expires_at
    if asked.expires_at is None:
        return own
    wanted = iso(asked.expires_at)
    if own is not None and wanted > own:
        detail = f"The key that makes it opens nothing from {own} on; a key it makes must not outlive it."
        place = Place(pointer="#/expires_at", code="outlives-its-maker", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))
    return wanted


def _made(transaction: Transaction, asked: KeyAsked, secret: str, prefix: str) -> keys.Key:
    expires_at = _checked_expiry(asked)
    new = keys.NewKey(
        name=asked.name,
        prefix=prefix,
        digest=digest_of(secret, context().settings.secret),
        scopes=tuple(dict.fromkeys(asked.scopes)),
        created_by=caller().actor,
        project=asked.project,
        expires_at=expires_at,
    )
    try:
        return keys.create(transaction, new, tenant_id=caller().tenant_id)
    except KeyError:
        raise Problem("not-found", f"There is no project {asked.project}.") from None


@blueprint.get("/v1/keys")
@query(Page)
@answers({200: Answer(text="A page of keys, newest first.", model=KeyList, headers=("Link",))}, scope="keys:write")
def list_keys(query: Page) -> Response:
    """The keys, also those that were taken back; never what would open anything."""
    demand_tenant()
    after = after_of("keys", query)
    with context().database.read() as transaction:
        page = keys.page(
            transaction, tenant_id=caller().tenant_id, after=after[0] if after else None, limit=query.limit
        )
    return page_reply("keys", query, [_told(key) for key in page.items], None if page.next is None else [page.next])


@blueprint.delete("/v1/keys/<key>")
@query(NoQuery)
@answers({204: Answer(text="It opens nothing any more.")}, scope="keys:write")
def revoke_key(key: str) -> Response:
    """Take a key back; the next request with it is refused. A key that may do more than the caller's stays."""
    demand_tenant()
    with effect() as write:
        found = keys.get(write.transaction, key, tenant_id=caller().tenant_id) if is_id("key", key) else None
        for scope in () if found is None or found.revoked_at is not None else found.scopes:
            demand(scope)
        if found is None or not keys.revoke(write.transaction, key, tenant_id=caller().tenant_id):
            raise Problem("not-found", f"There is no key {key[:40]} that opens anything.")
        write.done("key.revoke", key)
    return Response(status=204)


@blueprint.get("/v1/me")
@query(NoQuery)
@answers({200: Answer(text="Who the caller is.", model=Me)})
def get_me() -> Response:
    """Who one is: actor, tenant, scopes; limits of a run (default, least, most), quotas, requests in a minute."""
    asked, shared = caller(), context()
    with shared.database.read() as transaction:
        had = quotas.quotas(transaction, tenant_id=asked.tenant_id)
        tenant = tenants.public_id(transaction, asked.tenant_id)
    most = shared.settings.most_limits
    limits = {
        name: {
            "default": min(limit.default, most[name]),
            "least": limit.least,
            "most": most[name],
            "unit": limit.unit,
        }
        for name, limit in LIMITS.items()
    }
    told = {
        "actor": asked.actor,
        "tenant": tenant,
        "scopes": [scope for scope in SCOPES if asked.may(scope)],
        "project": asked.project,
        "expires_at": asked.expires_at,
        "limits": limits,
        "quotas": {one.name: {"used": one.used, "allowed": one.allowed} for one in had},
        "rates": shared.rates.allowed(asked),
    }
    return json_reply(told, headers={"Cache-Control": "no-store"})


@blueprint.get("/v1/audit-log")
@query(AuditQuery)
@answers({200: Answer(text="A page of entries, newest first.", model=AuditEntryList, headers=("Link",))}, scope="admin")
def list_audit_log(query: AuditQuery) -> Response:
    """Who wrote what, from where, by which request. Entries are only ever added."""
    demand_tenant()
    after = after_of("audit-log", query)
    since = None if query.at_gt is None else iso(query.at_gt)
    with context().database.read() as transaction:
        page = audit_log.page(
            transaction,
            tenant_id=caller().tenant_id,
            actor=query.actor,
            object=query.object,
            since=since,
            after=after[0] if after else None,
            limit=query.limit,
        )
    items = [
        {
            "at": entry.at,
            "actor": entry.actor,
            "action": entry.action,
            "object": entry.object,
            "request_id": entry.request_id,
            "address": entry.address,
            "detail": entry.detail,
        }
        for entry in page.items
    ]
    return page_reply("audit-log", query, items, None if page.next is None else [page.next])
