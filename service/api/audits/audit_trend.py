"""What audits came to, day by day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from service.api.admin.operation import DaysQuery
from service.auth.caller import caller
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.schemas.audit_requests import PolicyId
from service.schemas.requests import ProjectId
from service.schemas.responses.audits import AuditTrend
from service.web.body import query
from service.web.reply import json_reply
from store.audits import trend
from store.queries import as_json

if TYPE_CHECKING:
    from flask import Response

    from store.audits.trend import AuditDay

blueprint = Operations("audit_trend", __name__, tag="Audits")


class AuditTrendQuery(DaysQuery):
    """Which audits, of which days."""

    project: ProjectId | None = Field(default=None, description="Only those of this project.")
    policy: PolicyId | None = Field(default=None, description="Only those judged by this policy, of any revision.")


@blueprint.get("/v1/audits/trend")
@query(AuditTrendQuery)
@answers({200: Answer(text="The days.", model=AuditTrend)}, problems=("too-much-asked",))
def get_audit_trend(query: AuditTrendQuery) -> Response:
    """What audits came to, by the day on which they were begun: at most 92 days; days without audits are left out."""
    first, last = query.days()
    asked = caller()
    if asked.project is not None and query.project not in {None, asked.project}:
        return json_reply({"items": []})
    with context().database.read() as transaction:
        found = trend.by_day(
            transaction,
            tenant_id=asked.tenant_id,
            of_project=asked.project or query.project,
            of_policy=query.policy,
            first=first.isoformat(),
            last=last.isoformat(),
        )
    return json_reply({"items": [_day_to_json(day) for day in found]})


def _day_to_json(day: AuditDay) -> dict[str, Any]:
    told = as_json(day)
    return {**told, "items": {name.replace("-", "_"): count for name, count in day.items.items()}}
