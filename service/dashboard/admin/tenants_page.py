"""The pages `/admin/tenants` and `/admin/tenants/TENANT`, for the operator."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec
from flask import g, redirect, request

from service.auth.caller import caller, demand, demand_operator
from service.context import context
from service.dashboard.admin.forms import check_form_etag, etag_to_show, render_admin
from service.dashboard.pages import blueprint
from service.problems.errors import Place, Problem, keep_for_form
from service.schemas.quota_words import QUOTA_WORDS
from service.web.idempotency import effect
from store.access import audit_log, quotas, tenants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Response as Redirect

    from store.access.tenants import Tenant
    from store.database.session import Transaction

_NO_LIMIT: Final = ""
"""In a field: the quota stays as it is; of one without a limit, without a limit."""


@blueprint.get("/admin/tenants")
def admin_tenants() -> str:
    """List the tenants with their quotas."""
    _demand_operator()
    with context().database.read() as transaction:
        found = tenants.every(transaction)
    return render_admin("tenants.html", tenants=found, meanings=QUOTA_WORDS)


def _demand_operator() -> None:
    demand("admin")
    demand_operator()


@blueprint.get("/admin/tenants/<tenant>")
def admin_tenant(tenant: str) -> str:
    """Show one tenant: what it uses, and a form that changes its quotas."""
    _demand_operator()
    return _render_tenant(tenant)


def _render_tenant(public_id: str, typed: Mapping[str, str] | None = None, fault: Problem | None = None) -> str:
    with context().database.read() as transaction:
        found = _load_tenant(transaction, public_id)
        used = quotas.quotas(transaction, tenant_id=found.number)
    now = {name: _NO_LIMIT if value is None else str(value) for name, value in found.quotas.items()}
    return render_admin(
        "tenant.html",
        tenant=found,
        etag=etag_to_show(_quotas_etag(found), fault),
        used=used,
        meanings=QUOTA_WORDS,
        bounds=tenants.BOUNDS,
        typed=now if typed is None else typed,
        fault=fault,
    )


def _load_tenant(transaction: Transaction, public_id: str, *, to_change: bool = False) -> Tenant:
    found = tenants.get(transaction, public_id[:50], to_change=to_change)
    if found is None:
        raise Problem("not-found", f"There is no tenant {public_id[:40]}.")
    return found


def _quotas_etag(found: Tenant) -> str:
    """Return what tells these quotas of a tenant from others."""
    return hashlib.sha256(msgspec.json.encode(found.quotas)).hexdigest()[:16]


@blueprint.post("/admin/tenants/<tenant>")
def change_tenant_of_form(tenant: str) -> Redirect | tuple[str, int]:
    """Change quotas, as `backprobe tenant set` does; both the operator and the tenant find it in their audit log."""
    _demand_operator()
    typed = {name: request.form.get(name, "").strip() for name in QUOTA_WORDS}
    try:
        _change_quotas(tenant, typed)
    except Problem as problem:
        return _render_tenant(tenant, typed, keep_for_form(problem)), 422
    return redirect(f"/admin/tenants/{tenant}", 303)


def _change_quotas(public_id: str, typed: Mapping[str, str]) -> None:
    asked = _read_quotas(typed)
    with effect() as write:
        found = _load_tenant(write.transaction, public_id, to_change=True)
        check_form_etag(f"tenant {found.id}", _quotas_etag(found))
        changed = {name: value for name, value in asked.items() if value != found.quotas[name]}
        if not changed:
            return
        tenants.change(write.transaction, found.number, changed)
        write.done("tenant.change", found.id, detail=changed)
        if found.number != caller().tenant_id:
            entry = audit_log.Entry(
                actor=caller().actor,
                action="tenant.change",
                object=found.id,
                request_id=g.request_id,
                detail=changed,
            )
            audit_log.append(write.transaction, entry, tenant_id=found.number)


def _read_quotas(typed: Mapping[str, str]) -> dict[str, int]:
    """Return the quotas that were typed.

    Raises:
        Problem: `invalid-request`, with each wrong field.
    """
    places: list[Place] = []
    for name, text in typed.items():
        least, most = tenants.BOUNDS[name]
        is_number = text.isascii() and text.isdigit() and len(text) < 20
        if text != _NO_LIMIT and not (is_number and least <= int(text) <= most):
            detail = f"A whole number from {least:,} to {most:,} is needed."
            places.append(Place(pointer=f"#/{name}", code="out-of-range", detail=detail))
    if places:
        raise Problem("invalid-request", f"{places[0].pointer}: {places[0].detail}", places=tuple(places))
    return {name: int(text) for name, text in typed.items() if text != _NO_LIMIT}
