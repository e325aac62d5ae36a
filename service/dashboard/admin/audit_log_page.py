"""The page `/admin/audit-log`: who wrote what."""

from __future__ import annotations

from typing import Final

from flask import request

from service.api.access.keys import AuditQuery, audit_page
from service.dashboard.admin.forms import render_admin
from service.dashboard.pages import blueprint
from service.problems.errors import Problem, keep_for_form
from service.web.body import read_query
from service.web.reply import next_address

_LISTING: Final = "page audit-log"


@blueprint.get("/admin/audit-log")
def admin_audit_log() -> str | tuple[str, int]:
    """List what the tenant's keys and people wrote, newest first."""
    try:
        return _render_log(read_query(AuditQuery)), 200
    except Problem as problem:
        return _render_log(AuditQuery(), keep_for_form(problem)), 422


def _render_log(query: AuditQuery, fault: Problem | None = None) -> str:
    page = audit_page(_LISTING, query)
    return render_admin(
        "audit_log.html",
        entries=() if fault else page.items,
        more=None if fault else next_address(_LISTING, query, None if page.next is None else [page.next]),
        later=query.cursor is not None,
        given=request.args,
        filtered=bool(set(request.args) - {"cursor", "limit"}),
        fault=fault,
    )
