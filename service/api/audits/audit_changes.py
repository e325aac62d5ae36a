"""What became of findings since the audit before of the same project and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.api.audits.audits import audit_headers, audit_of
from service.api.records.record import NoQuery
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.schemas.responses.audits import AuditChanges
from service.web.body import query
from service.web.reply import json_reply
from store.audits import previous
from store.queries import as_json

if TYPE_CHECKING:
    from flask import Response

blueprint = Operations("audit_changes", __name__, tag="Audits")


@blueprint.get("/v1/audits/<audit>/changes")
@query(NoQuery)
@answers({200: Answer(text="The changes.", model=AuditChanges, headers=("ETag",))})
def get_audit_changes(audit: str) -> Response:
    """Count findings that are new, fixed or unchanged since the last audit of the same project and name.

    Of an audit that goes on, as far as its runs have ended.
    """
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
        before = previous.audit_before(transaction, found)
        rules = () if before is None else previous.changes_since(transaction, found, before)
    told = {
        "audit": found.id,
        "before": None if before is None else {name: getattr(before, name) for name in ("id", "name", "created_at")},
        **{name: sum(getattr(rule, name) for rule in rules) for name in ("new", "fixed", "unchanged")},
        "rules": as_json(rules),
    }
    return json_reply(told, headers=audit_headers(found))
