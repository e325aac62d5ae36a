"""API keys, who one is, and what was written by whom."""

from __future__ import annotations

import datetime
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
from service.web.reply import iso, json_reply, page_reply, read_cursor
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
        description="A time to come: from then on it opens nothing. Never later than the end of the caller's own key, "
        "which is the default.",
    )


class AuditQuery(Page):
    """Which entries."""

    actor: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    object: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(default=None, description="An id.")
    at_gt: Time | None = Field(default=None, alias="at.gt", description="Written later than this.")


def _key_to_json(key: keys.Key) -> dict[str, Any]:
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
    made, secret, headers = make_key(body)
    return json_reply({**_key_to_json(made), "secret": secret}, 201, {"Cache-Control": "no-store", **headers})


def make_key(asked: KeyAsked) -> tuple[keys.Key, str | None, dict[str, str]]:
    """Make a key for the caller's tenant; the key, its secret (None: the request came again), headers of the answer."""
    demand("keys:write")
    demand_tenant()
    for scope in asked.scopes:
        demand(scope)
    secret: str | None = None
    with effect() as write:
        if write.known is not None:
            made = _load_key(write.transaction, (write.known.body or b"").decode())
        else:
            secret, prefix = new_key()
            made = _create_key(write.transaction, asked, secret, prefix)
            write.done("key.create", made.id, detail={"scopes": list(made.scopes)})
    return made, secret, write.headers


def _load_key(transaction: Transaction, public_id: str) -> keys.Key:
    found = keys.get(transaction, public_id, tenant_id=caller().tenant_id)
    if found is None:
        raise Problem("not-found", f"There is no key {public_id[:40]}.")
    return found


def _checked_expiry(asked: KeyAsked) -> str | None:
    """When the new key ends: never after the caller's own, which could live on in it otherwise.

    Raises:
        Problem: `invalid-request`: it would end later than that, or has ended already.
    """
    own = caller().expires_at
    if asked.expires_at is None:
        return own
    wanted = iso(asked.expires_at)
    if asked.expires_at <= datetime.datetime.now(datetime.UTC):
        raise _refuse_expiry("in-the-past", f"{wanted} is in the past: choose a later time.")
    if own is not None and wanted > own:
        detail = f"The key that makes it opens nothing from {own} on; a key it makes must not outlive it."
        raise _refuse_expiry("outlives-its-maker", detail)
    return wanted


def _refuse_expiry(code: str, detail: str) -> Problem:
    return Problem("invalid-request", detail, places=(Place(pointer="#/expires_at", code=code, detail=detail),))


def _create_key(transaction: Transaction, asked: KeyAsked, secret: str, prefix: str) -> keys.Key:
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
    page = keys_page("keys", query)
    return page_reply(
        "keys", query, [_key_to_json(key) for key in page.items], None if page.next is None else [page.next]
    )


def keys_page(listing: str, query: Page) -> keys.KeyPage:
    """Return some keys of the caller's tenant."""
    demand("keys:write")
    demand_tenant()
    after = read_cursor(listing, query)
    with context().database.read() as transaction:
        return keys.page(
            transaction, tenant_id=caller().tenant_id, after=after[0] if after else None, limit=query.limit
        )


def key_of(public_id: str) -> keys.Key:
    """Return a key of the caller's tenant that opens something or has expired.

    Raises:
        Problem: `not-found`, also of a key that was revoked.
    """
    demand("keys:write")
    demand_tenant()
    with context().database.read() as transaction:
        found = keys.get(transaction, public_id, tenant_id=caller().tenant_id) if is_id("key", public_id) else None
    if found is None or found.revoked_at is not None:
        raise _no_such_key(public_id)
    return found


def _no_such_key(public_id: str) -> Problem:
    return Problem("not-found", f"There is no key {public_id[:40]} that opens anything.")


@blueprint.delete("/v1/keys/<key>")
@query(NoQuery)
@answers({204: Answer(text="The key is revoked.")}, scope="keys:write")
def revoke_key(key: str) -> Response:
    """Take a key back; the next request with it is refused. A key that may do more than the caller's stays."""
    take_key_back(key)
    return Response(status=204)


def take_key_back(public_id: str) -> None:
    """Revoke a key of the caller's tenant.

    Raises:
        Problem: `not-found`; `scope-missing`, if the key may do more than the caller's.
    """
    demand("keys:write")
    demand_tenant()
    with effect() as write:
        which = {"tenant_id": caller().tenant_id}
        found = keys.get(write.transaction, public_id, **which) if is_id("key", public_id) else None
        for scope in () if found is None or found.revoked_at is not None else found.scopes:
            demand(scope)
        if found is None or not keys.revoke(write.transaction, public_id, **which):
            raise _no_such_key(public_id)
        write.done("key.revoke", public_id)


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
        "quotas": {quota.name: {"used": quota.used, "allowed": quota.allowed} for quota in had},
        "rates": shared.rates.list_limits(asked),
    }
    return json_reply(told, headers={"Cache-Control": "no-store"})


@blueprint.get("/v1/audit-log")
@query(AuditQuery)
@answers({200: Answer(text="A page of entries, newest first.", model=AuditEntryList, headers=("Link",))}, scope="admin")
def list_audit_log(query: AuditQuery) -> Response:
    """Who wrote what, from where, by which request. Entries are only ever added."""
    page = audit_page("audit-log", query)
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


def audit_page(listing: str, query: AuditQuery) -> audit_log.EntryPage:
    """Return some entries of the caller's tenant."""
    demand("admin")
    demand_tenant()
    after = read_cursor(listing, query)
    with context().database.read() as transaction:
        return audit_log.page(
            transaction,
            tenant_id=caller().tenant_id,
            actor=query.actor,
            object=query.object,
            since=None if query.at_gt is None else iso(query.at_gt),
            after=after[0] if after else None,
            limit=query.limit,
        )
