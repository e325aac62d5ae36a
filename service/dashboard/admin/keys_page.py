"""The pages `/admin/keys` and `/admin/keys/KEY/revoke`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Final

from flask import redirect, request

from service.api.access.keys import KeyAsked, key_of, keys_page, make_key, take_key_back
from service.api.access.projects import load_project, projects_page
from service.auth.caller import SCOPES, caller
from service.dashboard.admin.forms import check_typed, read_form, render_admin
from service.dashboard.pages import blueprint
from service.problems.errors import Problem, keep_for_form
from service.web.body import query
from service.web.parameters import Page
from service.web.reply import iso, next_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Response as Redirect

    from store.access.keys import Key

_LISTING: Final = "page keys"

LIFETIMES: Final = {"7 days": 7, "30 days": 30, "90 days": 90, "1 year": 365}
"""Days after which a new key expires; any other word: never, or with the key that makes it."""

_NEW: Final = {"name": "", "scopes": ["read", "runs:write"], "project": "", "expires": "90 days"}


@blueprint.get("/admin/keys")
@query(Page)
def admin_keys(query: Page) -> str:
    """List the tenant's keys, with a form that makes one."""
    return _render_keys(query, _NEW)


@blueprint.post("/admin/keys")
def make_key_of_form() -> str | tuple[str, int]:
    """Make a key and show its secret."""
    form = request.form
    typed = {name: form.get(name, "").strip() for name in ("name", "project", "expires")}
    typed_scopes = form.getlist("scopes")
    try:
        fields = {"name": typed["name"], "scopes": typed_scopes, "expires_at": _expires_at(typed["expires"])}
        made, secret, _headers = make_key(read_form(KeyAsked, {**fields, "project": typed["project"] or None}))
    except Problem as problem:
        fault = keep_for_form(problem)
        return _render_keys(Page(), {**typed, "scopes": typed_scopes}, fault), 422
    project_name = None if made.project is None else load_project(made.project).name
    return render_admin("key_made.html", key=made, secret=secret, project_name=project_name)


def _expires_at(lifetime: str) -> str | None:
    """Return the time as the API takes it; None: no end but that of the key that makes it."""
    days = LIFETIMES.get(lifetime)
    return None if days is None else iso(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days))


def _render_keys(query: Page, typed: Mapping[str, object], fault: Problem | None = None) -> str:
    page = keys_page(_LISTING, query)
    now = iso(datetime.datetime.now(datetime.UTC))
    projects = projects_page("page projects of keys", Page(limit=1000)).items
    return render_admin(
        "keys.html",
        keys=[(key, _describe_state(key, now)) for key in page.items],
        more=next_address(_LISTING, query, None if page.next is None else [page.next]),
        later=query.cursor is not None,
        scopes=[scope for scope in SCOPES if caller().may(scope)],
        projects=projects,
        project_names={project.id: project.name for project in projects},
        lifetimes=[*LIFETIMES, "until it is revoked" if caller().expires_at is None else "as long as my key"],
        typed=typed,
        fault=fault,
    )


def _describe_state(key: Key, now: str) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "valid"


@blueprint.get("/admin/keys/<key>/revoke")
def confirm_revoke(key: str) -> str:
    """Ask for the name of the key that is to be revoked."""
    return render_admin("revoke_key.html", key=key_of(key), fault=None)


@blueprint.post("/admin/keys/<key>/revoke")
def revoke_key_of_form(key: str) -> Redirect | tuple[str, int]:
    """Revoke the key whose name was typed."""
    found = key_of(key)
    try:
        check_typed(found.name, f"bp_{found.prefix}")
    except Problem as problem:
        return render_admin("revoke_key.html", key=found, fault=keep_for_form(problem)), 422
    take_key_back(key)
    return redirect("/admin/keys", 303)
